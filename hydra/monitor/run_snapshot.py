"""What is known of a run at one moment, kept up to date while it goes on; others read it. Pure: no clock, no thread."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hydra.measure.latency import prefix_for
from hydra.model import Figure, Histogram, HostSample, Role, StepPlan, StepResult
from hydra.wire.buckets import BUCKETS, highest_of, index_of, lowest_of

BOUNDS_US: Final = (*(step * 10**power for power in range(1, 7) for step in (1, 2, 5)), 10_000_000)
"""Upper bounds of the buckets but the last one, which has none: 10 µs to 10 s, three to a decade."""

_EDGES: Final = np.array([index_of(bound) for bound in BOUNDS_US])


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values are in each bucket, and their sum.

    Attributes:
        counts: one number for each of ``BOUNDS_US``, and the last for what is above all of them; a value that equals a
            bound, to the three digits that clients keep, is below it.
        sum_s: of all values, seconds, to the same three digits.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_US) + 1)
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    def __add__(self, other: Distribution) -> Distribution:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, self.sum_s + other.sum_s)

    def at_least(self, other: Distribution) -> Distribution:
        """The greater of both in each bucket."""
        counts = tuple(max(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, max(self.sum_s, other.sum_s))


def distribution(histogram: Histogram) -> Distribution:
    """What a histogram counts; what is below zero is in the first bucket."""
    pairs = np.array(histogram.counts, np.int64).reshape(-1, 2)
    index, counts = pairs[:, 0], pairs[:, 1]
    found = np.zeros(len(BOUNDS_US) + 1, np.int64)
    np.add.at(found, np.searchsorted(_EDGES, index), counts)
    return Distribution(tuple(found.tolist()), float(_middles_s()[index + BUCKETS] @ counts))


@cache
def _middles_s() -> npt.NDArray[np.float64]:
    """The middle of each bucket of a histogram, from index -BUCKETS on."""
    return np.array([(lowest_of(i) + highest_of(i)) / 2e6 for i in range(-BUCKETS, BUCKETS)])


class ClientCounts(NamedTuple):
    """How many clients of a role a step has: asked for, connected, and heard of since the step began."""

    asked: int
    connected: int
    telling: int


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """A step of a run.

    Attributes:
        number: its place in the run, from 1 on, as the lines of a run count it.
        plan: what was asked for.
        status: "running", or what became of it.
        figures: by the column's name, once it is measured.
    """

    number: int
    plan: StepPlan
    status: str = "running"
    figures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WindowProgress:
    """How far the running step is, since its window is open.

    Attributes:
        elapsed_s: seconds since then, or since subscribers began to read what was stored.
        share: the part that is done, 0 to 1.
        sent_pps: mean rate of a publisher so far; None before one has told something.
        received_pps: likewise of a subscriber.
        clients: by role.
        hosts: two samples of each host, by its name: what it did between them is what it did last.
    """

    elapsed_s: float
    share: float
    sent_pps: float | None = None
    received_pps: float | None = None
    clients: Mapping[Role, ClientCounts] = field(default_factory=dict)
    hosts: Mapping[str, tuple[HostSample, HostSample]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Sums over the steps that this command has measured, with what the running one has told. They only rise.

    Attributes:
        sent: messages that the publishers' libraries accepted.
        received: messages that subscribers received, each counted as often as there were subscribers that did.
        lost: messages that subscribers lost in steps that are measured; None before there is a step that knows.
        steps: how many have ended, by what became of them.
        latency: of subscribers outside the cohort, by what it counts from (``measure.latency.prefix_for``).
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
        run: its name.
        system: what it measures.
        totals: of all its steps.
        ended: the last steps that have ended, oldest first.
        running: the step that is being measured, None between steps.
        progress: how far that is, None before its window.
    """

    run: str
    system: str
    totals: RunTotals = field(default_factory=RunTotals)
    ended: Sequence[SnapshotStep] = ()
    running: SnapshotStep | None = None
    progress: WindowProgress | None = None


