"""confluent-kafka clients: ``kafka-pub`` and ``kafka-sub`` on librdkafka."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, ThrottleEvent, TopicPartition

from hydra.client import process_group
from hydra.client.transport import DEAF_ANSWERS_S, DEAF_AT_MOST_S, Kind
from hydra.kafkatest.confluent_config import consumer_config, producer_config
from hydra.kafkatest.connection_losses import LibrdkafkaLosses
from hydra.kafkatest.control_messages import PLACES, KafkaConfigure
from hydra.kafkatest.group_membership import ASK_FOR_S, Membership
from hydra.kafkatest.librdkafka import Complaint, made, text
from hydra.kafkatest.producer_statistics import ProducerCounts, Statistics
from hydra.kafkatest.refusal_reasons import reason
from hydra.kafkatest.transport_base import SYSTEM, ConsumerTransport, ProducerTransport
from hydra.wire.data_message import unpack_batch
from hydra.wire.messages import Configure

CONNECT_TIMEOUT_S: Final = 10.0
ASK_TOPIC_FOR_S: Final = 1.0
"""How long one request for the topic waits; between requests the client checks whether the cluster rejects it."""
FULL_WAIT_S: Final = 0.005
STATISTICS_TRIES: Final = 3
"""The number of intervals of statistics to wait for new ones."""
PROBE_FLUSH_S: Final = 0.05
FLUSH_STEP_S: Final = 0.001
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
"""Errors from which the library recovers by itself."""
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
"""Errors of a group's member during a rebalance, or while another broker does not know the topic yet."""
_ANY: Final = -1
"""The partition of a message whose key chooses it."""


