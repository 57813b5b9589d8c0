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

from hydra.client.transport import DEAF_AT_MOST_S, read_system
from hydra.kafkatest.confluent_common import common_config, made
from hydra.kafkatest.control_messages import KafkaConfigure, KafkaFinish
from hydra.kafkatest.librdkafka import text
from hydra.kafkatest.membership import ASK_FOR_S as ASK_GROUP_FOR_S
from hydra.kafkatest.membership import JOIN_WITHIN_S, Membership, heartbeat_ms, longest_poll_ms
from hydra.kafkatest.settings import KafkaSettings
from hydra.wire.messages import Configure, SystemObject

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


class Subscriber:
    """Takes batches from a librdkafka consumer: of every partition of the topic, or of its part as a group's member."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._consumer: Consumer | None = None
        self._built_from: object = None
        self._config: dict[str, object] = {}
        self._topic = ""
        # Kept here: the library's own positions survive a new assignment until its first message.
        self._positions: dict[int, int] = {}
        self._member: Membership | None = None
        self._early: list[Message] = []
        self._failure: KafkaError | None = None

    def configure(self, command: Configure) -> None:
        """See transport.py. The connection is kept unless the cluster, the properties, fetches or the group changed.

        A member of a group returns when the group has told which partitions are its own.
        """
        kafka = read_system(command.system, KafkaConfigure)
        config = consumer_config(self._client, kafka)
        fresh = self._consumer is None or config != self._built_from
        if fresh:
            self.close()
            self._built_from = config
            self._config = {**config, "error_cb": self._on_error, "on_commit": self._on_commit}
            self._consumer = made(Consumer, self._config)
        if kafka.group:
            self._configure_member(command, kafka, fresh=fresh or kafka.topic != self._topic)
            return
        if not fresh and kafka.topic == self._topic and self._positions == kafka.offsets:
            return  # it stands there already, and an assignment would throw away what it has fetched
        self._member = None
        self._topic, self._positions, self._failure = kafka.topic, dict(kafka.offsets), None
        self._assign()

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
        """See transport.py. The new connection goes on where the old one stood, or joins the group again."""
        began_ns = time.monotonic_ns()
        self.close()
        consumer = self._consumer = made(Consumer, self._config)
        if self._member is None:
            self._assign()
        else:
            self._subscribe(self._member)
        with contextlib.suppress(KafkaException):  # a broker that is gone is what the step then shows
            consumer.list_topics(self._topic, timeout=RECONNECT_WAIT_S)
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py: the sum of end offset − position."""
        ends = read_system(system, KafkaFinish).end_offsets
        if self._member is None:
            return sum(max(0, end - self._positions.get(p, 0)) for p, end in ends.items())
        if self._member.has_read(ends):
            self._commit(self._member.uncommitted(now=True))
        return self._member.undrained(ends, self._committed)

    def report_system(self) -> dict[str, Any] | None:
        """What the group's rebalances took, of a member."""
        return None if self._member is None else self._member.report()

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

    def _opened(self) -> Consumer:
        if self._consumer is None:
            raise OSError("the subscriber is not configured")
        return self._consumer

    def _assign(self) -> None:
        try:
            self._opened().assign([TopicPartition(self._topic, p, offset) for p, offset in self._positions.items()])
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

    def _configure_member(self, command: Configure, kafka: KafkaConfigure, *, fresh: bool) -> None:
        self._topic, self._failure = kafka.topic, None
        if fresh or self._member is None:
            self._member = Membership()
            self._member.step(command, kafka.offsets)
            self._subscribe(self._member)
        elif self._member.step(command, kafka.offsets):
            self._early = []
            for p, offset in self._member.positions.items():
                # A new assignment would cross the group's own. Where one is not ready to be moved it reads from before,
                # and nothing is missed.
                with contextlib.suppress(KafkaException):
                    self._opened().seek(TopicPartition(self._topic, p, offset))
        deadline = time.monotonic() + JOIN_WITHIN_S
        while not self._member.assigned:
            # Partitions are given, and taken back, from within this call.
            self._early += self._without_errors(self._opened().consume(1, DEAF_AT_MOST_S))
            self._raise_failure()
            if time.monotonic() > deadline:
                raise OSError(f"the consumer group {kafka.group} gave no partitions within {JOIN_WITHIN_S:g} s")

    def _subscribe(self, member: Membership) -> None:
        # A consumer that still leaves its group (see close) must not be taken for the next one.
        handlers = {
            "on_assign": partial(self._on_assign, member),
            "on_revoke": partial(self._on_revoke, member),
            "on_lost": partial(self._on_lost, member),
        }
        try:
            self._opened().subscribe([self._topic], **handlers)
        except KafkaException as e:
            raise OSError(f"Kafka refuses to subscribe to {self._topic}: {text(e)}") from None

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
            return {tp.partition: tp.offset for tp in consumer.committed(asked, ASK_GROUP_FOR_S) if tp.offset >= 0}
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
    group: dict[str, str | int | float] = {}
    if kafka.group and kafka.session_timeout_ms is not None:
        group = _session_config(kafka.session_timeout_ms)
    return {
        **fetch_config(kafka),
        **group,
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


def fetch_config(kafka: KafkaConfigure | KafkaSettings) -> dict[str, str | int | float]:
    """How a consumer fetches, in librdkafka's names."""
    return {
        "fetch.min.bytes": kafka.fetch_min_bytes,
        "fetch.wait.max.ms": kafka.fetch_wait_max_ms,
        "fetch.max.bytes": kafka.fetch_max_bytes,
        "max.partition.fetch.bytes": kafka.max_partition_fetch_bytes,
        "check.crcs": str(kafka.check_crcs).lower(),
    }


def _session_config(session_timeout_ms: int) -> dict[str, str | int | float]:
    """After which silence a member counts as dead; what the library relates to it goes along."""
    return {
        "session.timeout.ms": session_timeout_ms,
        "heartbeat.interval.ms": heartbeat_ms(session_timeout_ms),
        "max.poll.interval.ms": longest_poll_ms(session_timeout_ms),
    }
