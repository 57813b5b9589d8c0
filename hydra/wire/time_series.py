"""The time series of a step: counts and latency of each second, sent by clients and added up by relays. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from hydra.model import Histogram
from hydra.wire.messages import MAX_SECONDS, SecondCounts

_BUCKETS_AT_ONCE: Final = 20_000
"""Most buckets in one message, far fewer than fit into it."""


class _Sum:
    """The sum of the counts and latencies of one second."""

    __slots__ = ("counts", "high", "low", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.counts: Counter[int] = Counter()
        self.low = self.high = 0

    def add(self, counts: SecondCounts) -> None:
        self.messages += counts.messages
        latency = counts.latency
        if latency.counts:
            self.low = min(self.low, latency.min_us) if self.counts else latency.min_us
            self.high = max(self.high, latency.max_us) if self.counts else latency.max_us
            self.counts.update(dict(zip(latency.counts[::2], latency.counts[1::2], strict=True)))

    def latency(self) -> Histogram:
        counts = [number for pair in sorted(self.counts.items()) for number in pair]
        return Histogram(counts, self.low, self.high) if counts else Histogram()


class TimeSeriesSum:
    """The sum of the time series that clients have sent for a step."""

    def __init__(self) -> None:
        self._sums: dict[int, _Sum] = {}

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add(self, counts: Iterable[SecondCounts]) -> None:
        """Adds the seconds of one message."""
        for second in counts:
            self._sums.setdefault(second.second, _Sum()).add(second)

    def take(self) -> list[SecondCounts]:
        """All seconds in rising order; the sum is empty afterwards."""
        sums, self._sums = self._sums, {}
        return [SecondCounts(second, sum_.messages, sum_.latency()) for second, sum_ in sorted(sums.items())]


def parts(seconds: list[SecondCounts]) -> list[list[SecondCounts]]:
    """The same seconds, split into as many lists as messages are needed."""
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
