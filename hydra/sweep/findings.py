"""What the steps of a search come to: an overload or what is usual, the range of R, and the answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, log, sqrt
from typing import Final

import numpy as np
from scipy.special import stdtrit

from hydra.sweep.estimate import FEW_BURSTS, RateEstimate, RateObservation, rate_at
from hydra.sweep.search_answer import CredibleInterval, Inconclusive, LossyRange, SearchAnswer

WIDEST: Final = 4.0
"""Upper over lower limit of an interval above which the figure in it is not vouched for: a factor of 2 either way."""
LEAST_BELOW_S: Final = 30.0
"""A figure needs so many seconds of measuring at its rate or below: stalls that come every ten seconds show in them."""
_NONE_HOLDS: Final = 0.95
SOME_HOLDS: Final = 0.08
"""How likely it is that no rate holds: above the one none does, below the other one does, between them who knows."""
CLEARLY_BELOW: Final = 1.2
_BY_FORM: Final = 0.5
"""Evidence that counts for less leaves the figure to the form of the curve."""
SURPRISE: Final = 0.01
_CHANGING: Final = 0.4
_FLOOR_SURE: Final = 0.9
FALLING: Final = 0.67
OVERLOAD: Final = 0.5
_FAR: Final = 1.4
_RANGE: Final = (1 / 24, 2.2)
"""The values of R that are thought of, as multiples of the first of the two short steps."""
_FEWEST_LEVEL: Final = 3
"""So many steps at much lower rates tell what is lost there."""
LAST_S: Final = 10.0
"""The last step at the lower limit is at least so long."""
LAST_SHARE: Final = 0.2
"""A budget of which the last step would be more than this has none, and its figure rests on the form of the curve."""


@dataclass
class Findings:
    """All steps of one search, and what they say of R.

    Attributes:
        target: the loss that is allowed, as a fraction.
        lowest, highest: places of the rates that may be tried.
        evidence: what the steps said, in their order.
        given_s: seconds of those that another search measured.
        unrested: those right after one that lost more than the target.
        after_effects: those that an overload before them spoiled, which tell nothing of their rates.
        holes: places between which more is lost than above them.
        short_from: the lowest rate of the bracket that fell short, messages/s.
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
    """How many times as far up rates are thought of as the bracket said."""
    _range: tuple[float, float] = (0.0, 0.0)
    _estimate: RateEstimate | None = None

    @property
    def bracketed(self) -> bool:
        """Whether there is an estimate."""
        return self._estimate is not None

    @property
    def estimate(self) -> RateEstimate:
        """What is known of R."""
        if self._estimate is None:
            raise RuntimeError("nothing is known of a rate before it is bracketed")
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
        """Whether a step lost what much lower rates lose as well, or what double its rate did: it was no overload."""
        if step.shortfall > OVERLOAD:
            return False
        above = [e.shortfall for e in self.evidence if e.rate > 1.9 * step.rate and e not in self.unrested]
        # Where half of what is sent is lost, half the rate may be too much as well.
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
        """The rate is bracketed: what the steps so far say of R."""
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
        """Thinks of more rates where the answer leans on an end of those that it thinks of."""
        low, _, high = self.estimate.interval()
        least, most = self._range
        lowest, highest = rate_at(self.lowest) / 2, rate_at(self.highest) * 2
        if low < 1.2 * least and least > lowest and self.estimate.none_holds() < 0.5:
            self._between(max(least / 16, lowest), most)
        elif high > most / 1.05 and most < highest:
            self._widened *= 4
            self._between(least, min(most * 4, highest))

    def concluded(self, budget_s: float) -> SearchAnswer:
        """What all steps so far come to."""
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
        """Whether what was lost up to a rate, and one burst more, is what the target allows in that time."""
        steps = [e for e in self.evidence if e.rate <= rate and not self._in_hole(e.rate)]
        lost_s = sum(e.lost_s for e in steps if e not in self.after_effects)
        largest_s = max((max(e.bursts, default=0.0) for e in steps), default=0.0)
        return lost_s + largest_s <= self.target * sum(e.seconds for e in steps) or not largest_s

    def unknown(self, why: Inconclusive) -> SearchAnswer:
        """That the search cannot tell, and what would tell."""
        estimate = self.estimate
        interval = estimate.interval(estimate.temper())
        needed_s = None
        if why is Inconclusive.TOO_SHORT:
            times = max(2.0, (log(interval.width) / log(WIDEST)) ** 2)
            bursts = FEW_BURSTS * estimate.burst_s() / self.target
            needed_s = float(10 * ceil(max(times * self.spent_s, bursts, 2 * LEAST_BELOW_S) / 10))
        return SearchAnswer("unknown", interval, why=why, needed_s=needed_s, holes=self._named_holes())

    def _named_holes(self) -> tuple[LossyRange, ...]:
        return tuple(LossyRange(rate_at(low), rate_at(high)) for low, high in self.holes)

    def _loss(self, up_to: float) -> CredibleInterval | None:
        """The share that is lost at rates up to this one: mean over the copies, Student's interval over the steps."""
        steps = [e for e in self.evidence if e.rate <= up_to and not self._in_hole(e.rate)]
        if not steps:
            return None
        shares, copies = np.array([e.shortfall for e in steps]), np.array([e.copies for e in steps])
        weights = copies / copies.sum()
        mean = float(weights @ shares)
        spread = sqrt(float(weights**2 @ (shares - mean) ** 2) * len(steps) / max(len(steps) - 1, 1))
        # By their copies, they tell as much as so many equal steps (L. Kish, Survey Sampling, 1965).
        freedom = max(1 / float(weights @ weights) - 1, 1.0)
        half = float(stdtrit(freedom, 0.975)) * spread if len(steps) > 1 else mean
        return CredibleInterval(max(mean - half, 0.0), mean, mean + half)


def _usual_loss(steps: Sequence[RateObservation]) -> float:
    """The median loss of steps, each counted by its copies."""
    if not steps:
        return 0.0
    rising = sorted(steps, key=lambda step: step.shortfall)
    sums = np.cumsum([step.copies for step in rising])
    return rising[int(np.searchsorted(sums, sums[-1] / 2))].shortfall
