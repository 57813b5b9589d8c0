"""The search for the highest rate whose shortfall is within the target: a script over steps. Pure.

First a bracket: from the start the rate doubles until a step falls short, then halves until one is within the target.
From there every step goes where :class:`hydra.sweep.estimate.RateEstimate` expects to learn most, until the interval is
narrow enough or the budget of steps is spent.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from hydra.columns.names import BURSTS
from hydra.measure.shortfall import read
from hydra.model import Cohort, Figure, SearchSeries, SearchSpec, Settings, StepPlan, StepResult
from hydra.sweep.answer import Answer, Interval, Why
from hydra.sweep.asked import Asked, unmeasured
from hydra.sweep.estimate import Evidence, RateEstimate, place, rate_at

WIDEST: Final = 4.0
"""Upper over lower limit of an interval above which the figure in it is not vouched for: a factor of 2 either way."""
LEAST_BURST: Final = 0.02
"""Bursts that cost less than this share of what the target allows in a second are left out: they change nothing."""
FEWEST_STEPS: Final = 8
"""Steps that a search takes at least, however sure it is after fewer."""

Script = Generator[StepPlan, StepResult, None]


@dataclass
class Threshold:
    """One search: what was asked, and what is known of the answer.

    Attributes:
        settings, series, cohort: of its steps.
        evidence: what the steps said, in their order.
        interval: the answer, None as long as it has none.
        note: why it has none, or what has to be known of it.
    """

    settings: Settings
    series: SearchSeries
    cohort: Cohort = field(default_factory=Cohort)
    evidence: list[Evidence] = field(default_factory=list)
    interval: Interval | None = None
    note: str = ""
    _least_burst: float = 0.0
    _estimate: RateEstimate | None = None
    _nearest: tuple[float, StepResult] | None = None

    @property
    def answer(self) -> Answer:
        """What the search concludes so far."""
        if self.interval is None:
            return Answer("unknown", why=Why.GIVEN_UP)
        if self.interval.width > WIDEST:
            return Answer("unknown", self.interval, why=Why.TOO_SHORT)
        return Answer("figure", self.interval)

    @property
    def figure(self) -> float | None:
        """The rate that is vouched for, messages/s."""
        return self.interval.figure if self.interval and self.interval.width <= WIDEST else None

    def limiting(self, column: str) -> Figure:
        """A figure of the step that tells what limits: of those that fell short, the one at the lowest rate."""
        return None if self._nearest is None else self._nearest[1].figures.get(column)

    def search(self, asked: Asked, search: SearchSpec, start: float) -> Script:
        """Asks for steps until the answer is good enough or the budget is spent."""
        top = search.start_rate * 2.0**search.max_doublings
        lowest, highest = place(search.floor_rate), place(top)
        self._least_burst = LEAST_BURST * search.target
        at = min(max(place(max(start, search.floor_rate)), lowest), highest)
        doubling = place(2000.0)
        step = yield from self._step(asked, at)
        while not step.bursts and at < highest:
            at = min(at + doubling, highest)
            step = yield from self._step(asked, at)
        if not step.bursts:
            self.note = f"nothing fell short up to {rate_at(at):,.0f}/s, the highest rate that is tried"
            return
        while all(e.shortfall > search.target for e in self.evidence) and at > lowest:
            at = max(at - doubling, lowest)
            step = yield from self._step(asked, at)
        if all(e.shortfall > search.target for e in self.evidence):
            self.note = f"no rate down to {rate_at(at):,.0f}/s is within the target"
            return
        self._estimate = RateEstimate(search.target, step.rate)
        for evidence in self.evidence:
            self._estimate.add(evidence)
        yield from self.narrow(asked, search, search.steps)

    def narrow(self, asked: Asked, search: SearchSpec, steps: int) -> Script:
        """Goes on until ``steps`` steps have been taken in all, or the interval is as narrow as was asked for."""
        if self._estimate is None:
            return
        top = search.start_rate * 2.0**search.max_doublings
        self.interval = self._estimate.interval()
        while len(self.evidence) < steps:
            if len(self.evidence) >= FEWEST_STEPS and self.interval.width <= search.width:
                break
            rate = self._estimate.next_rate(asked.step_s, search.floor_rate, top)
            self._estimate.add((yield from self._step(asked, place(rate))))
            self.interval = self._estimate.interval()
        low, _, high = self.interval
        self.note = (
            f"after {len(self.evidence)} steps it may be anywhere from {low:,.0f} to {high:,.0f}/s"
            if self.interval.width > WIDEST
            else ""
        )

    def _step(self, asked: Asked, at: int) -> Generator[StepPlan, StepResult, Evidence]:
        rate = rate_at(at)
        result = yield from asked.step(self.settings, self.series, rate, self.cohort)
        # With subscribers dead or silent (asked.py) the step is short of theirs as well, in every second of it.
        gone = unmeasured(result) and float(result.figures.get("client_loss_pct") or 100.0) / 100
        seconds = max(round(asked.step_s), 1)
        bursts = [gone * asked.step_s / seconds] * seconds if gone else read(str(result.figures.get(BURSTS) or ""))
        evidence = Evidence(rate, asked.step_s, tuple(b for b in bursts if b >= self._least_burst))
        self.evidence.append(evidence)
        if evidence.bursts and (self._nearest is None or rate <= self._nearest[0]):
            self._nearest = (rate, result)
        return evidence
