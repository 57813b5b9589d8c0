"""Latency: merged histograms, their encoding, the error that clocks cause, and the latencies of a step. Pure.

Percentiles are never averaged: they are computed from the added counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, log10
from typing import Final, Literal

import numpy as np
from hdrh.histogram import HdrHistogram

from hydra.measure.loss import StepSubscribers, without
from hydra.measure.message_accounting import acknowledged_after
from hydra.measure.observation import Observation
from hydra.measure.rates import SECOND_NS
from hydra.model import (
    LATENCY_DIGITS,
    LATENCY_HIGHEST_US,
    LATENCY_LOWEST_US,
    PERCENTILES,
    AgentClock,
    Histogram,
    PublisherReport,
)
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


HistogramName = Literal["latency", "lag", "ack"]


@dataclass(frozen=True, eq=False)
class StepLatencies:
    """The latencies of a step; None: not known.

    Attributes:
        o: the observations of the step.
        histograms: its merged histograms.
        publishers: the reports of its publishers.
        subscribers: its subscribers.
    """

    o: Observation
    histograms: MergedHistograms
    publishers: Sequence[PublisherReport]
    subscribers: StepSubscribers

    @cached_property
    def bound_us(self) -> float | None:
        """The largest error of a latency that clocks cause; None: not known, or no latency."""
        o, subscribers = self.o, self.subscribers
        if not self.histograms.latency.counts:
            return None
        receivers = subscribers.ids[subscribers.others & subscribers.reported].tolist()
        ends = ({o.agents.get(c) for c in o.publishers}, {o.agents.get(c) for c in receivers})
        bound_ns = latency_bound_ns(*ends, o.clocks)
        return None if bound_ns is None else bound_ns / 1000

    @property
    def negative(self) -> int | None:
        """The number of latencies below zero; None: there is no latency."""
        return count_below_zero(self.histograms.latency) if self.histograms.latency.counts else None

    def percentile_us(self, histogram: HistogramName, percent: float) -> float | None:
        """A percentile of a merged histogram; None: the histogram is empty."""
        return percentiles_us(getattr(self.histograms, histogram), [percent])[0]

    @cached_property
    def tool_acks(self) -> Mapping[str, float]:
        """The ack latencies (µs) that tools report, by percentile."""
        return acknowledged_after(self.publishers) if self.o.counted else {}

    def topics_us(self, *, hot: bool) -> float | None:
        """The 99th percentile of the latency of the topics with most messages, or of all others."""
        reports = self.subscribers.reports
        of = reports.hot_latency if hot else without(reports.latency, reports.hot_latency)
        return percentiles_us(of, [PERCENTILES["p99"]])[0]

    @property
    def blocked_s(self) -> float:
        """The longest total time that any publisher waited for a full queue."""
        return max((p.blocked_ns for p in self.publishers), default=0) / SECOND_NS
