"""Kafka's Python clients against bare loops of the same libraries, and everything against Kafka's own tools.

The same broker and the same settings (100-byte records, acks 1, batches of 16,384 bytes, linger 5 ms, one partition,
what is alike everywhere), all in turn, medians of several rounds. Ours run over the real control channel, and every
figure of theirs is from their report. The targets: 0.75 of the bare loops.

Run: python bench/kafka_clients.py [--rounds N] [--payload zeros|random|json] [--library NAME] [--no-tools]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, get_args

import confluent_kafka
import kafka
import native_kafka  # type: ignore[import-not-found]  # beside this file, whose folder Python puts first

from hydra.client.payload import PayloadBlock
from hydra.kafkatest import confluent, kafka_python, property_table
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.model import Payload, SharedSettings

SECONDS: Final = 3.0
RECORDS: Final = {"kafka-python": 100_000, "confluent-kafka": 1_500_000}
"""What consumers read."""
TARGET: Final = 0.75
CHUNK: Final = native_kafka.MSG_BATCH
MODULES: Final = {"kafka-python": "hydra.kafkatest.kafka_python", "confluent-kafka": "hydra.kafkatest.confluent"}
OFFSETS: Final = {0: 0}


def told(bootstrap: str, topic: str) -> KafkaConfigure:
    """The settings of all."""
    return KafkaConfigure(bootstrap=bootstrap, topic=topic, offsets=OFFSETS, **native_kafka.OWN)


def bodies(payload: Payload) -> list[bytes]:
    """Whole messages of a kind, as ours have them behind their headers."""
    shared = SharedSettings(message_size=native_kafka.RECORD_BYTES, payload=payload)
    return [bytes(24) + body for body in PayloadBlock(shared).of(0, CHUNK)]


def bare_confluent_producer(bootstrap: str, topic: str, payload: Payload) -> float:
    """Counts what was delivered, messages/s."""
    config = confluent.producer_config(1, told(bootstrap, topic), native_kafka.RECORD_BYTES)
    producer, chunk = confluent_kafka.Producer(config), bodies(payload)
    producer.list_topics(topic, timeout=10)
    delivered = 0

    def report(error: object, _: object) -> None:
        nonlocal delivered
        delivered += error is None

    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        for message in chunk:
            try:
                producer.produce(topic, message, None, 0, report)
            except BufferError:
                producer.poll(0.005)
        producer.poll(0)
    producer.flush(10)
    return delivered / (time.monotonic() - began)


def bare_kafka_python_producer(bootstrap: str, topic: str, payload: Payload) -> float:
    """Keeps as many messages in flight as ours and counts the answers, messages/s."""
    config = kafka_python.producer_config(1, told(bootstrap, topic), native_kafka.RECORD_BYTES)
    most = config.pop(property_table.QUEUED)
    producer, chunk = kafka.KafkaProducer(**config), bodies(payload)
    producer.partitions_for(topic)
    in_flight: deque[Any] = deque()
    delivered = 0
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        if len(in_flight) >= most:
            in_flight[0].get(10)
        else:
            for message in chunk:
                in_flight.append(producer.send(topic, message, partition=0))
        while in_flight and in_flight[0].is_done:
            delivered += in_flight.popleft().succeeded()
    producer.flush(10)
    delivered += sum(future.succeeded() for future in in_flight)
    took = time.monotonic() - began
    producer.close()
    return float(delivered / took)


def bare_confluent_consumer(bootstrap: str, topic: str, records: int) -> float:
    """Takes batches and counts, messages/s from the first batch on."""
    consumer = confluent_kafka.Consumer(confluent.consumer_config(1, told(bootstrap, topic)))
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    first = count = len(consumer.consume(1, 10))
    began = time.monotonic()
    while count < records:
        count += len(consumer.consume(CHUNK, 0) or consumer.consume(1, 1.0))
    took = time.monotonic() - began
    consumer.close()
    return (count - first) / took


def bare_kafka_python_consumer(bootstrap: str, topic: str, records: int) -> float:
    """Takes batches and counts, messages/s from the first batch on."""
    consumer = kafka.KafkaConsumer(**kafka_python.consumer_config(1, told(bootstrap, topic)))
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek(kafka.TopicPartition(topic, 0), 0)
    first = count = 0
    began = time.monotonic()
    while count < records:
        found = consumer.poll(timeout_ms=1000, max_records=CHUNK)
        count += sum(len(batch) for batch in found.values())
        if not first and count:
            first, began = count, time.monotonic()
    took = time.monotonic() - began
    consumer.close()
    return (count - first) / took


BARE: Final[Mapping[str, Mapping[str, Callable[..., float]]]] = {
    "producer": {"kafka-python": bare_kafka_python_producer, "confluent-kafka": bare_confluent_producer},
    "consumer": {"kafka-python": bare_kafka_python_consumer, "confluent-kafka": bare_confluent_consumer},
}


def bare(role: str, library: str, bench: native_kafka.Bench, last: object) -> float:
    """A bare loop in a process of its own, as ours have one: a producer on a fresh topic, a consumer on the log."""
    topic = bench.topic()["topic"] if role == "producer" else bench.log_topic
    command = [sys.executable, __file__, "--bare", role, library, bench.bootstrap, topic, str(last)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    return float(done.stdout.split()[-1])


def compare(what: str, rounds: int, loops: Mapping[str, Callable[[], float]]) -> None:
    """Prints the medians, and the ratio of the first two."""
    ours, other, *_ = loops
    figures: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            figures[name].append(loop())
    print(f"{what}: " + ", ".join(f"{name} {median(values):,.0f}/s" for name, values in figures.items()))
    ratio = median(figures[ours]) / median(figures[other])
    each = " ".join(f"{x / y:.2f}" for x, y in zip(figures[ours], figures[other], strict=True))
    print(f"  {ours} / {other}: {ratio:.2f} (target {TARGET}; each round's {each})", flush=True)


def measure(options: argparse.Namespace) -> None:
    """Prints the medians of every library, role by role."""
    native_kafka.SHARED = replace(native_kafka.SHARED, payload=options.payload)
    native_kafka.SECONDS = SECONDS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(EmbeddedBroker(folder / "broker"))
        bench = native_kafka.Bench(folder, broker.bootstrap)
        for library in options.libraries or MODULES:
            program = [sys.executable, "-m", MODULES[library]]
            with native_kafka.Client(program, "kafka-pub") as publisher:
                loops: dict[str, Callable[[], float]] = {
                    "hydra": partial(bench.our_producer, publisher),
                    "bare": partial(bare, "producer", library, bench, options.payload),
                }
                if options.tools:
                    loops["ProducerPerformance"] = bench.java_producer
                for warm in list(loops.values())[:2]:
                    warm()
                compare(f"{library} producer", options.rounds, loops)
            bench.drop()
            records = RECORDS[library]
            bench.fill(program, records)
            loops = {
                "hydra": partial(bench.our_consumer, program),
                "bare": partial(bare, "consumer", library, bench, records),
            }
            if options.tools:
                loops["ConsumerPerformance"] = bench.java_consumer
            compare(f"{library} consumer", options.rounds, loops)
            bench.drop()


def main() -> int:
    """Prints medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--payload", choices=[kind for kind in get_args(Payload) if kind != "lines"], default="zeros")
    parser.add_argument("--library", dest="libraries", action="append", choices=MODULES, help="only this one")
    parser.add_argument("--no-tools", dest="tools", action="store_false", help="leave Kafka's own tools out")
    parser.add_argument("--bare", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        role, library, bootstrap, topic, last = options.bare
        print(BARE[role][library](bootstrap, topic, int(last) if role == "consumer" else last))
        return 0
    measure(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
