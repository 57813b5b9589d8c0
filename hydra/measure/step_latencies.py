"""The latencies of a step, and what its publishers waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hydra.measure.hot_topics import without
from hydra.measure.latency import MergedHistograms, count_below_zero, latency_bound_ns
from hydra.measure.loss import StepSubscribers
from hydra.measure.observation import Observation
from hydra.measure.rates import SECOND_NS
from hydra.measure.tool_counts import acknowledged_after
from hydra.model import PERCENTILES, PublisherReport
from hydra.wire.buckets import percentiles_us

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
