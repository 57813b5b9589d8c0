"""When a search for a rate within the loss target ends, and what its answer is then. Pure.

``threshold_search.py`` chooses the steps; their most is here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log2
from typing import Final

from hydra.sweep.findings import Findings
from hydra.sweep.search_answer import SURPRISE, Inconclusive, SearchAnswer
from hydra.sweep.search_spec import SearchSeries, SearchSpec

WIDEST: Final = 4.0
"""Upper over lower limit of the widest interval whose figure is reported: a factor of 2 either way."""
_LEAST_BELOW_S: Final = 30.0
"""A figure needs this many seconds measured at its rate or below, so stalls every ten seconds are included."""
_FEWEST_STEPS: Final = 8
"""The least number of steps of a search, also if its interval is narrow after fewer."""
_NONE_HOLDS: Final = 0.95
_SURELY_NONE: Final = 0.97
_SOME_HOLDS: Final = 0.08
"""Probability that no rate holds: above ``_NONE_HOLDS`` none does, below ``_SOME_HOLDS`` one does; between: unknown.
Above ``_SURELY_NONE`` the search ends before its seconds are spent."""
_CLEARLY_BELOW: Final = 1.2
_BY_FORM: Final = 0.5
"""If the evidence counts for less than this, the figure rests on the form of the curve."""
_CHANGING: Final = 0.4
_FLOOR_SURE: Final = 0.9
_USUAL_LOST_S: Final = 0.9
_USUAL_STEPS: Final = 60
"""A search without an answer is advised to measure at least so long that the target allows this loss, in seconds of
traffic, and this number of steps. Estimates from few steps, as of the size of bursts, are too low as often as too high
(``tests/sweep/test_advice.py``)."""
_LAST_S: Final = 10.0
"""The least length of the last step, which is at the lower limit."""
_LAST_SHARE: Final = 0.2
"""A search has no last step if it would take more than this share of the budget; then the figure rests on the form of
the curve."""
_AGAIN: Final = 0.5
"""Share of the steps that two searches measure in addition if their figures contradict each other."""


def longest_s(step_s: float) -> float:
    """The length in seconds of the longest step of a search with steps of ``step_s`` seconds: that of the last one."""
    return max(_LAST_S, step_s)


def most_steps(search: SearchSpec, series: SearchSeries) -> int:
    """The most steps of the search for a series, each measured at the first try, without those on a ladder."""
    # The bracket may exceed the budget: it may cross the whole range of rates, and a possible hole needs ten further
    # steps.
    bracket = 2 * ceil(log2(search.start_rate * 2.0**search.max_doublings / search.floor_rate)) + 23
    # The search without a cohort may be extended once for each cohort, the search with a cohort once.
    cohorts = sum(each in ("slow", "reconnecting") for each in search.series)
    again = ceil(_AGAIN * search.steps) * (cohorts if series == "loss" else 1)
    # The search is repeated without a subscriber that loses alone.
    times = 2 if series == "loss" else 1
    return times * max(search.steps + 5, bracket) + again


@dataclass(frozen=True, slots=True)
class StopRule:
    """The rule by which a search ends: its interval is narrow, no rate holds, or its seconds are spent.

    Attributes:
        width: upper over lower limit of an interval that is narrow.
        budget_s: the seconds of measuring.
        step_s: the length of a step in seconds.
    """

    width: float
    budget_s: float
    step_s: float

    @classmethod
    def of(cls, search: SearchSpec, step_s: float) -> StopRule:
        """The rule of a search with steps of ``step_s`` seconds."""
        return cls(search.width, search.steps * step_s, step_s)

    @classmethod
    def of_extension(cls, search: SearchSpec, step_s: float, spent_s: float) -> StopRule:
        """The rule of a search that continues after ``spent_s`` seconds, because it contradicts another one."""
        # No interval is that narrow, so all of these seconds are spent.
        return cls(1.0 + 1e-9, spent_s + ceil(_AGAIN * search.steps) * step_s, step_s)

    @property
    def last_s(self) -> float:
        """The length in seconds of the last step, which is at the lower limit; 0: the search has no such step."""
        last_s = longest_s(self.step_s)
        return last_s if last_s <= _LAST_SHARE * self.budget_s else 0.0

    def is_spent(self, findings: Findings) -> bool:
        """Whether no step fits before the last one."""
        return findings.spent_s + self.step_s > self.budget_s - self.last_s + 1e-9

    def is_narrow(self, findings: Findings) -> bool:
        """Whether the interval is narrow, after enough steps."""
        estimate = findings.estimate
        return estimate.interval(estimate.temper()).width <= self.width and len(findings.evidence) >= _FEWEST_STEPS

    def is_decided(self, findings: Findings, *, narrow: bool) -> bool:
        """Whether further steps would not change the answer.

        Args:
            findings: the steps so far.
            narrow: the result of :meth:`is_narrow`.
        """
        estimate = findings.estimate
        if estimate.none_holds() > _SURELY_NONE:
            return findings.spent_s >= _LEAST_BELOW_S and len(findings.evidence) >= 2 * _FEWEST_STEPS
        interval = estimate.interval()
        below_s = findings.seconds_up_to(interval.figure)
        return (
            narrow
            and below_s >= _LEAST_BELOW_S - self.last_s
            and estimate.none_holds() < _SOME_HOLDS
            and findings.keeps_below(interval.low / _CLEARLY_BELOW)
        )

    def answer(self, findings: Findings) -> SearchAnswer:
        """The answer that follows from all steps so far."""
        estimate = findings.estimate
        temper, none = estimate.temper(), estimate.none_holds()
        interval = estimate.interval(temper)
        if estimate.changing() > _CHANGING:
            return unknown(findings, Inconclusive.CHANGING)
        if none > _NONE_HOLDS:
            return SearchAnswer("none", loss=findings.loss_up_to(findings.short_from))
        if none > _SOME_HOLDS or interval.width > WIDEST or not findings.keeps_below(interval.low / _CLEARLY_BELOW):
            return unknown(findings, Inconclusive.TOO_SHORT)
        if interval.low < 1.1 * findings.least_rate:
            return unknown(findings, Inconclusive.BELOW_LOWEST)
        if any(
            estimate.surprise(e, interval, temper) < SURPRISE / len(findings.evidence)
            for e in estimate.evidence
            if e.rate <= interval.high
        ):
            return unknown(findings, Inconclusive.CONTRADICTED)
        loss = findings.loss_up_to(interval.low / 1.3) if estimate.floor() > _FLOOR_SURE else None
        form = findings.seconds_up_to(interval.figure) < _LEAST_BELOW_S or not self.last_s or temper < _BY_FORM
        return SearchAnswer("figure", interval, loss, holes=findings.lossy_ranges, form=form)


def unknown(findings: Findings, why: Inconclusive) -> SearchAnswer:
    """The answer ``unknown``, with the reason and the seconds of measurement that an answer needs."""
    estimate = findings.estimate
    interval = estimate.interval(estimate.temper())
    needed_s = None
    if why is Inconclusive.TOO_SHORT:
        times = max(2.0, (log(interval.width) / log(WIDEST)) ** 2)
        step_s = min(step.seconds for step in findings.evidence)
        least_s = max(_USUAL_LOST_S / findings.target, _USUAL_STEPS * step_s, 2 * _LEAST_BELOW_S)
        needed_s = float(10 * ceil(max(times * findings.spent_s, least_s) / 10))
    return SearchAnswer("unknown", interval, why=why, needed_s=needed_s, holes=findings.lossy_ranges)
