"""The course of a step: what happened in each of its seconds, as clients tell it and as relays add it up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from hydra.model import Histogram
from hydra.wire.messages import MAX_SECONDS, SecondCounts

_BUCKETS_AT_ONCE: Final = 20_000
"""Of one message: far below what fits into it."""


class _Sum:
    """What is known of one second."""

    __slots__ = ("counts", "high", "low", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.counts: Counter[int] = Counter()
        self.low = self.high = 0

    def add(self, told: SecondCounts) -> None:
        self.messages += told.messages
        latency = told.latency
        if latency.counts:
            self.low = min(self.low, latency.min_us) if self.counts else latency.min_us
            self.high = max(self.high, latency.max_us) if self.counts else latency.max_us
            self.counts.update(dict(zip(latency.counts[::2], latency.counts[1::2], strict=True)))

    def latency(self) -> Histogram:
        counts = [number for pair in sorted(self.counts.items()) for number in pair]
        return Histogram(counts, self.low, self.high) if counts else Histogram()


class TimeSeriesSum:
    """What has been told of the seconds of a step, added up."""

    def __init__(self) -> None:
        self._sums: dict[int, _Sum] = {}

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add(self, told: Iterable[SecondCounts]) -> None:
        """Takes what somebody has told, beside what is there."""
        for second in told:
            self._sums.setdefault(second.second, _Sum()).add(second)

    def take(self) -> list[SecondCounts]:
        """All of it, by rising seconds; nothing is left."""
        sums, self._sums = self._sums, {}
        return [SecondCounts(second, it.messages, it.latency()) for second, it in sorted(sums.items())]


def parts(seconds: list[SecondCounts]) -> list[list[SecondCounts]]:
    """The same in as many messages as it takes."""
    made: list[list[SecondCounts]] = []
    buckets = 0
    for second in seconds:
        size = len(second.latency.counts) // 2
        if not made or buckets + size > _BUCKETS_AT_ONCE or len(made[-1]) == MAX_SECONDS:
            made.append([])
            buckets = 0
        made[-1].append(second)
        buckets += size
    return made
