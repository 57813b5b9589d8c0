"""The conclusions from the steps of a search: overloads, the range of R, and the answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, log, sqrt
from typing import Final

import numpy as np
from scipy.special import stdtrit

from hydra.sweep.estimate import RateEstimate, RateObservation, rate_at
from hydra.sweep.search_answer import CredibleInterval, Inconclusive, LossyRange, SearchAnswer

WIDEST: Final = 4.0
"""Upper over lower limit of the widest interval whose figure is reported: a factor of 2 either way."""
LEAST_BELOW_S: Final = 30.0
"""A figure needs this many seconds measured at its rate or below, so stalls every ten seconds are included."""
_NONE_HOLDS: Final = 0.95
SOME_HOLDS: Final = 0.08
"""Probability that no rate holds: above ``_NONE_HOLDS`` none does, below ``SOME_HOLDS`` one does; between: unknown."""
CLEARLY_BELOW: Final = 1.2
_BY_FORM: Final = 0.5
"""If the evidence counts for less than this, the figure rests on the form of the curve."""
SURPRISE: Final = 0.01
_CHANGING: Final = 0.4
_FLOOR_SURE: Final = 0.9
_USUAL_LOST_S: Final = 0.9
_USUAL_STEPS: Final = 60
"""A search without an answer is advised to measure at least so long that the target allows this loss, in seconds of
traffic, and this number of steps. Estimates from few steps, as of the size of bursts, are too low as often as too high
(``tests/sweep/test_advice.py``)."""
FALLING: Final = 0.67
OVERLOAD: Final = 0.5
_FAR: Final = 1.4
_RANGE: Final = (1 / 24, 2.2)
"""The values of R that the estimate considers, as multiples of the rate of the first of the two short steps."""
_FEWEST_LEVEL: Final = 3
"""At least this many steps at much lower rates determine the usual loss there."""
LAST_S: Final = 10.0
"""The least length of the last step, which is at the lower limit."""
LAST_SHARE: Final = 0.2
"""A search has no last step if it would take more than this share of the budget; then the figure rests on the form of
the curve."""


@dataclass
class Findings:
    """All steps of one search, and what follows from them for R.

    Attributes:
        target: the allowed loss, as a fraction.
        lowest, highest: places of the lowest and highest rate that may be tried.
        evidence: the observations of the steps, in their order.
        given_s: seconds of the steps that another search measured.
        unrested: the steps right after a step that lost more than the target.
        after_effects: the steps that the overload before them spoiled; they are no evidence for their rates.
        holes: pairs of places between which more is lost than above them.
        short_from: the lowest rate of the bracket that lost more than the target, messages/s.
    """

    target: float = 0.0
    lowest: int = 0
    highest: int = 0
    evidence: list[RateObservation] = field(default_factory=list)
    given_s: float = 0.0
    unrested: list[RateObservation] = field(default_factory=list)
    after_effects: list[RateObservation] = field(default_factory=list)
    holes: list[tuple[int, int]] = field(default_factory=list)
    short_from: float = 0.0
    _widened: float = 1.0
    """Factor by which the considered rates reach above those of the bracket."""
    _range: tuple[float, float] = (0.0, 0.0)
    _estimate: RateEstimate | None = None

    @property
    def bracketed(self) -> bool:
        """Whether there is an estimate."""
        return self._estimate is not None

    @property
    def estimate(self) -> RateEstimate:
        """The estimate of R."""
        if self._estimate is None:
            raise RuntimeError("there is no estimate of a rate before it is bracketed")
        return self._estimate

    @property
    def spent_s(self) -> float:
        """Seconds of measuring so far."""
        return sum(e.seconds for e in self.evidence) - self.given_s

    def short(self, step: RateObservation) -> bool:
        """Whether a step lost more than the target."""
        return step.shortfall > self.target

    def _level(self, rate: float) -> float:
        """The share that is usually lost at half of a rate or less, not right after an overload."""
        steps = [e for e in self.evidence if e.rate <= rate / 2 and e not in self.unrested]
        return _usual_loss(steps) if len(steps) >= _FEWEST_LEVEL else 0.0

    def is_usual(self, step: RateObservation) -> bool:
        """Whether a step was no overload: it lost as much as much lower rates, or as much as double its rate."""
        if step.shortfall > OVERLOAD:
            return False
        above = [e.shortfall for e in self.evidence if e.rate > 1.9 * step.rate and e not in self.unrested]
        # If half of the messages are lost, half the rate may be too high as well.
        if above and step not in self.unrested and self.target < min(above) <= OVERLOAD:
            return FALLING * min(above) < step.shortfall
        level = self._level(step.rate)
        return level > self.target and step.shortfall <= level / FALLING + 2 * sqrt(level / step.copies)

    def _in_hole(self, rate: float) -> bool:
        return any(rate_at(low) < rate < rate_at(high) for low, high in self.holes)

    def take(self, step: RateObservation) -> None:
        """Adds a step to the estimate."""
        if self._estimate is not None and not self._in_hole(step.rate):
            self._estimate.add(step, far=step.rate > _FAR * self._widened * self.short_from)

    def begin(self) -> None:
        """Makes the estimate from the steps so far, when the rate is bracketed."""
        least = max(self.short_from * _RANGE[0], rate_at(self.lowest) / 2)
        self._between(least, self.short_from * _RANGE[1])

    def _between(self, least: float, most: float) -> None:
        low = [e for e in self.evidence if e.rate <= self.short_from / 2]
        low = low or [e for e in self.evidence if e.rate <= self.short_from]
        self._range = (least, most)
        self._estimate = RateEstimate(self.target, least, most, _usual_loss(low))
        for step in self.evidence:
            if step not in self.after_effects:
                self.take(step)

    def widen(self) -> None:
        """Considers more rates if the answer is near an end of the considered range."""
        low, _, high = self.estimate.interval()
        least, most = self._range
        lowest, highest = rate_at(self.lowest) / 2, rate_at(self.highest) * 2
        if low < 1.2 * least and least > lowest and self.estimate.none_holds() < 0.5:
            self._between(max(least / 16, lowest), most)
        elif high > most / 1.05 and most < highest:
            self._widened *= 4
            self._between(least, min(most * 4, highest))

    def concluded(self, budget_s: float) -> SearchAnswer:
        """The answer that follows from all steps so far."""
        estimate = self.estimate
        temper, none = estimate.temper(), estimate.none_holds()
        interval = estimate.interval(temper)
        if estimate.changing() > _CHANGING:
            return self.unknown(Inconclusive.CHANGING)
        if none > _NONE_HOLDS:
            return SearchAnswer("none", loss=self._loss(self.short_from))
        if none > SOME_HOLDS or interval.width > WIDEST or not self.keeps_below(interval.low / CLEARLY_BELOW):
            return self.unknown(Inconclusive.TOO_SHORT)
        if interval.low < 1.1 * self._range[0]:
            return self.unknown(Inconclusive.BELOW_LOWEST)
        if any(
            estimate.surprise(e, interval, temper) < SURPRISE / len(self.evidence)
            for e in estimate.evidence
            if e.rate <= interval.high
        ):
            return self.unknown(Inconclusive.CONTRADICTED)
        below_s = sum(e.seconds for e in self.evidence if e.rate <= interval.figure)
        loss = self._loss(interval.low / 1.3) if estimate.floor() > _FLOOR_SURE else None
        form = below_s < LEAST_BELOW_S or LAST_SHARE * budget_s < LAST_S or temper < _BY_FORM
        return SearchAnswer("figure", interval, loss, holes=self._named_holes(), form=form)

    def keeps_below(self, rate: float) -> bool:
        """Whether the loss up to a rate, with one more burst like the largest, is within the target."""
        steps = [e for e in self.evidence if e.rate <= rate and not self._in_hole(e.rate)]
        lost_s = sum(e.lost_s for e in steps if e not in self.after_effects)
        largest_s = max((max(e.bursts, default=0.0) for e in steps), default=0.0)
        return lost_s + largest_s <= self.target * sum(e.seconds for e in steps) or not largest_s

    def unknown(self, why: Inconclusive) -> SearchAnswer:
        """The answer ``unknown``, with the reason and the seconds of measurement that an answer needs."""
        estimate = self.estimate
        interval = estimate.interval(estimate.temper())
        needed_s = None
        if why is Inconclusive.TOO_SHORT:
            times = max(2.0, (log(interval.width) / log(WIDEST)) ** 2)
            step_s = min(step.seconds for step in self.evidence)
            least_s = max(_USUAL_LOST_S / self.target, _USUAL_STEPS * step_s, 2 * LEAST_BELOW_S)
            needed_s = float(10 * ceil(max(times * self.spent_s, least_s) / 10))
        return SearchAnswer("unknown", interval, why=why, needed_s=needed_s, holes=self._named_holes())

    def _named_holes(self) -> tuple[LossyRange, ...]:
        return tuple(LossyRange(rate_at(low), rate_at(high)) for low, high in self.holes)

    def _loss(self, up_to: float) -> CredibleInterval | None:
        """The share lost at rates up to this one: mean over the copies, Student's interval over the steps."""
        steps = [e for e in self.evidence if e.rate <= up_to and not self._in_hole(e.rate)]
        if not steps:
            return None
        shares, copies = np.array([e.shortfall for e in steps]), np.array([e.copies for e in steps])
        weights = copies / copies.sum()
        mean = float(weights @ shares)
        spread = sqrt(float(weights**2 @ (shares - mean) ** 2) * len(steps) / max(len(steps) - 1, 1))
        # Weighted steps are worth the number of equal steps 1/Σw² (L. Kish, Survey Sampling, 1965).
        freedom = max(1 / float(weights @ weights) - 1, 1.0)
        half = float(stdtrit(freedom, 0.975)) * spread if len(steps) > 1 else mean
        return CredibleInterval(max(mean - half, 0.0), mean, mean + half)


def _usual_loss(steps: Sequence[RateObservation]) -> float:
    """The median loss of steps, each weighted with its copies."""
    if not steps:
        return 0.0
    rising = sorted(steps, key=lambda step: step.shortfall)
    sums = np.cumsum([step.copies for step in rising])
    return rising[int(np.searchsorted(sums, sums[-1] / 2))].shortfall
