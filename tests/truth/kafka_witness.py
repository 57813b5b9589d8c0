"""A consumer and an admin client of our own at the topic of a run that somebody else steers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka import Consumer, TopicPartition

# The stubs do not export the two, the documentation does.
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from hydra.client.header import HEADER

LOOK_S = 0.02
"""How often the log's length is looked at."""


@dataclass(frozen=True, slots=True)
class Length:
    """How many records a topic's log had at some moment between the two (Unix time, ns)."""

    asked_ns: int
    told_ns: int
    records: int


def topics(bootstrap: str) -> set[str]:
    """The topics of a cluster."""
    return set(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).topics)


class LogWitness:
    """Reads the first topic that appears and is not in ``known``: its records, and the length of its log over time."""

    def __init__(self, bootstrap: str, known: set[str]) -> None:
        self._bootstrap, self._known = bootstrap, known
        self.records: Counter[int] = Counter()
        """Records by the epoch in their header; 0 are probes."""
        self.sequences: dict[int, set[int]] = {}
        self.lengths: list[Length] = []
        self._closing = threading.Event()
        self._topic = ""
        self._partitions: list[int] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._look)]
        self._found = threading.Event()
        for thread in self._threads:
            thread.start()

    @property
    def read(self) -> int:
        """How many records have been read."""
        return sum(self.records.values())

    def has_read(self, epoch: int, sequence: int) -> bool:
        """Whether this message has been read."""
        return sequence in self.sequences.get(epoch, ())

    def length_before(self, moment_ns: int) -> int:
        """The log's length as last told before a moment."""
        return [length.records for length in self.lengths if length.told_ns < moment_ns][-1]

    # --- the two clients -------------------------------------------------------------------------------------------

    def _look(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        while not self._closing.is_set():
            new = {
                name: sorted(described.partitions)
                for name, described in admin.list_topics(timeout=10).topics.items()
                if name not in self._known and described.partitions
            }
            if new:
                break
            self._closing.wait(LOOK_S)
        else:
            return
        ((self._topic, self._partitions),) = new.items()
        self._found.set()
        asked = {TopicPartition(self._topic, p): OffsetSpec.latest() for p in self._partitions}  # type: ignore[no-untyped-call]
        while not self._closing.wait(LOOK_S):
            asked_ns = time.time_ns()
            futures = admin.list_offsets(asked, request_timeout=5)
            answers = [future.exception() or future.result() for future in futures.values()]
            ends = [answer.offset for answer in answers if not isinstance(answer, BaseException)]
            # A topic that is not quite there, or about to go, has no length.
            if len(ends) == len(asked):
                self.lengths.append(Length(asked_ns, time.time_ns(), sum(ends)))

    def _read(self) -> None:
        while not self._found.wait(LOOK_S):
            if self._closing.is_set():
                return
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "witness", "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 0, "fetch.wait.max.ms": 20})
        consumer.assign([TopicPartition(self._topic, p, 0) for p in self._partitions])
        while not self._closing.is_set():
            for message in consumer.consume(10_000, 0.05):
                value = message.value()
                if message.error() is None and value is not None:
                    epoch, _, sequence, _ = HEADER.unpack_from(value)
                    self.records[epoch] += 1
                    self.sequences.setdefault(epoch, set()).add(sequence)
        consumer.close()

    def __enter__(self) -> LogWitness:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(10)
