"""Keeps a run's snapshot up to date while the run goes on. Pure: no clock, no thread."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hydra.measure.latency import prefix_for
from hydra.model import Figure, Histogram, StepPlan, StepResult
from hydra.monitor.distribution import Distribution, distribution
from hydra.monitor.snapshot import KeptStep, Progress, Snapshot, Totals

KEPT_STEPS: Final = 50
"""Steps whose figures are shown: a search may have hundreds, and each has a dozen series."""


class SnapshotKeeper:
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
        self.snapshot = Snapshot(run, system)
        self._measured = Totals()
        self._ended: deque[KeptStep] = deque(maxlen=KEPT_STEPS)
        self._sent = self._received = 0
        self._latency = Distribution()

    def step_begins(self, number: int, plan: StepPlan) -> None:
        """A step is being prepared."""
        self._forget()
        if not self._measured.steps:
            # From nothing on: who looks at how a sum rises has to see its first rise as well.
            self._measured = replace(self._measured, latency={prefix_for(plan.settings.rate): Distribution()})
        self.snapshot = replace(
            self.snapshot, totals=self._risen(self._measured), running=KeptStep(number, plan), progress=None
        )

    def tick(self, progress: Progress, sent: int, received: int) -> None:
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
        self._ended.append(KeptStep(running.number, running.plan, result.status, result.figures))
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

    def _so_far(self) -> Totals:
        """What is measured with what the running step has told."""
        done, running = self._measured, self.snapshot.running
        latencies = dict(done.latency)
        if running is not None and self._latency.count:
            since = prefix_for(running.plan.settings.rate)
            latencies[since] = latencies.get(since, Distribution()) + self._latency
        return replace(done, sent=done.sent + self._sent, received=done.received + self._received, latency=latencies)

    def _risen(self, totals: Totals) -> Totals:
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
