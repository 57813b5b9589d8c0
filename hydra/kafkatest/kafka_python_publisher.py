"""The publishing side of kafka-python clients."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from kafka import KafkaProducer
from kafka.codec import gzip_encode
from kafka.errors import KafkaError
from kafka.record import default_records

from hydra.client.transport import read_system
from hydra.kafkatest import batching, kafka_python_common
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.kafka_python_common import common_config, explained, text
from hydra.kafkatest.producer_statistics import Counting, ProducerCounts
from hydra.kafkatest.property_table import QUEUED
from hydra.kafkatest.settings import MOST_RETRIES
from hydra.kafkatest.transports import ProducerTransport
from hydra.wire.messages import Configure

FULL_WAIT_S: Final = 0.005
ANSWERS_EVERY_S: Final = 0.0005
"""How often answers are looked for while some are missing."""
PROBE_FLUSH_S: Final = 0.05
FLUSH_STEP_S: Final = 0.05
CLOSE_WAIT_S: Final = 0.3

# As zlib, librdkafka and the Java client do it unless told otherwise; the library's own 9 takes several times as long.
default_records.gzip_encode = partial(gzip_encode, compresslevel=6)


class KafkaPythonPublisher(ProducerTransport[Any]):
    """Hands messages to a KafkaProducer and keeps its futures in order until they have an answer.

    The library's own buffer has no bound, so the messages without an answer are bounded here.
    """

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self._most_in_flight = 1
        self._counting = Counting()

    def configure(self, command: Configure) -> str:
        """See transport.py."""
        endpoint = super().configure(command)
        kafka, size = read_system(command.system, KafkaConfigure), command.settings.message_size
        self._batch_bytes = self._built_from["batch_size"]
        self._most_in_flight = min(self._built_from[QUEUED], batching.queue_bytes(kafka.buffer_memory, size) // size)
        return endpoint

    def probe(self, message: bytes) -> None:
        """See transport.py. Goes to every partition, so that a probe proves all of them."""
        producer = self._opened()
        with contextlib.suppress(KafkaError):
            for partition in self._partitions:
                producer.send(self._topic, message, partition=partition)
            # A flush sends what would linger.
            producer.flush(PROBE_FLUSH_S)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. A message's partition is its sequence modulo the partitions."""
        producer, topic, partitions = self._opened(), self._topic, self._partitions
        in_flight, n = self._in_flight, len(partitions)
        room = self._most_in_flight - len(in_flight)
        if room < len(messages):
            self._account()
            room = self._most_in_flight - len(in_flight)
            if room <= 0:
                with contextlib.suppress(KafkaError):
                    in_flight[0][1].get(FULL_WAIT_S)
                return 0
        if self._sent_before is None:
            self._sent_before = self._counting.so_far()
        count, began_ns = 0, time.monotonic_ns()
        try:
            for message in messages[:room]:
                sequence = first_sequence + count
                future = producer.send(topic, message, partition=partitions[sequence % n])
                in_flight.append((sequence, future))
                count += 1
        except KafkaError as e:
            raise OSError(f"Kafka refuses a message for {topic}: {text(e)}") from None
        finally:
            self._handed_over(first_sequence, count, began_ns)
            self._counting.payload_bytes += sum(map(len, messages[:count]))
        return count

    def poll(self) -> float | None:
        """See transport.py."""
        self._account()
        return ANSWERS_EVERY_S if self._in_flight else None

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        producer, deadline = self._opened(), time.monotonic() + timeout_s
        flushed = False
        while True:
            self._account()
            left_s = deadline - time.monotonic()
            if left_s <= 0 or (flushed and not self._in_flight):
                return not self._in_flight
            # The library's timeout holds for each batch anew, so it gets small ones.
            with contextlib.suppress(KafkaError):
                producer.flush(min(left_s, FLUSH_STEP_S))
                flushed = True

    def close(self) -> None:
        """See transport.py. What was not sent is thrown away."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # close() alone waits for a broker that may be gone, and raises instead of closing when that takes long.
            # Told before, the sender's thread gives up what it has. There is no public way to say so.
            producer._sender.force_close()
            producer._sender.join(CLOSE_WAIT_S)
            with contextlib.suppress(KafkaError):
                producer.close(timeout=0)

    def _config(self, kafka: KafkaConfigure, message_size: int) -> dict[str, Any]:
        return producer_config(self._client, kafka, message_size)

    def _made(self, config: Mapping[str, Any]) -> Any:
        with explained():
            producer = KafkaProducer(**{name: it for name, it in config.items() if name != QUEUED})
        producer._sender._sensors = self._counting = Counting()
        return producer

    def _partitions_of(self, producer: Any, topic: str) -> list[int]:
        with explained():
            return sorted(producer.partitions_for(topic))

    def _forget(self) -> None:
        super()._forget()
        self._in_flight: deque[tuple[int, Any]] = deque()

    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        figures = (self._counting.so_far() - before).figures()
        if self._ledger.acknowledged < self._ledger.sent:
            # Of what is still waiting nobody knows how much has been sent.
            figures.pop("compression_ratio", None)
        return figures

    def _account(self, *, everywhere: bool = False) -> None:
        # They come first at the front.
        in_flight = self._in_flight
        good: list[int] = []
        bad: list[int] = []
        while in_flight and in_flight[0][1].is_done:
            sequence, future = in_flight.popleft()
            (good if future.exception is None else bad).append(sequence)
        if everywhere:
            for _ in range(len(in_flight)):
                sequence, future = in_flight.popleft()
                if future.is_done:
                    (good if future.exception is None else bad).append(sequence)
                else:
                    in_flight.append((sequence, future))
        self._acknowledged(np.array(good, np.int64), time.monotonic_ns())
        if bad:
            self._ledger.fail(np.array(bad, np.int64))


def producer_config(client: int, kafka: KafkaConfigure, message_size: int) -> dict[str, Any]:
    """The library's configuration for these settings; ValueError where a property cannot be used."""
    size = kafka.batch_bytes or batching.batch_bytes(kafka.msg_batch, message_size)
    defaults = {
        "max_request_size": batching.request_bytes(size, message_size),
        QUEUED: batching.queue_messages(kafka.msg_batch),
    }
    common = common_config(client, kafka, "publisher", defaults)
    # The library insists on time for a request within that for a delivery.
    request_ms = min(common["request_timeout_ms"], kafka.delivery_timeout_ms - kafka.linger_ms)
    return {
        "max_block_ms": kafka_python_common.CONNECT_TIMEOUT_MS,
        **common,
        "request_timeout_ms": max(int(request_ms), 1),
        "acks": "all" if kafka.acks == "all" else int(kafka.acks),
        "linger_ms": kafka.linger_ms,
        "compression_type": None if kafka.compression == "none" else kafka.compression,
        "batch_size": size,
        "enable_idempotence": kafka.idempotence,
        "retries": MOST_RETRIES if kafka.retries is None else kafka.retries,
        "max_in_flight_requests_per_connection": kafka.max_in_flight,
        "delivery_timeout_ms": kafka.delivery_timeout_ms,
        "allow_auto_create_topics": False,
    }
