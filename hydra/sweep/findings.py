"""The steps of a search, and what follows from them: overloads, holes, and the range of R. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

import numpy as np
from scipy.special import stdtrit

from hydra.sweep.estimate import RateEstimate, RateObservation, rate_at
from hydra.sweep.search_answer import CredibleInterval, LossyRange

FALLING: Final = 0.67
OVERLOAD: Final = 0.5
_FAR: Final = 1.4
_RANGE: Final = (1 / 24, 2.2)
"""The values of R that the estimate considers, as multiples of the rate of the first of the two short steps."""
_FEWEST_LEVEL: Final = 3
"""At least this many steps at much lower rates determine the usual loss there."""


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

    @property
    def least_rate(self) -> float:
        """The lowest rate (messages/s) that the estimate considers."""
        return self._range[0]

    def seconds_up_to(self, rate: float) -> float:
        """The seconds measured at a rate or below."""
        return sum(e.seconds for e in self.evidence if e.rate <= rate)

    def keeps_below(self, rate: float) -> bool:
        """Whether the loss up to a rate, with one more burst like the largest, is within the target."""
        steps = [e for e in self.evidence if e.rate <= rate and not self._in_hole(e.rate)]
        lost_s = sum(e.lost_s for e in steps if e not in self.after_effects)
        largest_s = max((max(e.bursts, default=0.0) for e in steps), default=0.0)
        return lost_s + largest_s <= self.target * sum(e.seconds for e in steps) or not largest_s

    @property
    def lossy_ranges(self) -> tuple[LossyRange, ...]:
        """The holes as ranges of rates."""
        return tuple(LossyRange(rate_at(low), rate_at(high)) for low, high in self.holes)

    def loss_up_to(self, rate: float) -> CredibleInterval | None:
        """The share lost at a rate or below: mean over the copies, Student's interval over the steps."""
        steps = [e for e in self.evidence if e.rate <= rate and not self._in_hole(e.rate)]
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
