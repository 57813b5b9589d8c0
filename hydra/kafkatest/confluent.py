"""confluent-kafka clients: ``kafka-pub`` and ``kafka-sub`` on librdkafka."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from hydra.client import group
from hydra.client.ack_latency import AckLatency
from hydra.client.acks import AckLedger
from hydra.client.transport import DEAF_AT_MOST_S, Delivery, Kind, read_system
from hydra.errors import UsageError
from hydra.kafkatest import batching
from hydra.kafkatest.achieved import Sent, Statistics, statistics_every_ms
from hydra.kafkatest.alike import alike
from hydra.kafkatest.complaint import Complaint, text
from hydra.kafkatest.membership import ASK_FOR_S as ASK_GROUP_FOR_S
from hydra.kafkatest.membership import JOIN_WITHIN_S, Membership
from hydra.kafkatest.properties import confluent_config
from hydra.kafkatest.settings import MOST_RETRIES
from hydra.kafkatest.wire import KafkaConfigure, KafkaFinish
from hydra.model import Role
from hydra.wire.header import unpack_batch
from hydra.wire.messages import Configure, SystemObject

if TYPE_CHECKING:
    from hydra.control.client import ControlClient

CONNECT_TIMEOUT_S: Final = 10.0
ASK_FOR_S: Final = 1.0
"""How long one question for the topic waits; in between it is looked whether the cluster refuses us."""
FULL_WAIT_S: Final = 0.005
ANSWERS_EVERY_S: Final = 0.0005
"""How often answers are looked for while some are missing."""
STATISTICS_TRIES: Final = 3
"""Statistics are waited for as long as so many of their intervals."""
PROBE_FLUSH_S: Final = 0.05
FLUSH_STEP_S: Final = 0.005
RECONNECT_WAIT_S: Final = 1.0

_C = TypeVar("_C", Producer, Consumer)

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


class Publisher:
    """Hands messages to a librdkafka producer; the sequences in the delivery reports make the account."""

    marks_end = False

    def __init__(self, client: int) -> None:
        self._client = client
        self._producer: Producer | None = None
        self._complaint = Complaint()
        self._built_from: object = None
        self._topic = ""
        self._partitions: list[int] = []
        self._epoch = 0
        self._acks = "1"
        self._batch_bytes = 0
        self._ledger = AckLedger()
        self._latency = AckLatency(self._ledger)
        self._last_ack_ns = 0
        self._statistics = Statistics()
        self._statistics_s = 0.0
        self._sent_before: Sent | None = None
        self._delivered: list[bytes] = []
        self._failed: list[bytes] = []

    def configure(self, command: Configure) -> str:
        """See transport.py. A change of a producer's settings makes a new one."""
        kafka = read_system(command.system, KafkaConfigure)
        config = _producer_config(self._client, kafka, command.settings.message_size)
        if self._producer is None or config != self._built_from:
            self.close()
            self._complaint.forget()
            self._statistics = Statistics()
            callbacks = {"error_cb": self._complaint, "stats_cb": self._statistics}
            self._producer = _made(Producer, {**config, **callbacks})
            self._built_from = config
        self._partitions = _partitions(self._producer, kafka.topic, self._complaint)
        self._topic, self._epoch, self._acks = kafka.topic, command.epoch, kafka.acks
        self._batch_bytes = int(config["batch.size"])
        self._statistics_s = int(config["statistics.interval.ms"]) / 1000
        self._ledger, self._last_ack_ns, self._sent_before = AckLedger(), 0, None
        self._latency = AckLatency(self._ledger)
        self._delivered.clear()
        self._failed.clear()
        return ""

    def probe(self, message: bytes) -> None:
        """See transport.py. Goes to every partition, so that a probe proves all of them."""
        producer = self._opened()
        for partition in self._partitions:
            with contextlib.suppress(BufferError):
                producer.produce(self._topic, message, None, partition)
        # A flush sends what would linger.
        producer.flush(PROBE_FLUSH_S)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. A message's partition is its sequence modulo the partitions."""
        producer, topic, partitions = self._opened(), self._topic, self._partitions
        produce, n, count = producer.produce, len(partitions), 0
        reported = None if self._acks == "0" else self._on_delivery
        if self._sent_before is None:
            self._sent_before = self._statistics.so_far()
        began_ns = time.monotonic_ns()
        try:
            if n == 1:
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
        self._ledger.accept(count)
        self._latency.handed_over(first_sequence, count, began_ns, time.monotonic_ns())
        if full:
            producer.poll(FULL_WAIT_S)
            self._account()
        return count

    def poll(self) -> float | None:
        """See transport.py."""
        if self._producer is None:
            return None
        self._producer.poll(0)
        self._account()
        return ANSWERS_EVERY_S if self._acks != "0" and self._ledger.pending else None

    def framed_bytes(self, message_size: int) -> int | None:
        """See transport.py. Records share a batch."""

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        producer, deadline = self._opened(), time.monotonic() + timeout_s
        while True:
            left_s = max(deadline - time.monotonic(), 0)
            # In small steps: the time of the last answer is that of the step, not of the one that never comes.
            left = producer.flush(min(left_s, FLUSH_STEP_S))
            self._account()
            if not left or not left_s:
                return not left

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        if self._acks == "0":
            return None
        ledger = self._ledger
        return Delivery(
            ledger.acknowledged,
            ledger.failed,
            ledger.pending,
            self._last_ack_ns,
            ledger.unacknowledged(),
            self._latency.histogram(),
        )

    def report_system(self) -> dict[str, Any]:
        """``batch.size`` as the producer got it, and what it made of the messages, if the library tells in time."""
        producer, before, figures = self._producer, self._sent_before, dict[str, float]()
        if producer is not None and before is not None:
            achieved = self._statistics.fresh(lambda: producer.poll(self._statistics_s), STATISTICS_TRIES)
            figures = {} if achieved is None else (achieved - before).figures()
        return {"batch_bytes": self._batch_bytes, **figures}

    def close(self) -> None:
        """See transport.py. What was not sent is thrown away."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge(in_queue=True, in_flight=True, blocking=False)
            producer.poll(0)

    def _opened(self) -> Producer:
        if self._producer is None:
            raise OSError("the publisher is not configured")
        return self._producer

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        # Called once a message: only the payload is kept here, what is in it is looked at for many at once.
        (self._delivered if error is None else self._failed).append(message.value())  # type: ignore[arg-type]

    def _account(self) -> None:
        if self._delivered:
            now_ns = time.monotonic_ns()
            headers = unpack_batch(self._delivered)
            self._delivered.clear()
            ours = headers["sequence"][headers["epoch"] == self._epoch]
            if len(ours):
                self._last_ack_ns = now_ns
                self._latency.acknowledged(ours, now_ns)
                self._ledger.acknowledge(ours)
        if self._failed:
            headers = unpack_batch(self._failed)
            self._failed.clear()
            self._ledger.fail(headers["sequence"][headers["epoch"] == self._epoch])


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
        config = _consumer_config(self._client, kafka)
        fresh = self._consumer is None or config != self._built_from
        if fresh:
            self.close()
            self._built_from = config
            self._config = {**config, "error_cb": self._on_error, "on_commit": self._on_commit}
            self._consumer = _made(Consumer, self._config)
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
        consumer = self._consumer = _made(Consumer, self._config)
        if self._member is None:
            self._assign()
        else:
            self._subscribe()
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
        if consumer is not None:
            consumer.close()  # hands the partitions back, see _on_revoke

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
            self._subscribe()
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

    def _subscribe(self) -> None:
        handlers = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        try:
            self._opened().subscribe([self._topic], **handlers)
        except KafkaException as e:
            raise OSError(f"Kafka refuses to subscribe to {self._topic}: {text(e)}") from None

    def _on_assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if self._member is None:
            return
        ours = [tp.partition for tp in partitions if tp.topic == self._topic]
        offsets = self._member.given(ours, self._asked(consumer, ours))
        consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])

    def _on_revoke(self, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        if self._member is not None:
            # The library answers the group after this has arrived.
            self._commit(self._member.uncommitted(now=True), consumer)
            self._member.lost()
        consumer.unassign()

    def _on_lost(self, consumer: Consumer, _: Sequence[TopicPartition]) -> None:
        if self._member is not None:
            self._member.lost()
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


def _common_config(
    client: int, kafka: KafkaConfigure, role: Role, defaults: Mapping[str, int] | None = None
) -> dict[str, str | int | float]:
    """What both have; the user's properties replace what is alike everywhere and the further ``defaults``."""
    try:
        given = confluent_config(kafka.properties, role)
    except UsageError as e:
        raise ValueError(str(e)) from None
    return {
        "log_level": 0,  # errors come as callbacks; lines on stderr would only fill the sandbox
        **alike(role),
        **(defaults or {}),
        **given,
        "bootstrap.servers": kafka.bootstrap,
        "client.id": f"hydra-{client}",
    }


