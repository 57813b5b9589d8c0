"""Bare loops of Kafka's Python libraries, with Hydra's settings.

Run: python -m bench.clients.kafka_loop producer|consumer LIBRARY BOOTSTRAP TOPIC SECONDS|RECORDS

A producer sends for SECONDS and counts what was delivered; a consumer reads RECORDS from the beginning. Both print
messages/s, and what a message took of the CPU (µs).
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import confluent_kafka
import kafka

from hydra.client.payload import PayloadBlock
from hydra.kafkatest import confluent_config, kafka_python_config, property_table
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.model import SharedSettings

Role = Literal["producer", "consumer"]
Library = Literal["confluent-kafka", "kafka-python"]

RECORD_BYTES: Final = 100
CHUNK: Final = 1_000
OWN: Final[Mapping[str, Any]] = {"msg_batch": CHUNK, "linger_ms": 5.0, "batch_bytes": 16_384}
"""Settings of all sides; batches and linger are the defaults of Kafka's own producer."""
MODULES: Final[Mapping[str, str]] = {
    "confluent-kafka": "hydra.kafkatest.confluent",
    "kafka-python": "hydra.kafkatest.kafka_python",
}


def configuration(bootstrap: str, topic: str) -> KafkaConfigure:
    """The settings as Hydra's clients receive them."""
    return KafkaConfigure(bootstrap=bootstrap, topic=topic, offsets={0: 0}, **OWN)


def bodies() -> list[bytes]:
    """Whole messages, as those of Hydra's clients behind their headers."""
    return [bytes(24) + body for body in PayloadBlock(SharedSettings(message_size=RECORD_BYTES)).of(0, CHUNK)]


class Loop(NamedTuple):
    """What a loop has done: messages, those of its rate, seconds, and CPU seconds."""

    messages: int
    timed: int
    took_s: float
    cpu_s: float


def confluent_producer(bootstrap: str, topic: str, seconds: float) -> Loop:
    """Counts what was delivered."""
    config = confluent_config.producer_config(1, configuration(bootstrap, topic), RECORD_BYTES)
    producer, chunk = confluent_kafka.Producer(config), bodies()
    producer.list_topics(topic, timeout=10)
    delivered = 0

    def report(error: object, _: object) -> None:
        nonlocal delivered
        delivered += error is None

    began, cpu_s = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        for message in chunk:
            try:
                producer.produce(topic, message, None, 0, report)
            except BufferError:
                producer.poll(0.005)
        producer.poll(0)
    producer.flush(10)
    return Loop(delivered, delivered, time.monotonic() - began, time.process_time() - cpu_s)


def kafka_python_producer(bootstrap: str, topic: str, seconds: float) -> Loop:
    """Keeps as many messages in flight as Hydra's client and counts the answers."""
    config = kafka_python_config.producer_config(1, configuration(bootstrap, topic), RECORD_BYTES)
    most = config.pop(property_table.QUEUED)
    producer, chunk = kafka.KafkaProducer(**config), bodies()
    producer.partitions_for(topic)
    in_flight: deque[Any] = deque()
    delivered = 0
    began, cpu_s = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        if len(in_flight) >= most:
            in_flight[0].get(10)
        else:
            for message in chunk:
                in_flight.append(producer.send(topic, message, partition=0))
        while in_flight and in_flight[0].is_done:
            delivered += in_flight.popleft().succeeded()
    producer.flush(10)
    delivered += sum(future.succeeded() for future in in_flight)
    done = Loop(delivered, delivered, time.monotonic() - began, time.process_time() - cpu_s)
    producer.close()
    return done


def confluent_consumer(bootstrap: str, topic: str, records: float) -> Loop:
    """Takes batches and counts, from the first message on."""
    consumer = confluent_kafka.Consumer(confluent_config.consumer_config(1, configuration(bootstrap, topic)))
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    cpu_s = time.process_time()
    first = count = len(consumer.consume(1, 10))
    began = time.monotonic()
    while count < records:
        count += len(consumer.consume(CHUNK, 0) or consumer.consume(1, 1.0))
    done = Loop(count, count - first, time.monotonic() - began, time.process_time() - cpu_s)
    consumer.close()
    return done


def kafka_python_consumer(bootstrap: str, topic: str, records: float) -> Loop:
    """Takes batches and counts, from the first batch on."""
    consumer = kafka.KafkaConsumer(**kafka_python_config.consumer_config(1, configuration(bootstrap, topic)))
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek(kafka.TopicPartition(topic, 0), 0)
    first = count = 0
    began, cpu_s = time.monotonic(), time.process_time()
    while count < records:
        found = consumer.poll(timeout_ms=1000, max_records=CHUNK)
        count += sum(len(batch) for batch in found.values())
        if not first and count:
            first, began = count, time.monotonic()
    done = Loop(count, count - first, time.monotonic() - began, time.process_time() - cpu_s)
    consumer.close()
    return done


LOOPS: Final[Mapping[tuple[str, str], Callable[[str, str, float], Loop]]] = {
    ("producer", "confluent-kafka"): confluent_producer,
    ("producer", "kafka-python"): kafka_python_producer,
    ("consumer", "confluent-kafka"): confluent_consumer,
    ("consumer", "kafka-python"): kafka_python_consumer,
}


if __name__ == "__main__":
    role, library, bootstrap, topic, last = sys.argv[1:]
    done = LOOPS[role, library](bootstrap, topic, float(last))
    print(done.timed / done.took_s, done.cpu_s * 1e6 / done.messages)
