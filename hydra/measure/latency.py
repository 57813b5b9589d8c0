"""Latency: merged histograms, their encoding, and the error that clocks cause. Pure.

Percentiles are never averaged: they are computed from the added counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Final

import numpy as np
from hdrh.histogram import HdrHistogram

from hydra.measure.observation import Observation
from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, AgentClock, Histogram
from hydra.wire.buckets import highest_of, lowest_of, percentiles_us
from hydra.wire.histogram import merge

_CURVE_STEPS: Final = 10
"""Points of a percentile curve in each decade."""


MERGED_IN_REPEATS: Final = ("latency", "lag", "ack")
"""The stored histograms of a step from which the percentile columns of repeated rows are computed."""


@dataclass(frozen=True, slots=True)
class MergedHistograms:
    """The histograms of a step merged over clients, from which the percentile columns are computed.

    ``latency`` is that of the subscribers outside the cohort, ``cohort_latency`` that of the cohort. ``lag`` is send
    time − due time of the publishers, ``ack`` the time from a send to its acknowledgement.
    """

    latency: Histogram
    cohort_latency: Histogram
    lag: Histogram
    ack: Histogram = field(default_factory=Histogram)


def merge_histograms(o: Observation) -> MergedHistograms:
    """The step's histograms."""
    return MergedHistograms(
        latency=o.subscriber_reports.latency,
        cohort_latency=o.subscriber_reports.cohort_latency,
        lag=merge(p.lag for p in o.publisher_reports.values()),
        ack=merge(p.ack_latency for p in o.publisher_reports.values()),
    )


def count(histogram: Histogram) -> int:
    """The number of counted values."""
    return sum(histogram.counts[1::2])


def below_zero(histogram: Histogram) -> list[int]:
    """The part of the sparse counts below 0 µs, which HdrHistogram's encoding cannot hold."""
    return histogram.counts[: 2 * bisect_left(histogram.counts[0::2], 0)]


def count_below_zero(histogram: Histogram) -> int:
    """The number of values below 0 µs."""
    return sum(below_zero(histogram)[1::2])


def curve(histograms: Iterable[Histogram]) -> list[tuple[float, int]]:
    """The latency of all these histograms together at rising percentiles.

    Returns pairs (x, µs): one message in x took longer. The steps of log x are equal, as is usual for plots of HDR
    histograms, up to the number of messages; empty if no message was counted.
    """
    together = merge(histograms)
    total = count(together)
    if not total:
        return []
    at = [10 ** (step / _CURVE_STEPS) for step in range(floor(log10(total) * _CURVE_STEPS) + 1)]
    values = percentiles_us(together, [100 - 100 / x for x in at])
    return [*((x, us) for x, us in zip(at, values, strict=True) if us is not None), (float(total), together.max_us)]


def mean_us(histogram: Histogram) -> float | None:
    """The mean (µs), to the precision of the buckets; None if the histogram is empty."""
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
    """The histogram from the result of :func:`encode`, which has only the buckets from 0 µs.

    The histogram's exact minimum and maximum are stored beside it, and ``below``, the result of :func:`below_zero`.
    """
    # HdrHistogram's counts have Hydra's indexes, as a test of wire/histogram.py checks. HdrHistogram's own iterators
    # take a quarter of a second for each histogram.
    counts = np.ctypeslib.as_array(HdrHistogram.decode(encoded).counts)
    there = np.flatnonzero(counts)
    pairs = np.column_stack((there, counts[there].astype(np.int64))).ravel().tolist()
    return Histogram([*below, *pairs], min_us, max_us)


def latency_bound_ns(
    senders: Collection[str | None], receivers: Collection[str | None], clocks: Mapping[str, AgentClock]
) -> int | None:
    """The largest error of a latency (ns): for a pair on different hosts the sum of both clocks' errors.

    Args:
        senders: the agents of the publishers; None: an unknown agent.
        receivers: the agents of the subscribers; None: an unknown agent.
        clocks: the clock of each agent. Agents of one host have the same clock.

    Returns the largest error over all pairs of a sender and a receiver; 0 if each pair shares a clock; None if an agent
    or its clock is not known.
    """
    found = 0
    for sender in set(senders):
        for receiver in set(receivers):
            if sender == receiver is not None:
                continue
            one, other = clocks.get(sender or ""), clocks.get(receiver or "")
            if one is None or other is None:
                return None
            if one != other:
                found = max(found, one.error_ns + other.error_ns)
    return found