def _producer_config(client: int, kafka: KafkaConfigure, message_size: int) -> dict[str, str | int | float]:
    size = kafka.batch_bytes or batching.batch_bytes(kafka.msg_batch, message_size)
    slack = 0 if kafka.batch_bytes else batching.LIBRDKAFKA_SLACK_BYTES
    # A size in bytes that was set is what ends a batch, as in every other implementation.
    most = batching.LIBRDKAFKA_MOST_MESSAGES if kafka.batch_bytes else kafka.msg_batch
    defaults = {
        "message.max.bytes": min(batching.request_bytes(size, message_size), batching.LIBRDKAFKA_MOST_BYTES),
        "queue.buffering.max.messages": batching.queue_messages(kafka.msg_batch),
    }
    return {
        **_common_config(client, kafka, "publisher", defaults),
        "acks": kafka.acks,
        "linger.ms": kafka.linger_ms,
        "compression.type": kafka.compression,
        "batch.size": min(size + slack, batching.LARGEST_BATCH_BYTES),
        "batch.num.messages": min(most, batching.LIBRDKAFKA_MOST_MESSAGES),
        "enable.idempotence": "true" if kafka.idempotence else "false",
        "retries": MOST_RETRIES if kafka.retries is None else kafka.retries,
        "max.in.flight": kafka.max_in_flight,
        "delivery.timeout.ms": kafka.delivery_timeout_ms,
        "queue.buffering.max.kbytes": batching.queue_bytes(kafka.buffer_memory, message_size) // 1024,
        "statistics.interval.ms": statistics_every_ms(len(kafka.offsets)),
    }