class ConfluentPublisher(ProducerTransport[Producer]):
    """Passes messages to a librdkafka producer, and accounts for them by the sequences in its delivery reports."""

    def __init__(self, client: int) -> None:
        self._losses: LibrdkafkaLosses = LibrdkafkaLosses()
        super().__init__(client)
        self._complaint = Complaint()
        self._epoch = 0
        self._statistics = Statistics()

    def configure(self, command: Configure) -> str:
        """See transport.py."""
        endpoint = super().configure(command)
        self._epoch, self._batch_bytes = command.epoch, int(self._built_from["batch.size"])
        return endpoint

    def probe(self, message: bytes) -> None:
        """See transport.py. Sends the probe to every partition, so it proves all of them."""
        producer = self._opened()
        for topic in self._probed:
            for partition in self._partitions:
                with contextlib.suppress(BufferError):
                    producer.produce(topic, message, None, partition)
        # A flush sends messages that linger.
        producer.flush(PROBE_FLUSH_S)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. A message's partition is its sequence modulo the partitions."""
        producer, topic, partitions = self._opened(), self._topics[0], self._partitions
        produce, n, count = producer.produce, len(partitions), 0
        reported = None if self._acks == "0" else self._on_delivery
        if self._sent_before is None:
            self._sent_before = self._statistics.so_far()
        began_ns = time.monotonic_ns()
        try:
            if self._choice is not None or self._keys is not None:
                destinations = self._destinations(first_sequence, len(messages))
                for message, (topic, key, place) in zip(messages, destinations, strict=True):
                    produce(topic, message, key, _ANY if place is None else place, reported)
                    count += 1
            elif n == 1:
                partition = partitions[0]
                for message in messages:
                    produce(topic, message, None, partition, reported)
                    count += 1
            else:
                for message in messages:
                    produce(topic, message, None, partitions[(first_sequence + count) % n], reported)
                    count += 1
        except BufferError:
            full = True
        except KafkaException as e:
            raise OSError(f"Kafka refuses a message for {topic}: {text(e)}") from None
        else:
            full = False
        self._handed_over(first_sequence, count, began_ns)
        if full:
            producer.poll(FULL_WAIT_S)
            self._account()
        return count

    def poll(self) -> None:
        """See transport.py."""
        if self._producer is not None:
            self._producer.poll(0)
            self._account()

    def awaits(self) -> bool:
        """See transport.py."""
        return self._acks != "0" and self._ledger.pending > 0

    def wait(self, timeout_s: float) -> None:
        """See transport.py. The library's wait ends with delivery reports."""
        self._opened().poll(min(timeout_s, DEAF_ANSWERS_S))

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        producer, deadline = self._opened(), time.monotonic() + timeout_s
        while True:
            left_s = max(deadline - time.monotonic(), 0)
            # In small steps, so the time of the last answer is exact to a step if another answer is missing.
            left = producer.flush(min(left_s, FLUSH_STEP_S))
            self._account()
            if not left or not left_s:
                return not left

    def close(self) -> None:
        """See transport.py. Discards messages that were not sent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge(in_queue=True, in_flight=True, blocking=False)
            producer.poll(0)

    def _config(self, kafka: KafkaConfigure, message_size: int, keys: int) -> dict[str, str | int | float]:
        config = producer_config(self._client, kafka, message_size, keys)
        # With keys, the partitions are those of Kafka's own producer.
        return {**config, "partitioner": "murmur2"} if keys else config

    def _made(self, config: Mapping[str, Any]) -> Producer:
        self._complaint.forget()
        self._statistics = Statistics()
        self._losses.restart()
        callbacks = {"stats_cb": self._on_statistics, "throttle_cb": self._on_throttle, "error_cb": self._on_error}
        return made(Producer, {**config, **callbacks})

    def _partitions_of(self, producer: Producer, topic: str) -> list[int]:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while True:
            try:
                described = producer.list_topics(topic, timeout=ASK_TOPIC_FOR_S).topics[topic]
                break
            except KafkaException as e:
                producer.poll(0)  # lets the library report its errors
                if self._complaint.refused or time.monotonic() > deadline:
                    raise OSError(f"Kafka does not answer: {self._complaint.explain(e)}") from None
        self._complaint.forget()
        if described.error is not None:
            raise OSError(f"Kafka does not know {topic}: {described.error.str()}")
        return sorted(described.partitions)

    def _forget(self) -> None:
        super()._forget()
        self._delivered: list[bytes] = []
        self._failed: list[tuple[bytes, KafkaError]] = []
        self._longest_throttle_ms = 0

    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        producer, every_s = self._producer, self._built_from["statistics.interval.ms"] / 1000
        if producer is None:
            return {}
        achieved = self._statistics.fresh(lambda: producer.poll(every_s), STATISTICS_TRIES)
        return {} if achieved is None else achieved.since(before).figures()

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        # Called for every message: it only keeps the payload; _account() decodes many at once.
        value: bytes = message.value()  # type: ignore[assignment]  # only a tombstone has none
        if error is None:
            self._delivered.append(value)
        else:
            self._failed.append((value, error))

    def _on_statistics(self, text: str) -> None:
        self._statistics(text)
        self._losses.read(text)

    def _on_error(self, error: KafkaError) -> None:
        self._complaint(error)
        self._losses.note(error)

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._longest_throttle_ms = max(self._longest_throttle_ms, round(1000 * event.throttle_time))

    def _throttled_ms(self) -> int:
        return self._longest_throttle_ms

    def _account(self, *, everywhere: bool = False) -> None:  # noqa: ARG002  # answers arrive in no order
        if self._delivered:
            now_ns = time.monotonic_ns()
            headers = unpack_batch(self._delivered)
            self._delivered.clear()
            self._acknowledged(headers["sequence"][headers["epoch"] == self._epoch], now_ns)
        if self._failed:
            failed, self._failed = self._failed, []
            headers = unpack_batch([value for value, _ in failed])
            of_epoch = headers["epoch"] == self._epoch
            self._ledger.fail(headers["sequence"][of_epoch])
            for (_, error), of_step in zip(failed, of_epoch.tolist(), strict=True):
                if of_step:
                    self._refused.add(reason(error.code(), throttled=self._longest_throttle_ms > 0), error.str())


class ConfluentSubscriber(ConsumerTransport[Consumer]):
    """Takes batches from a librdkafka consumer."""

    def __init__(self, client: int) -> None:
        self._losses: LibrdkafkaLosses = LibrdkafkaLosses()
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
            _advance(self._positions, messages, self._numbers)
        else:
            _advance(self._member.positions, messages, self._numbers)
            self._commit(self._member.uncommitted())
            values += self._member.probes()
        self._raise_failure()
        return values  # type: ignore[return-value]  # only a tombstone has no value, and no publisher sends one

    def reconnect(self) -> tuple[int, int]:
        """See transport.py."""
        began_ns, _ = super().reconnect()
        with contextlib.suppress(KafkaException):  # the step itself shows a dead broker
            self._opened().list_topics(self._topics[0], timeout=RECONNECT_WAIT_S)
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
        # The member hands its partitions back, see _on_revoke. With a dead coordinator close() would wait until the
        # session is over.
        leaving = threading.Thread(target=consumer.close, daemon=True)
        leaving.start()
        leaving.join(LEAVE_WITHIN_S)

    def _config(self, kafka: KafkaConfigure) -> dict[str, str | int | float]:
        return consumer_config(self._client, kafka)

    def _open(self) -> None:
        self._failure = None
        if self._consumer is None:
            self._losses.restart()
            callbacks = {"error_cb": self._on_error, "on_commit": self._on_commit, "stats_cb": self._losses.read}
            self._consumer = made(Consumer, {**self._built_from, **callbacks})
        try:
            if self._member is None:
                self._consumer.assign([TopicPartition(*each) for each in self._assigned()])
            else:
                self._consumer.subscribe([self._topic], **self._handlers(self._member))
        except KafkaException as e:
            raise OSError(f"Kafka refuses the partitions of {self._topic}: {text(e)}") from None

    def _taken(self, timeout_s: float, limit: int) -> list[Message]:
        consumer = self._opened()
        if self._early:
            messages, self._early = self._early, []
            return messages
        # consume() waits for the whole batch or the whole timeout. Therefore waiting messages are taken without a
        # timeout, and only an empty queue is waited for, with one message.
        messages = consumer.consume(limit, 0)
        if not messages and timeout_s > 0:
            one = consumer.poll(min(timeout_s, DEAF_AT_MOST_S))
            messages = [] if one is None else [one, *(consumer.consume(limit - 1, 0) if limit > 1 else [])]
        return messages

    # --- as a member of a group --------------------------------------------------------------------------------------

    def _join(self, command: Configure, kafka: KafkaConfigure, *, is_new: bool) -> None:
        self._failure = None
        super()._join(command, kafka, is_new=is_new)

    def _seek(self, positions: Mapping[int, int]) -> None:
        self._early = []
        for p, offset in positions.items():
            # A new assignment would interfere with the group's own. A partition that cannot be moved yet is read from
            # an earlier offset, so no message is missed.
            with contextlib.suppress(KafkaException):
                self._opened().seek(TopicPartition(self._topic, p, offset))

    def _hear(self) -> None:
        # This call runs the callbacks that assign and revoke partitions.
        self._early += self._without_errors(self._opened().consume(1, DEAF_AT_MOST_S))
        self._raise_failure()

    def _handlers(self, member: Membership) -> dict[str, Any]:
        # The callbacks keep their member, as a consumer that still leaves its group (see close) may call them later.
        return {
            "on_assign": partial(self._on_assign, member),
            "on_revoke": partial(self._on_revoke, member),
            "on_lost": partial(self._on_lost, member),
        }

    def _on_assign(self, member: Membership, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        assigned = [tp.partition for tp in partitions if tp.topic == self._topic]
        offsets = member.given(assigned, self._group_offsets(consumer, assigned))
        consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])

    def _on_revoke(self, member: Membership, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        # The library confirms the revocation only after the commit has arrived.
        self._commit(member.uncommitted(now=True), consumer)
        member.lost()
        consumer.unassign()

    def _on_lost(self, member: Membership, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        member.lost()
        consumer.unassign()

    def _commit(self, offsets: Mapping[int, int], consumer: Consumer | None = None) -> None:
        if offsets:
            commits = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
            try:
                (consumer or self._opened()).commit(offsets=commits, asynchronous=True)
            except KafkaException:
                self._on_commit(None, [])

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        fine = error is None and partitions and not any(tp.error for tp in partitions)
        if self._member is not None and not fine:
            self._member.refused()

    def _committed(self, partitions: list[int]) -> dict[int, int]:
        return self._group_offsets(self._opened(), partitions)

    def _group_offsets(self, consumer: Consumer, partitions: Sequence[int]) -> dict[int, int]:
        """The group's offsets; none if the group does not return them, as messages read twice are counted."""
        if not partitions:
            return {}
        queries = [TopicPartition(self._topic, p) for p in partitions]
        with contextlib.suppress(KafkaException):
            return {tp.partition: tp.offset for tp in consumer.committed(queries, ASK_FOR_S) if tp.offset >= 0}
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
        self._losses.note(error)
        passes = error.code() in _TRANSIENT or (self._member is not None and error.code() in _GROUP_MOVES)
        if error.fatal() or not (passes or error.retriable()):
            self._failure = error


def _advance(positions: dict[int, int], messages: Sequence[Message], numbers: Mapping[str, int]) -> None:
    """Records the offsets after a batch. Offsets rise within a partition, so the last one of each is enough."""
    seen: set[int] = set()
    several = len(numbers) > 1
    for message in reversed(messages):
        partition, offset = message.partition(), message.offset()
        if several and partition is not None:
            partition += numbers.get(str(message.topic()), 0) * PLACES
        if partition is not None and offset is not None and partition in positions and partition not in seen:
            positions[partition] = offset + 1
            seen.add(partition)
            if len(seen) == len(positions):
                return


def _versions() -> dict[str, str]:
    return {
        "confluent-kafka": str(confluent_kafka.__version__),
        "librdkafka": str(confluent_kafka.libversion()[0]),
        "python": sys.version.split()[0],
    }


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client in this module."""
    return {
        "kafka-pub": Kind(
            "publisher", "confluent-kafka", _versions, lambda client, _: ConfluentPublisher(client), SYSTEM
        ),
        "kafka-sub": Kind(
            "subscriber", "confluent-kafka", _versions, lambda client, _: ConfluentSubscriber(client), SYSTEM
        ),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
