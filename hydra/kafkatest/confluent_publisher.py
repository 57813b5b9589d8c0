"""The publishing side of confluent-kafka clients."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hydra.kafkatest import batching
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import Complaint, common_config, made, text
from hydra.kafkatest.producer_statistics import ProducerCounts, Statistics, statistics_every_ms
from hydra.kafkatest.settings import MOST_RETRIES
from hydra.kafkatest.transports import ProducerTransport
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


class ConfluentPublisher(ProducerTransport[Producer]):
    """Hands messages to a librdkafka producer; the sequences in the delivery reports make the account."""

    def __init__(self, client: int) -> None:
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
        self._handed_over(first_sequence, count, began_ns)
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

    def close(self) -> None:
        """See transport.py. What was not sent is thrown away."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge(in_queue=True, in_flight=True, blocking=False)
            producer.poll(0)

    def _config(self, kafka: KafkaConfigure, message_size: int) -> dict[str, str | int | float]:
        return producer_config(self._client, kafka, message_size)

    def _made(self, config: Mapping[str, Any]) -> Producer:
        self._complaint.forget()
        self._statistics = Statistics()
        return made(Producer, {**config, "error_cb": self._complaint, "stats_cb": self._statistics})

    def _partitions_of(self, producer: Producer, topic: str) -> list[int]:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while True:
            try:
                described = producer.list_topics(topic, timeout=ASK_FOR_S).topics[topic]
                break
            except KafkaException as e:
                producer.poll(0)  # lets the library say what it ran into
                if self._complaint.refused or time.monotonic() > deadline:
                    raise OSError(f"Kafka does not answer: {self._complaint.explain(e)}") from None
        self._complaint.forget()
        if described.error is not None:
            raise OSError(f"Kafka does not know {topic}: {described.error.str()}")
        return sorted(described.partitions)

    def _forget(self) -> None:
        super()._forget()
        self._delivered: list[bytes] = []
        self._failed: list[bytes] = []

    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        producer, every_s = self._producer, self._built_from["statistics.interval.ms"] / 1000
        if producer is None:
            return {}
        achieved = self._statistics.fresh(lambda: producer.poll(every_s), STATISTICS_TRIES)
        return {} if achieved is None else (achieved - before).figures()

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        # Called once a message: only the payload is kept here, what is in it is looked at for many at once.
        (self._delivered if error is None else self._failed).append(message.value())  # type: ignore[arg-type]

    def _account(self, *, everywhere: bool = False) -> None:  # noqa: ARG002  # they come in no order
        if self._delivered:
            now_ns = time.monotonic_ns()
            headers = unpack_batch(self._delivered)
            self._delivered.clear()
            self._acknowledged(headers["sequence"][headers["epoch"] == self._epoch], now_ns)
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