KEPT_STEPS: Final = 50
"""Steps whose figures are shown: a search may have hundreds, and each has a dozen series."""


class SnapshotUpdater:
    """The snapshot of one run.

    The controller's thread tells it what happens. Other threads read ``snapshot``, which is replaced as a whole and
    never changed.

    Args:
        run: the run's name.
        system: what it measures.

    Attributes:
        snapshot: the run as it was when something was told last.
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
            # From nothing on: who looks at how a sum rises has to see its first rise as well.
            self._measured = replace(self._measured, latency={prefix_for(plan.settings.rate): Distribution()})
        self.snapshot = replace(
            self.snapshot, totals=self._risen(self._measured), running=SnapshotStep(number, plan), progress=None
        )

    def tick(self, progress: WindowProgress, sent: int, received: int) -> None:
        """The step goes on; all publishers have ``sent`` so many messages, all subscribers ``received`` so many."""
        self._sent, self._received = max(self._sent, sent), max(self._received, received)
        self.snapshot = replace(self.snapshot, progress=progress, totals=self._risen(self._so_far()))

    def arrived(self, latency: Histogram) -> None:
        """Latencies of the running step that have come to be known before its end."""
        self._latency += distribution(latency)

    def step_ended(self, result: StepResult, latency: Histogram | None = None) -> None:
        """A step is stored; ``latency`` is its merged histogram.

        Of a step that failed, what its clients told is all that is known.
        """
        running = self.snapshot.running
        if running is None:
            return
        if result.status == "ok":
            self._sent = _counted(result.figures, ("sent",), self._sent)
            self._received = received(result.figures, self._received)
            self._latency = distribution(latency or Histogram())
        done = self._so_far()
        lost = result.figures.get("lost")
        if isinstance(lost, int | float):
            done = replace(done, lost=(done.lost or 0) + round(lost))
        steps = Counter(done.steps)
        steps[result.status] += 1
        # Of messages without a header there is none.
        known = {since: found for since, found in done.latency.items() if found.count}
        self._measured = replace(done, steps=steps, latency=known)
        self._ended.append(SnapshotStep(running.number, running.plan, result.status, result.figures))
        self._forget()
        totals = self._risen(self._measured)
        self.snapshot = replace(self.snapshot, totals=totals, ended=tuple(self._ended), running=None, progress=None)

    def run_ended(self) -> None:
        """The run has ended, maybe in the middle of a step: what that has told is counted."""
        self._measured = self._so_far()
        self._forget()
        self.snapshot = replace(self.snapshot, running=None, progress=None)

    def _forget(self) -> None:
        """Nothing is known of the running step."""
        self._sent = self._received = 0
        self._latency = Distribution()

    def _so_far(self) -> RunTotals:
        """What is measured with what the running step has told."""
        done, running = self._measured, self.snapshot.running
        latencies = dict(done.latency)
        if running is not None and self._latency.count:
            since = prefix_for(running.plan.settings.rate)
            latencies[since] = latencies.get(since, Distribution()) + self._latency
        return replace(done, sent=done.sent + self._sent, received=done.received + self._received, latency=latencies)

    def _risen(self, totals: RunTotals) -> RunTotals:
        """Sums never fall, though clients may tell of messages (received twice, say) that do not count in the end."""
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


def received(figures: Mapping[str, Figure], told: int) -> int:
    """Messages that all subscribers of a step received together.

    Args:
        figures: of the step, by column name.
        told: what they said while it went on, for steps whose figures do not say.
    """
    if isinstance(figures.get("in_window"), int):
        return _counted(figures, ("in_window", "late"), told)
    mean, clients = figures.get("total_rx"), figures.get("clients")
    if isinstance(mean, int | float) and isinstance(clients, int) and "cohort" not in figures:
        return round(mean * clients)
    return told


def _counted(figures: Mapping[str, Figure], names: tuple[str, ...], otherwise: int) -> int:
    values = [figures.get(name) for name in names]
    numbers = [round(value) for value in values if isinstance(value, int | float)]
    return sum(numbers) if len(numbers) == len(values) else otherwise
