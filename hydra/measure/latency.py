"""Latency: sparse histograms merged over clients, and their percentiles. Pure.

Percentiles are never averaged: counts are added, then asked once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
from hdrh.histogram import HdrHistogram

from hydra.columns.step import ACK, ACK_PERCENTILES, DUE, PERCENTILES, SENT
from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, Figure, Histogram, Rate
from hydra.wire.histogram import BUCKETS, highest_of, lowest_of


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of the counts; indexes outside the range of the buckets are a ``ValueError``."""
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
        # An index stands once in a histogram, so a plain indexed addition is exact.
        counts[at] += pairs[1::2]
        low, high = min(low, h.min_us), max(high, h.max_us)
    there = np.flatnonzero(counts)
    if not len(there):
        return Histogram()
    return Histogram(np.column_stack((there - BUCKETS, counts[there])).ravel().tolist(), low, high)


def count(histogram: Histogram) -> int:
    """How many values were counted."""
    return sum(histogram.counts[1::2])


def below_zero(histogram: Histogram) -> list[int]:
    """The part of the sparse counts that is below 0 µs: HdrHistogram's encoding cannot hold it."""
    return histogram.counts[: 2 * bisect_left(histogram.counts[0::2], 0)]


def count_below_zero(histogram: Histogram) -> int:
    """How many of the values are below 0 µs."""
    return sum(below_zero(histogram)[1::2])


def percentiles_us(histogram: Histogram, percents: Iterable[float]) -> list[int | None]:
    """Values (µs) at these percentiles by HdrHistogram's definition, at most the maximum; None when empty.

    It is the highest value that is equivalent to that of the smallest bucket up to which at least ``percent`` of all
    values are counted (``HdrHistogram.get_value_at_percentile``).
    """
    total = count(histogram)
    if not total:
        return [None for _ in percents]
    sums = np.cumsum(np.array(histogram.counts[1::2], np.int64))
    # HdrHistogram rounds the rank to the nearest, with at least one.
    ranks = [max(int(p * total / 100 + 0.5), 1) for p in percents]
    at = np.searchsorted(sums, ranks)
    return [min(highest_of(histogram.counts[2 * int(i)]), histogram.max_us) for i in at]


def prefix_for(rate: Rate) -> str:
    """What the figure is called: at rate ``max`` there is no due time, so it counts from the send."""
    return SENT if rate == "max" else DUE


def figures(histogram: Histogram, prefix: str) -> dict[str, Figure]:
    """The percentile columns (µs) of a merged histogram."""
    values = percentiles_us(histogram, PERCENTILES.values())
    return {f"{prefix}_{name}_us": value for name, value in zip(PERCENTILES, values, strict=True)}


def ack_figures(histogram: Histogram) -> dict[str, Figure]:
    """The percentile columns (µs) of the time until an acknowledgement, of a merged histogram."""
    values = percentiles_us(histogram, ACK_PERCENTILES.values())
    return {f"{ACK}_{name}_us": value for name, value in zip(ACK_PERCENTILES, values, strict=True)}


def mean_us(histogram: Histogram) -> float | None:
    """The mean (µs), to the precision of the buckets; None when empty."""
    total = count(histogram)
    values = zip(histogram.counts[0::2], histogram.counts[1::2], strict=True)
    return sum((lowest_of(i) + highest_of(i)) / 2 * n for i, n in values) / total if total else None


def encode(histogram: Histogram) -> bytes:
    """HdrHistogram's own compressed V2 encoding (base64) of the values from 0 on, which any implementation reads."""
    hdr = HdrHistogram(LATENCY_LOWEST_US, LATENCY_HIGHEST_US, LATENCY_DIGITS)
    counts = histogram.counts[len(below_zero(histogram)) :]
    for index, n in zip(counts[0::2], counts[1::2], strict=True):
        hdr.record_value(lowest_of(index), n)
    encoded: bytes = hdr.encode()
    return encoded


def decode(encoded: bytes, min_us: int, max_us: int, below: Sequence[int] = ()) -> Histogram:
    """The histogram of :func:`encode`, which knows only buckets from 0 µs on.

    Its exact bounds are stored beside it, and ``below``: what :func:`below_zero` gave.
    """
    hdr = HdrHistogram.decode(encoded)
    counts = list(below)
    for item in hdr.get_recorded_iterator():
        # The private index formula is the same as ours: a test of wire/histogram.py holds them together.
        counts += [hdr._counts_index_for(item.value_iterated_to), item.count_at_value_iterated_to]
    return Histogram(counts, min_us, max_us)
