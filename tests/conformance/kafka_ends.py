"""The suite's own data ends for Kafka: a producer that follows a script and a consumer that keeps everything."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from hydra.wire.messages import PROBE_EPOCH
from tests.conformance.peer import packed, unpacked
from tests.suite.waiting import SOON_S, wait_until

IMPOSSIBLE = {"security.protocol": "carrier-pigeon", "connections.max.idle.ms": "soon"}
"""Properties with values that are refused at once everywhere: kafka-python takes the first one for plain text."""


@dataclass(frozen=True)
class Record:
    """One record as it stands in the topic."""

    partition: int
    epoch: int
    publisher: int
    sequence: int
    time_ns: int
    size: int


class Log:
    """One topic of a test's own, to be written and read; it goes with its broker."""

    def __init__(self, broker: LocalBroker, partitions: int, first_epoch: int = 0) -> None:
        self._broker = broker
        self._first_epoch = first_epoch
        self._topics = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
        self.partitions = partitions
        self.topic = self._topics.create("conformance", partitions)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0})

    def close(self) -> None:
        self._topics.end()

    def from_here(self) -> dict[str, Any]:
        """Kafka's part of a ``configure`` that starts at the present end."""
        return self.at(self.end())

    def at(self, offsets: dict[int, int]) -> dict[str, Any]:
        """Kafka's part of a ``configure`` that starts at these offsets."""
        return {"bootstrap": self._broker.bootstrap, "topic": self.topic, "offsets": offsets}

    def end(self) -> dict[int, int]:
        """The end offset of every partition."""
        return self._topics.end_offsets(self.topic)

    def end_of_data(self) -> dict[str, Any]:
        """Kafka's part of a ``finish`` for all that is there."""
        return {"end_offsets": self.end()}

    def stored_bytes(self) -> int:
        """The size of all records as the broker keeps them."""
        return sum(file.stat().st_size for file in self._broker.folder.rglob(f"{self.topic}-*/*.log"))

    def write(
        self, epoch: int, sequences: Iterable[int], *, publisher: int, partition: int | None = None, size: int = 24
    ) -> None:
        """Appends these sequences, over all partitions unless one is named, and waits until they are there."""
        for sequence in sequences:
            message = packed(self._first_epoch, epoch, publisher, sequence, time.time_ns(), size)
            where = sequence % self.partitions if partition is None else partition
            self._producer.produce(self.topic, message, partition=where)
        assert self._producer.flush(SOON_S) == 0

    def probe(self, epoch: int, *, publisher: int) -> None:
        """Appends one probe of a publisher that was configured for this epoch."""
        self.write(PROBE_EPOCH, [epoch], publisher=publisher)

    def read(self) -> list[Record]:
        """Everything from the first record to the present end."""
        end = self.end()
        settings = {"bootstrap.servers": self._broker.bootstrap, "group.id": "conformance", "log_level": 0}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self.topic, p, 0) for p in end])
        records: list[Record] = []

        def consume() -> None:
            for message in consumer.consume(10_000, 0.05):
                value, partition = message.value(), message.partition()
                assert value is not None
                assert partition is not None
                records.append(Record(partition, *unpacked(self._first_epoch, value), len(value)))

        def complete() -> bool:
            # A partition that grows meanwhile must not stand for another one.
            return Counter(record.partition for record in records) >= Counter(end)

        wait_until(complete, "all of the topic", between=consume, saw=lambda: end)
        consumer.close()
        return records


def kill(broker: LocalBroker) -> None:
    """Ends the broker as a power cut would."""
    assert broker.pids is not None
    os.kill(broker.pids[1], signal.SIGKILL)
