"""The subscribing side of confluent-kafka clients."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from hydra.client.transport import DEAF_AT_MOST_S
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import common_config, made, text
from hydra.kafkatest.membership import ASK_FOR_S, Membership
from hydra.kafkatest.transports import ConsumerTransport, fetch_config, session_config
from hydra.wire.messages import Configure

RECONNECT_WAIT_S: Final = 1.0
LEAVE_WITHIN_S: Final = 3.0
_TRANSIENT: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_CACHE,
        KafkaError._WAIT_COORD,
        KafkaError._DESTROY_BROKER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REBOOTSTRAP_REQUIRED,
    }
)
"""Errors that the library recovers from by itself."""
_GROUP_MOVES: Final = frozenset(
    {
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a member of a group meets while partitions change hands, or another broker has not heard of the topic yet."""


class ConfluentSubscriber(ConsumerTransport[Consumer]):
    """Takes batches from a librdkafka consumer."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self._early: list[Message] = []
        self._failure: KafkaError | None = None

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        messages = self._taken(timeout_s, limit)
        values = [m.value() for m in messages if m.error() is None]
        if len(values) < len(messages):
            messages = self._without_errors(messages)
        if self._member is None:
            _advance(self._positions, messages)
        else:
            _advance(self._member.positions, messages)
            self._commit(self._member.uncommitted())
            values += self._member.probes()
        self._raise_failure()
        return values  # type: ignore[return-value]  # only a tombstone has no value, and nobody sends one

    def reconnect(self) -> tuple[int, int]:
        """See transport.py."""
        began_ns, _ = super().reconnect()
        with contextlib.suppress(KafkaException):  # a broker that is gone is what the step then shows
            self._opened().list_topics(self._topic, timeout=RECONNECT_WAIT_S)
        return began_ns, time.monotonic_ns()

    def close(self) -> None:
        """See transport.py. A member leaves its group."""
        consumer, self._consumer = self._consumer, None
        self._early = []
        if consumer is None:
            return
        if self._member is None:
            consumer.close()
            return
        # It hands the partitions back, see _on_revoke. A coordinator that is gone would be waited for until its session
        # is over.
        leaving = threading.Thread(target=consumer.close, daemon=True)
        leaving.start()
        leaving.join(LEAVE_WITHIN_S)

    def _config(self, kafka: KafkaConfigure) -> dict[str, str | int | float]:
        return consumer_config(self._client, kafka)

    def _open(self) -> None:
        self._failure = None
        if self._consumer is None:
            callbacks = {"error_cb": self._on_error, "on_commit": self._on_commit}
            self._consumer = made(Consumer, {**self._built_from, **callbacks})
        try:
            if self._member is None:
                mine = [TopicPartition(self._topic, p, offset) for p, offset in self._positions.items()]
                self._consumer.assign(mine)
            else:
                self._consumer.subscribe([self._topic], **self._handlers(self._member))
        except KafkaException as e:
            raise OSError(f"Kafka refuses the partitions of {self._topic}: {text(e)}") from None

    def _taken(self, timeout_s: float, limit: int) -> list[Message]:
        consumer = self._opened()
        if self._early:
            messages, self._early = self._early, []
            return messages
        # consume() waits for the whole batch or the whole timeout; what is there is taken without a wait, and only
        # an empty queue is waited for, by one message.
        messages = consumer.consume(limit, 0)
        if not messages and timeout_s > 0:
            one = consumer.poll(min(timeout_s, DEAF_AT_MOST_S))
            messages = [] if one is None else [one, *(consumer.consume(limit - 1, 0) if limit > 1 else [])]
        return messages

    # --- as a member of a group --------------------------------------------------------------------------------------

    def _join(self, command: Configure, kafka: KafkaConfigure, *, anew: bool) -> None:
        self._failure = None
        super()._join(command, kafka, anew=anew)

    def _seek(self, positions: Mapping[int, int]) -> None:
        self._early = []
        for p, offset in positions.items():
            # A new assignment would cross the group's own. Where one is not ready to be moved it reads from before,
            # and nothing is missed.
            with contextlib.suppress(KafkaException):
                self._opened().seek(TopicPartition(self._topic, p, offset))

    def _hear(self) -> None:
        # Partitions are given, and taken back, from within this call.
        self._early += self._without_errors(self._opened().consume(1, DEAF_AT_MOST_S))
        self._raise_failure()

    def _handlers(self, member: Membership) -> dict[str, Any]:
        # A consumer that still leaves its group (see close) must not be taken for the next one.
        return {
            "on_assign": partial(self._on_assign, member),
            "on_revoke": partial(self._on_revoke, member),
            "on_lost": partial(self._on_lost, member),
        }

    def _on_assign(self, member: Membership, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        ours = [tp.partition for tp in partitions if tp.topic == self._topic]
        offsets = member.given(ours, self._asked(consumer, ours))
        consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])

    def _on_revoke(self, member: Membership, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        # The library answers the group after this has arrived.
        self._commit(member.uncommitted(now=True), consumer)
        member.lost()
        consumer.unassign()

    def _on_lost(self, member: Membership, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        member.lost()
        consumer.unassign()

    def _commit(self, offsets: Mapping[int, int], consumer: Consumer | None = None) -> None:
        if offsets:
            told = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
            try:
                (consumer or self._opened()).commit(offsets=told, asynchronous=True)
            except KafkaException:
                self._on_commit(None, [])

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        fine = error is None and partitions and not any(tp.error for tp in partitions)
        if self._member is not None and not fine:
            self._member.refused()

    def _committed(self, partitions: list[int]) -> dict[int, int]:
        return self._asked(self._opened(), partitions)

    def _asked(self, consumer: Consumer, partitions: Sequence[int]) -> dict[int, int]:
        """The group's offsets. Where it does not tell, there are none: what is read twice is counted."""
        if not partitions:
            return {}
        asked = [TopicPartition(self._topic, p) for p in partitions]
        with contextlib.suppress(KafkaException):
            return {tp.partition: tp.offset for tp in consumer.committed(asked, ASK_FOR_S) if tp.offset >= 0}
        return {}

    # --- what goes wrong ---------------------------------------------------------------------------------------------

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(f"Kafka refuses to give {self._topic}: {self._failure.str()}")

    def _without_errors(self, messages: Sequence[Message]) -> list[Message]:
        good: list[Message] = []
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
            else:
                self._on_error(error)
        return good

    def _on_error(self, error: KafkaError) -> None:
        passes = error.code() in _TRANSIENT or (self._member is not None and error.code() in _GROUP_MOVES)
        if error.fatal() or not (passes or error.retriable()):
            self._failure = error


def _advance(positions: dict[int, int], messages: Sequence[Message]) -> None:
    """Notes where a batch ended. Offsets rise within a partition, so the last of each is enough."""
    seen: set[int] = set()
    for message in reversed(messages):
        partition, offset = message.partition(), message.offset()
        if partition is not None and offset is not None and partition in positions and partition not in seen:
            positions[partition] = offset + 1
            seen.add(partition)
            if len(seen) == len(positions):
                return


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, str | int | float]:
    """The library's configuration for these settings; ValueError where a property cannot be used."""
    return {
        **fetch_config(kafka),
        **session_config(kafka),
        **common_config(client, kafka, "subscriber"),
        # It is what producers send at most; for a consumer only a lower bound of fetch.max.bytes.
        "message.max.bytes": 1000,
        # The library insists on a group; one of its own, never joined, keeps it apart from everybody.
        "group.id": kafka.group or f"hydra-{client}-{os.getpid()}",
        "partition.assignment.strategy": "range",
        "auto.offset.reset": "error",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
    }
