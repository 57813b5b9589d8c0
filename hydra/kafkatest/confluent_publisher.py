"""The publishing side of confluent-kafka clients."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hydra.client.ack_latency import AckLatency
from hydra.client.acks import AckLedger
from hydra.client.transport import Delivery, read_system
from hydra.kafkatest import batching
from hydra.kafkatest.confluent_common import common_config, made
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import Complaint, text
from hydra.kafkatest.producer_statistics import Sent, Statistics, statistics_every_ms
from hydra.kafkatest.settings import MOST_RETRIES
from hydra.wire.header import unpack_batch
from hydra.wire.messages import Configure

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
        config = producer_config(self._client, kafka, command.settings.message_size)
        if self._producer is None or config != self._built_from:
            self.close()
            self._complaint.forget()
            self._statistics = Statistics()
            callbacks = {"error_cb": self._complaint, "stats_cb": self._statistics}
            self._producer = made(Producer, {**config, **callbacks})
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
        return Delivery.of(self._ledger, self._last_ack_ns, self._latency.histogram())

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


def producer_config(client: int, kafka: KafkaConfigure, message_size: int) -> dict[str, str | int | float]:
    """The library's configuration for these settings; ValueError where a property cannot be used."""
    size = kafka.batch_bytes or batching.batch_bytes(kafka.msg_batch, message_size)
    slack = 0 if kafka.batch_bytes else batching.LIBRDKAFKA_SLACK_BYTES
    # A size in bytes that was set is what ends a batch, as in every other implementation.
    most = batching.LIBRDKAFKA_MOST_MESSAGES if kafka.batch_bytes else kafka.msg_batch
    defaults = {
        "message.max.bytes": min(batching.request_bytes(size, message_size), batching.LIBRDKAFKA_MOST_BYTES),
        "queue.buffering.max.messages": batching.queue_messages(kafka.msg_batch),
    }
    return {
        **common_config(client, kafka, "publisher", defaults),
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
