"""A snapshot of a run, kept up to date during the run, for the exports of its metrics. Pure: no clock, no thread."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from hydra.measure.latency_columns import prefix_for
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Histogram, HostSample, Role, StepPlan
from hydra.wire.buckets import highest_of, index_of, lowest_of

BOUNDS_US: Final = (*(step * 10**power for power in range(1, 7) for step in (1, 2, 5)), 10_000_000)
"""Upper bounds of all buckets but the last, which has none: 10 µs to 10 s, three in a decade."""

_EDGES: Final = np.array([index_of(bound) for bound in BOUNDS_US])


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values are in each bucket, and the sum of the values of all buckets.

    Attributes:
        counts: a number for each of ``BOUNDS_US``, and a last one for values above all bounds; a value that equals a
            bound in the three digits that clients keep counts as below it.
        sum_s: the sum of all values in seconds, to the same three digits.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_US) + 1)
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def __add__(self, other: Distribution) -> Distribution:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, self.sum_s + other.sum_s)

    def at_least(self, other: Distribution) -> Distribution:
        """The greater of both in each bucket."""
        counts = tuple(max(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, max(self.sum_s, other.sum_s))


def distribution(histogram: Histogram) -> Distribution:
    """The distribution of a histogram; negative values are in the first bucket."""
    pairs = np.array(histogram.counts, np.int64).reshape(-1, 2)
    index, counts = pairs[:, 0], pairs[:, 1]
    found = np.zeros(len(BOUNDS_US) + 1, np.int64)
    np.add.at(found, np.searchsorted(_EDGES, index), counts)
    middles_s = np.array([(lowest_of(i) + highest_of(i)) / 2e6 for i in index.tolist()])
    return Distribution(tuple(found.tolist()), float(middles_s @ counts))


class ClientCounts(NamedTuple):
    """Numbers of clients of a role in a step: needed, connected, and heard from since the step began."""

    asked: int
    connected: int
    telling: int


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """A step of a run.

    Attributes:
        number: its position in the run, from 1, as in the lines of a run.
        plan: the plan of the step.
        status: "running", or the status of its result.
        figures: the figures of a measured step.
    """

    number: int
    plan: StepPlan
    status: str = "running"
    figures: StepFigures = field(default_factory=StepFigures)


@dataclass(frozen=True, slots=True)
class WindowProgress:
    """The progress of the running step from the start of its window.

    Attributes:
        elapsed_s: seconds since the window began, or since subscribers began to read the stored messages.
        share: the completed part, 0 to 1.
        sent_pps: mean rate of a publisher so far, messages/s; None before the first report.
        received_pps: mean rate of a subscriber so far, messages/s; None before the first report.
        clients: numbers of clients by role.
        hosts: the last two samples of each host, by its name.
    """

    elapsed_s: float
    share: float
    sent_pps: float | None = None
    received_pps: float | None = None
    clients: Mapping[Role, ClientCounts] = field(default_factory=dict)
    hosts: Mapping[str, tuple[HostSample, HostSample]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Sums over the steps that this command has measured and the reports of the running step; they never fall.

    Attributes:
        sent: messages that the publishers' libraries accepted.
        received: messages that subscribers received, each counted at every subscriber that received it.
        lost: messages that subscribers lost in measured steps; None before a step whose loss is known.
        steps: the number of ended steps by status.
        latency: the latency of subscribers outside the cohort, by its start (``measure.latency_columns.prefix_for``).
    """

    sent: int = 0
    received: int = 0
    lost: int | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    latency: Mapping[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run at one moment.

    Attributes:
        run: the name of the run.
        system: the name of the system under test.
        totals: the sums over all its steps.
        ended: the last steps that have ended, oldest first.
        running: the step that is being measured; None between steps.
        progress: the progress of that step; None before its window.
    """

    run: str
    system: str
    totals: RunTotals = field(default_factory=RunTotals)
    ended: Sequence[SnapshotStep] = ()
    running: SnapshotStep | None = None
    progress: WindowProgress | None = None


KEPT_STEPS: Final = 50
"""The most steps whose figures are exported: a search may have hundreds, each with a dozen series."""


class SnapshotUpdater:
    """The snapshot of one run.

    The controller's thread calls its methods. Other threads read ``snapshot``, which is replaced as a whole and never
    changed.

    Args:
        run: the name of the run.
        system: the name of the system under test.

    Attributes:
        snapshot: the run at the last call.
    """

    def __init__(self, run: str, system: str) -> None:
        self.snapshot = RunSnapshot(run, system)
        self._measured = RunTotals()
        self._ended: deque[SnapshotStep] = deque(maxlen=KEPT_STEPS)
        self._sent = self._received = 0
        self._latency = Distribution()

    def step_begins(self, number: int, plan: StepPlan) -> None:
        """A step is being prepared."""
        self._forget()
        if not self._measured.steps:
            # The sum is exported as 0 first, so readers see its first increase as well.
            self._measured = replace(self._measured, latency={prefix_for(plan.settings.rate): Distribution()})
        self.snapshot = replace(
            self.snapshot, totals=self._risen(self._measured), running=SnapshotStep(number, plan), progress=None
        )

    def tick(self, progress: WindowProgress, sent: int, received: int) -> None:
        """Records the progress of the step, with the messages of all publishers and of all subscribers so far."""
        self._sent, self._received = max(self._sent, sent), max(self._received, received)
        self.snapshot = replace(self.snapshot, progress=progress, totals=self._risen(self._so_far()))

    def arrived(self, latency: Histogram) -> None:
        """Adds latencies that clients of the running step reported before its end."""
        self._latency += distribution(latency)

    def step_ended(self, result: StepResult, latency: Histogram | None = None) -> None:
        """Adds a stored step; ``latency`` is its merged histogram.

        A failed step counts with the last reports of its clients.
        """
        running = self.snapshot.running
        if running is None:
            return
        if result.status == "ok":
            sent = result.figures.accepted.sent
            self._sent = self._sent if sent is None else round(sent)
            self._received = received(result.figures, self._received)
            self._latency = distribution(latency or Histogram())
        done = self._so_far()
        lost = result.figures.outcomes.lost
        if lost is not None:
            done = replace(done, lost=(done.lost or 0) + round(lost))
        steps = Counter(done.steps)
        steps[result.status] += 1
        # Messages without a header have no latency.
        known = {since: found for since, found in done.latency.items() if found.count}
        self._measured = replace(done, steps=steps, latency=known)
        self._ended.append(SnapshotStep(running.number, running.plan, result.status, result.figures))
        self._forget()
        totals = self._risen(self._measured)
        self.snapshot = replace(self.snapshot, totals=totals, ended=tuple(self._ended), running=None, progress=None)

    def run_ended(self) -> None:
        """Ends the run; the reports of a step in progress count."""
        self._measured = self._so_far()
        self._forget()
        self.snapshot = replace(self.snapshot, running=None, progress=None)

    def _forget(self) -> None:
        """Clears the sums of the running step."""
        self._sent = self._received = 0
        self._latency = Distribution()

    def _so_far(self) -> RunTotals:
        """The sums of the measured steps and of the reports of the running step."""
        done, running = self._measured, self.snapshot.running
        latencies = dict(done.latency)
        if running is not None and self._latency.count:
            since = prefix_for(running.plan.settings.rate)
            latencies[since] = latencies.get(since, Distribution()) + self._latency
        return replace(done, sent=done.sent + self._sent, received=done.received + self._received, latency=latencies)

    def _risen(self, totals: RunTotals) -> RunTotals:
        """The sums, none below its last value: clients may report messages, as duplicates, that the result omits."""
        before = self.snapshot.totals
        nothing = Distribution()
        return replace(
            totals,
            sent=max(totals.sent, before.sent),
            received=max(totals.received, before.received),
            latency={
                since: totals.latency.get(since, nothing).at_least(before.latency.get(since, nothing))
                for since in totals.latency
            },
        )


def received(figures: StepFigures, reported: int) -> int:
    """Messages that all subscribers of a step received together.

    Args:
        figures: the figures of the step.
        reported: the sum of their reports during the step, for steps whose figures lack it.
    """
    in_window, late = figures.outcomes.in_window, figures.outcomes.late
    if in_window is not None:
        return reported if late is None else round(in_window) + round(late)
    mean, clients = figures.totals.total_rx, figures.totals.clients
    if mean is not None and clients is not None and figures.cohort.cohort is None:
        return round(mean * clients)
    return reported
