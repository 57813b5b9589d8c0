"""The test's admin client and consumer at the topic of a run of another process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

# The stubs do not export the two, the documentation does.
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from hydra.wire.data_message import HEADER
from tests.suite.waiting import SOON_S, wait_until

LOOK_S = 0.02
"""How often the log's length is looked at."""


@dataclass(frozen=True, slots=True)
class Length:
    """How many records each partition of a topic had at some moment after this one (Unix time, ns)."""

    request_ns: int
    records: dict[int, int]


@dataclass(frozen=True, slots=True)
class Read:
    """Records and distinct sequences by the epoch in their header; the partitions and offsets of probes (epoch 0)."""

    records: Counter[int] = field(default_factory=Counter)
    sequences: dict[int, set[int]] = field(default_factory=dict)
    probes: list[tuple[int, int]] = field(default_factory=list)


class LogWitness:
    """Keeps looking at the first topic that appears on a cluster after this object."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._known = set(self._topics())
        self._lengths: list[Length] = []
        self._partitions: list[TopicPartition] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def grown(self, before_ns: int, read: Read) -> int:
        """The records that the log had at the first look after a moment, without the probes among them."""
        length = next(length for length in self._lengths if length.request_ns > before_ns)
        return sum(length.records.values()) - sum(offset < length.records[p] for p, offset in read.probes)

    def looked_after(self, moment_ns: int) -> bool:
        """Whether the log was looked at after a moment."""
        return any(length.request_ns > moment_ns for length in self._lengths)

    def read(self) -> Read:
        """Everything that is in the log now, and perhaps a little of what follows."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "witness", "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 0})
        consumer.assign([TopicPartition(p.topic, p.partition, 0) for p in self._partitions])
        left = {p.partition: consumer.get_watermark_offsets(p, timeout=SOON_S)[1] for p in self._partitions}
        found = Read()

        def consume() -> None:
            for message in consumer.consume(10_000, 0.1):
                value, partition, offset = message.value(), message.partition(), message.offset()
                assert message.error() is None
                assert value is not None
                assert partition is not None
                assert offset is not None
                epoch, _, sequence, _ = HEADER.unpack_from(value)
                found.records[epoch] += 1
                found.sequences.setdefault(epoch, set()).add(sequence)
                if epoch == 0:
                    found.probes.append((partition, offset))
                left[partition] -= 1

        wait_until(lambda: max(left.values()) <= 0, "all of the log", between=consume, saw=lambda: left)
        consumer.close()
        return found

    def _topics(self) -> dict[str, list[int]]:
        described = self._admin.list_topics(timeout=SOON_S).topics
        return {name: sorted(topic.partitions) for name, topic in described.items() if topic.partitions}

    def _look(self) -> None:
        while not self._partitions and not self._closing.wait(LOOK_S):
            self._partitions = [
                TopicPartition(name, p) for name, ps in self._topics().items() if name not in self._known for p in ps
            ]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        while not self._closing.wait(LOOK_S):
            request_ns = time.time_ns()
            futures = self._admin.list_offsets(dict.fromkeys(self._partitions, latest), request_timeout=SOON_S)
            # A topic that is not quite there, or about to go, has no length.
            if not any(future.exception(SOON_S) for future in futures.values()):
                records = {at.partition: future.result().offset for at, future in futures.items()}
                self._lengths.append(Length(request_ns, records))

    def close(self) -> None:
        """Looks no more."""
        self._closing.set()
        self._thread.join(SOON_S)