def _consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, str | int | float]:
    fetches: dict[str, str | int | float] = {
        "fetch.min.bytes": kafka.fetch_min_bytes,
        "fetch.wait.max.ms": kafka.fetch_wait_max_ms,
        "fetch.max.bytes": kafka.fetch_max_bytes,
        "max.partition.fetch.bytes": kafka.max_partition_fetch_bytes,
        "check.crcs": str(kafka.check_crcs).lower(),
    }
    group: dict[str, str | int | float] = {}
    if kafka.group and kafka.session_timeout_ms is not None:
        group = _session_config(kafka.session_timeout_ms)
    return {
        **fetches,
        **group,
        **_common_config(client, kafka, "subscriber"),
        # It is what producers send at most; for a consumer only a lower bound of fetch.max.bytes.
        "message.max.bytes": 1000,
        # The library insists on a group; one of its own, never joined, keeps it apart from everybody.
        "group.id": kafka.group or f"hydra-{client}-{os.getpid()}",
        "partition.assignment.strategy": "range",
        "auto.offset.reset": "error",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
    }


def _session_config(session_timeout_ms: int) -> dict[str, str | int | float]:
    """After which silence a member counts as dead; what the library relates to it goes along."""
    return {
        "session.timeout.ms": session_timeout_ms,
        "heartbeat.interval.ms": max(1, min(3000, session_timeout_ms // 3)),
        "max.poll.interval.ms": max(300_000, session_timeout_ms),
    }


def _made(kind: type[_C], config: Mapping[str, object]) -> _C:
    try:
        return kind(dict(config))
    except KafkaException as e:
        raise ValueError(f"Kafka's library refuses the configuration: {text(e)}") from None


def _partitions(producer: Producer, topic: str, complaint: Complaint) -> list[int]:
    """The topic's partitions; asking for them also opens the connection before the first message."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            described = producer.list_topics(topic, timeout=ASK_FOR_S).topics[topic]
            break
        except KafkaException as e:
            producer.poll(0)  # lets the library say what it ran into
            if complaint.refused or time.monotonic() > deadline:
                raise OSError(f"Kafka does not answer: {complaint.explain(e)}") from None
    complaint.forget()
    if described.error is not None:
        raise OSError(f"Kafka does not know {topic}: {described.error.str()}")
    return sorted(described.partitions)


def _versions() -> dict[str, str]:
    return {
        "confluent-kafka": str(confluent_kafka.__version__),
        "librdkafka": str(confluent_kafka.libversion()[0]),
        "python": sys.version.split()[0],
    }


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""

    def publisher(client: int, _control: ControlClient) -> Publisher:
        return Publisher(client)

    def subscriber(client: int, _control: ControlClient) -> Subscriber:
        return Subscriber(client)

    return {
        "kafka-pub": Kind("publisher", "confluent-kafka", _versions, publisher),
        "kafka-sub": Kind("subscriber", "confluent-kafka", _versions, subscriber),
    }


if __name__ == "__main__":
    sys.exit(group.main(kinds()))
