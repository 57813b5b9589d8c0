"""Stores the time series of a step during the step, so it survives the end of this process."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from hydra.measure.latency import count
from hydra.measure.loss_pattern import lost_before
from hydra.measure.observation import Observation
from hydra.model import Histogram, Points, StepPlan, TimeSeriesFacts, TimeSeriesInterval
from hydra.monitor.step_progress import StepProgress
from hydra.run.context import RunContext, StepSetup
from hydra.wire.arrays import sorted_ids
from hydra.wire.buckets import percentiles_us
from hydra.wire.histogram import coarse
from hydra.wire.load_schedule import LoadSchedule
from hydra.wire.messages import SecondCounts
from hydra.wire.time_series import TimeSeriesSum
from hydra.wire.traffic import client_topics, topic_shares, traffic_of

_MOST_INTERVALS: Final = 3600
"""The most intervals of one step: an hour has each of its seconds, a day has intervals of 24 s."""
_SECOND_NS: Final = 1_000_000_000


class TimeSeriesRecorder:
    """Stores the time series of one step.

    Args:
        run: the run of the step; its exports get the latencies outside the cohort when they are reported.
        plan: the plan of the step.
        publishers: the number of publishers.
        copies: the expected copies of a message at the subscribers outside the cohort, and inside it.
    """

    def __init__(self, run: RunContext, plan: StepPlan, publishers: int, copies: tuple[float, float]) -> None:
        self._store = run.store
        self._controller = run.controller
        self._arrived = run.exports.keeper.arrived
        self._plan = plan
        self._publishers = publishers
        self._facts = TimeSeriesFacts(0, plan.duration_s, ceil(plan.duration_s / _MOST_INTERVALS), *copies)
        self._epoch = 0
        self._next_ns = 0
        self._through = 0  # all intervals before this one are stored, at least with the messages due
        self._reported = 0
        rate = plan.settings.rate
        points: Points = plan.load or ([] if rate == "max" else [(0.0, float(rate))])
        self._load = LoadSchedule(points) if points else None
        self._latest = Histogram()

    @property
    def p99_us(self) -> float | None:
        """99th percentile of the latency in the last reported interval, in µs; None before the first report."""
        return percentiles_us(self._latest, [99.0])[0]

    def tick(self, moment: StepProgress) -> None:
        """Stores new reports, once a second during the window."""
        if self._epoch == 0:
            self._epoch = self._controller.roster.answers.epoch
            begun_ns = moment.time_ns - round(moment.elapsed_s * _SECOND_NS)
            self._facts = replace(self._facts, start_ns=begun_ns)
            self._store.begin_time_series(self._epoch, self._plan, self._facts)
            self._next_ns = moment.time_ns + _SECOND_NS
        elif moment.time_ns >= self._next_ns:
            self._next_ns = moment.time_ns + _SECOND_NS
            self._keep(moment.elapsed_s)

    def end(self, o: Observation) -> None:
        """Stores the last reports, the losses by interval, and whether the time series is complete.

        Args:
            o: the step. Subscribers that share the messages have no losses of their own, and none are stored.
        """
        if self._epoch == 0:
            return
        self._keep(self._plan.duration_s)
        reported = count(o.subscriber_reports.latency) + count(o.subscriber_reports.cohort_latency)
        self._facts = replace(self._facts, complete=self._reported == reported)
        self._store.begin_time_series(self._epoch, self._plan, self._facts)
        if self._load is not None and not o.group and not o.dead and not o.silent:
            self._store.add_lost(self._epoch, self._lost(o, self._load))

    def _keep(self, elapsed_s: float) -> None:
        answers = self._controller.roster.answers
        if answers.epoch != self._epoch:
            return
        width = self._facts.interval_s
        found: dict[int, TimeSeriesInterval] = {}

        def at(begin_s: int) -> TimeSeriesInterval:
            return found.setdefault(begin_s, TimeSeriesInterval(begin_s, self._due(begin_s)))

        # Intervals without reports are stored, too, since they show that nothing arrived.
        while self._through < min(elapsed_s, self._plan.duration_s):
            at(self._through)
            self._through += width
        for second in _by_interval(answers.sent, width):
            found[second.second] = replace(at(second.second), sent=second.messages)
        for second in _by_interval(answers.received, width):
            self._reported += second.messages
            self._arrived(second.latency)
            latency = coarse(second.latency)
            self._latest = latency if latency.counts else self._latest
            found[second.second] = replace(at(second.second), received=second.messages, latency=latency)
        for second in _by_interval(answers.cohort_received, width):
            self._reported += second.messages
            now = replace(at(second.second), cohort_received=second.messages, cohort_latency=coarse(second.latency))
            found[second.second] = now
        if found:
            self._store.add_seconds(self._epoch, [found[begin_s] for begin_s in sorted(found)])

    def _due(self, begin_s: int) -> int:
        """Messages of all publishers due in the part of the interval that is in the window."""
        if self._load is None:
            return 0
        end_s = min(begin_s + self._facts.interval_s, self._plan.duration_s)
        edges = [max(round(at_s * _SECOND_NS) - 1, -1) for at_s in (begin_s, max(end_s, begin_s))]
        first, last = (self._load.count_by(edge) for edge in edges)
        return (last - first) * self._publishers

    def _lost(self, o: Observation, load: LoadSchedule) -> dict[int, int]:
        """Copies that were lost outside the cohort, by the interval in which they were due."""
        width, duration_s = self._facts.interval_s, self._plan.duration_s
        begins = list(range(0, ceil(duration_s), width))
        times = [*begins, duration_s]
        edges = np.array([load.count_by(round(at_s * _SECOND_NS) - 1) for at_s in times], np.float64)
        others = o.subscriber_reports
        if o.cohort:
            others = others.take(~np.isin(others.ids, sorted_ids(o.cohort)))
        before = lost_before(others, float(edges[-1]), edges)
        return {begin_s: round(lost) for begin_s, lost in zip(begins, np.diff(before), strict=True)}


def _by_interval(sums: TimeSeriesSum, width: int) -> list[SecondCounts]:
    """The reported counts by intervals of ``width`` seconds, named by their begin."""
    seconds = sums.take()
    if width == 1:
        return seconds
    together = TimeSeriesSum()
    together.add(SecondCounts(s.second // width * width, s.messages, s.latency) for s in seconds)
    return together.take()


def copies(step: StepSetup, ids: range, publishers: int) -> tuple[float, float]:
    """The expected copies of a message outside a step's cohort, and inside it.

    Args:
        step: the setup of the step.
        ids: the ids of the subscribers.
        publishers: the number of publishers.
    """
    cohort = step.cohort
    if step.delivery.group:
        share = len(cohort) / len(ids) if ids else 0.0
        return 1.0 - share, share
    each = 1 / publishers if step.delivery.one_publisher else 1.0
    if step.plan.settings.chosen_topics < step.plan.settings.topics:
        traffic = traffic_of(step.plan.settings)
        shares = topic_shares(traffic)
        of_ids = {c: float(shares[client_topics(traffic, c)].sum()) for c in ids}
        inside = sum(of_ids[c] for c in cohort)
        return (sum(of_ids.values()) - inside) * each, inside * each
    return (len(ids) - len(cohort)) * each, len(cohort) * each
