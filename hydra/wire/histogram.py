"""Latency counts of one client and one step, and their sums; :mod:`hydra.wire.buckets` has the indexes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import LATENCY_HIGHEST_US, Histogram
from hydra.wire.buckets import BUCKETS, HALF_BITS, SUB_BUCKET_BITS, highest_of, index_of, lowest_of, mirrored

SCALAR_LIMIT: Final = 32
"""Batches up to this size are counted one by one: below it numpy's cost per call dominates (bench/growth.py)."""
_COARSE_BITS: Final = 8


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of the counts. ValueError: an index is outside the range of the buckets."""
    counts = np.zeros(2 * BUCKETS, np.int64)  # from index -BUCKETS on
    low, high = LATENCY_HIGHEST_US, -LATENCY_HIGHEST_US
    for h in histograms:
        if not h.counts:
            continue
        pairs = np.array(h.counts, np.int64)
        at = pairs[0::2] + BUCKETS
        if len(pairs) % 2 or int(at.min()) < 0 or int(at.max()) >= len(counts):
            raise ValueError(
                f"a latency histogram has pairs of an index, from {-BUCKETS} to {BUCKETS - 1}, and a count"
            )
        # An index occurs once in a histogram, so a plain indexed addition is exact.
        counts[at] += pairs[1::2]
        low, high = min(low, h.min_us), max(high, h.max_us)
    used = np.flatnonzero(counts)
    if not len(used):
        return Histogram()
    return Histogram(np.column_stack((used - BUCKETS, counts[used])).ravel().tolist(), low, high)


class LatencyRecorder:
    """Counts the latencies of messages, whole batches at a time.

    A latency is rounded down to µs, so -1 ns counts as -1 µs; a latency beyond ±1 h counts as ±1 h. The counts are
    pages of the kernel, which take no memory until they are touched; those of numpy's zeros may be used memory that is
    written to. A second recorder counts latencies below zero by their opposites; most clients never need it.
    """

    __slots__ = ("_below", "_cells", "_counts", "_high", "_low", "_max_us", "_min_us")

    def __init__(self) -> None:
        self._counts = np.frombuffer(mmap(-1, 8 * BUCKETS, MAP_PRIVATE | MAP_ANONYMOUS), np.int64)
        # Item access through a memoryview is several times cheaper than through the array.
        self._cells = memoryview(self._counts)  # type: ignore[arg-type]  # numpy's buffer, typed only from 3.12
        self._low = BUCKETS
        self._high = -1
        self._min_us = LATENCY_HIGHEST_US
        self._max_us = 0
        self._below: LatencyRecorder | None = None

    def record(self, times_ns: npt.NDArray[np.uint64], now_ns: int | npt.NDArray[np.int64]) -> None:
        """Counts now − t for each of many due (or send) times t.

        Args:
            times_ns: the times t, on the step's clock.
            now_ns: one reading of the same clock for all messages, or one for each message.
        """
        n = len(times_ns)
        if n <= SCALAR_LIMIT:
            cells, low, high = self._cells, LATENCY_HIGHEST_US, -1
            nows = repeat(now_ns) if isinstance(now_ns, int) else now_ns.tolist()
            for time_ns, at_ns in zip(times_ns.tolist(), nows, strict=False):
                value = (at_ns - time_ns) // 1000
                if not 0 <= value <= LATENCY_HIGHEST_US:
                    if value < 0:
                        self._mirror().record_us(-value)
                        continue
                    value = LATENCY_HIGHEST_US
                if value < low:
                    low = value
                if value > high:
                    high = value
                bucket = value.bit_length() - SUB_BUCKET_BITS
                cells[value if bucket <= 0 else (bucket << HALF_BITS) + (value >> bucket)] += 1
            if high >= 0:
                self._saw(low, high)
            return
        values = (now_ns - times_ns.view(np.int64)) // 1000
        low = int(np.minimum.reduce(values))
        if low < 0:
            early = values < 0
            below, values = -values[early], values[~early]
            self._mirror()._record_values(below, int(np.minimum.reduce(below)))
            if not len(values):
                return
            low = int(np.minimum.reduce(values))
        self._record_values(values, low)

    def record_us(self, value_us: int) -> None:
        """Counts one value in µs."""
        if value_us < 0:
            self._mirror().record_us(-value_us)
            return
        value = value_us if value_us < LATENCY_HIGHEST_US else LATENCY_HIGHEST_US
        bucket = value.bit_length() - SUB_BUCKET_BITS
        self._cells[value if bucket <= 0 else (bucket << HALF_BITS) + (value >> bucket)] += 1
        self._saw(value, value)

    def histogram(self) -> Histogram:
        """The counts so far, sparse; empty if nothing was counted."""
        own = self._sparse()
        if self._below is None:
            return own
        below = _opposite(self._below._sparse())
        if not own.counts:
            return below
        return Histogram(below.counts + own.counts, below.min_us, own.max_us)

    def add(self, histogram: Histogram) -> None:
        """Adds the counts of another histogram."""
        if not histogram.counts:
            return
        pairs = np.array(histogram.counts, np.int64)
        at, counts = pairs[0::2], pairs[1::2]
        early = at < 0
        if bool(early.any()):
            early_part = Histogram(pairs[: 2 * int(early.sum())].tolist(), histogram.min_us, min(histogram.max_us, -1))
            self._mirror().add(_opposite(early_part))
            at, counts = at[~early], counts[~early]
        if len(at):
            # An index occurs once in a histogram, so a plain indexed addition is exact.
            self._counts[at] += counts
            self._saw(max(histogram.min_us, 0), histogram.max_us)

    def take(self) -> Histogram:
        """The counts so far; the recorder is empty afterwards."""
        taken = self.histogram()
        self._counts[self._low : self._high + 1] = 0
        self._low, self._high = BUCKETS, -1
        self._min_us, self._max_us = LATENCY_HIGHEST_US, 0
        self._below = None
        return taken

    def _record_values(self, values: npt.NDArray[np.int64], low: int) -> None:
        """Counts values in µs, of which the lowest is ``low`` and at least 0; overwrites the array."""
        high = int(np.maximum.reduce(values))
        if high > LATENCY_HIGHEST_US:
            np.minimum(values, LATENCY_HIGHEST_US, out=values)
            low, high = min(low, LATENCY_HIGHEST_US), LATENCY_HIGHEST_US
        if high >> SUB_BUCKET_BITS:
            bits = high.bit_length()
            if bits == low.bit_length():
                shift = bits - SUB_BUCKET_BITS
                values >>= shift
                values += shift << HALF_BITS
            else:
                # frexp's exponent is the bit length, exactly so below 2**53.
                bucket = np.maximum(np.frexp(values.astype(np.float64))[1] - SUB_BUCKET_BITS, 0)
                values = (bucket.astype(np.int64) << HALF_BITS) + (values >> bucket)
        np.add.at(self._counts, values, 1)
        self._saw(low, high)

    def _mirror(self) -> LatencyRecorder:
        if self._below is None:
            self._below = LatencyRecorder()
        return self._below

    def _saw(self, low_us: int, high_us: int) -> None:
        if low_us < self._min_us or self._high < 0:
            self._min_us = low_us
            self._low = index_of(low_us)
        if high_us > self._max_us or self._high < 0:
            self._max_us = high_us
            self._high = index_of(high_us)

    def _sparse(self) -> Histogram:
        """The counts from zero on."""
        if self._high < 0:
            return Histogram()
        part = self._counts[self._low : self._high + 1]
        at = np.flatnonzero(part)
        pairs = np.empty(2 * len(at), np.int64)
        pairs[0::2] = at + self._low
        pairs[1::2] = part[at]
        return Histogram(pairs.tolist(), self._min_us, self._max_us)


def _opposite(histogram: Histogram) -> Histogram:
    """The histogram of -v for every counted value v; none of them is 0."""
    counts = histogram.counts
    pairs = zip(reversed(counts[0::2]), reversed(counts[1::2]), strict=True)
    turned = [number for index, count in pairs for number in (mirrored(index), count)]
    return Histogram(turned, -histogram.max_us, -histogram.min_us)


def coarse(histogram: Histogram) -> Histogram:
    """The histogram with fewer buckets: values keep 8 significant bits and count as the highest possible value.

    A percentile of the result is at most 0.8 % above that of the histogram, and never below. Minimum and maximum stay
    exact. A second of 400,000 messages takes a quarter of the space.
    """
    counts: Counter[int] = Counter()
    for index, count in zip(histogram.counts[::2], histogram.counts[1::2], strict=True):
        counts[_coarse(index)] += count
    return Histogram([n for pair in sorted(counts.items()) for n in pair], histogram.min_us, histogram.max_us)


@lru_cache(4096)  # more are asked for in an hour: all of them are 8 MB
def _coarse(index: int) -> int:
    if index < 0:
        return mirrored(_coarse(mirrored(index)))
    value = highest_of(index)
    return index_of(value | ((1 << max(value.bit_length() - _COARSE_BITS, 0)) - 1))


def coarse_lowest(index: int) -> int:
    """The lowest value (µs) that :func:`coarse` counts at ``index``."""
    if index < 0:
        return lowest_of(index)
    value = highest_of(index)
    bits = max(value.bit_length() - _COARSE_BITS, 0)
    return value >> bits << bits
