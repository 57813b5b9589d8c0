"""An admin client and a consumer of our own at the topic of a run that somebody else steers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType

from confluent_kafka import Consumer, TopicPartition

# The stubs do not export the two, the documentation does.
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from hydra.wire.header import HEADER

LOOK_S = 0.02
"""How often the log's length is looked at."""
READ_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Length:
    """How many records a topic's log had at some moment between the two (Unix time, ns)."""

    asked_ns: int
    told_ns: int
    records: int


@dataclass(frozen=True, slots=True)
class Read:
    """Records and distinct sequences by the epoch in their header; epoch 0 are probes."""

    records: Counter[int] = field(default_factory=Counter)
    sequences: dict[int, set[int]] = field(default_factory=dict)


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

    def grown(self, after_ns: int, before_ns: int) -> int:
        """By how many records the log grew from the last look before ``after_ns`` to the first one after the other."""
        first = [length.records for length in self._lengths if length.told_ns < after_ns][-1]
        last = next(length.records for length in self._lengths if length.asked_ns > before_ns)
        return last - first

    def looked_after(self, moment_ns: int) -> bool:
        """Whether the log was looked at after a moment."""
        return any(length.asked_ns > moment_ns for length in self._lengths)

    def read(self) -> Read:
        """Everything that is in the log now, and perhaps a little of what follows."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "witness", "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 0})
        consumer.assign([TopicPartition(p.topic, p.partition, 0) for p in self._partitions])
        left = {p.partition: consumer.get_watermark_offsets(p, timeout=10)[1] for p in self._partitions}
        found = Read()
        deadline = time.monotonic() + READ_WITHIN_S
        while any(records > 0 for records in left.values()):
            assert time.monotonic() < deadline, f"not all of the log can be read: {left}"
            for message in consumer.consume(10_000, 0.1):
                value, partition = message.value(), message.partition()
                assert message.error() is None
                assert value is not None
                assert partition is not None
                epoch, _, sequence, _ = HEADER.unpack_from(value)
                found.records[epoch] += 1
                found.sequences.setdefault(epoch, set()).add(sequence)
                left[partition] -= 1
        consumer.close()
        return found

    def _topics(self) -> dict[str, list[int]]:
        described = self._admin.list_topics(timeout=10).topics
        return {name: sorted(topic.partitions) for name, topic in described.items() if topic.partitions}

    def _look(self) -> None:
        while not self._partitions and not self._closing.wait(LOOK_S):
            self._partitions = [
                TopicPartition(name, p) for name, ps in self._topics().items() if name not in self._known for p in ps
            ]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        while not self._closing.wait(LOOK_S):
            asked_ns = time.time_ns()
            futures = self._admin.list_offsets(dict.fromkeys(self._partitions, latest), request_timeout=5)
            # A topic that is not quite there, or about to go, has no length.
            if not any(future.exception(10) for future in futures.values()):
                records = sum(future.result().offset for future in futures.values())
                self._lengths.append(Length(asked_ns, time.time_ns(), records))

    def __enter__(self) -> LogWitness:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        self._thread.join(10)
