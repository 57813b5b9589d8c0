"""The search for the highest rate whose loss is within the target: a script over steps. Pure.

First a bracket: from the start the rate doubles until two steps in a row lose more than the target; where the first
does, it halves until one does not. A rate that lost while its double did not is tried again: it is a *hole* if it stays
so, and left out. From there steps go where :class:`hydra.sweep.estimate.RateEstimate` decides: at R itself, not where
a loss is as likely as not, which for short steps is far above R; and every third or fourth well below, for what is lost
at any rate. The search ends when the interval is narrow enough, or the seconds are spent.

After a step that lost more than the target the next one waits, until it is found out that this system loses no more
right after an overload than a pause later; but not after one that lost what half or double its rate loses as well,
for that was no overload. A last, long step at the lower limit and all that came before it are held
against the answer.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt
from typing import Final

import numpy as np
from scipy.special import pdtr, stdtrit

from hydra.columns.names import GONE
from hydra.measure.apart import Lone
from hydra.model import Cohort, Figure, SearchSeries, SearchSpec, Settings, StepPlan, StepResult, number
from hydra.sweep.answer import Answer, Hole, Interval, Why
from hydra.sweep.asked import Asked, unmeasured
from hydra.sweep.beside import bursts_of
from hydra.sweep.estimate import FEW_BURSTS, Evidence, RateEstimate, place, rate_at

WIDEST: Final = 4.0
"""Upper over lower limit of an interval above which the figure in it is not vouched for: a factor of 2 either way."""
LEAST_BURST: Final = 0.02
"""Bursts that cost less than this share of what the target allows in a second are left out: they change nothing."""
FEWEST_STEPS: Final = 8
"""Steps that a search takes at least, however sure it is after fewer."""
REST_S: Final = 10.0
"""The pause after a step that ended in loss. Its length varies, lest steps keep time with something periodic."""
REST_STEPS: Final = 10.0
"""The pause is at most as long as so many steps, or short ones would be little beside their pauses."""
REST_SPREAD: Final = (0.9, 1.2)
LEAST_BELOW_S: Final = 30.0
"""A figure needs so many seconds of measuring at its rate or below: stalls that come every ten seconds show in them."""
LAST_S: Final = 10.0
"""The last step at the lower limit is at least so long."""
LAST_SHARE: Final = 0.2
"""A budget of which the last step would be more than this has none, and its figure rests on the form of the curve."""
_NONE_HOLDS: Final = 0.95
_SOME_HOLDS: Final = 0.08
"""How likely it is that no rate holds: above the one none does, below the other one does, between them who knows."""
_CLEARLY_BELOW: Final = 1.2
_BY_FORM: Final = 0.5
"""Evidence that counts for less leaves the figure to the form of the curve."""
_SURPRISE: Final = 0.01
_CHANGING: Final = 0.4
_FLOOR_SURE: Final = 0.9
_DOUBLING: Final = place(2000.0)
_HALVINGS: Final = 5
"""So many halvings at which the loss did not fall, and it is one that the rate has no part in."""
_EDGE_STEPS: Final = 2
_FALLING: Final = 0.67
_LEVELS: Final = 3
_BY_CHANCE: Final = 0.02
"""How likely a rate seems to hold at most, by the few copies that it loses, although it loses what its double does."""
_OVERLOAD: Final = 0.5
_GOLDEN: Final = 0.618034
_FAR: Final = 1.4
_RANGE: Final = (1 / 24, 2.2)
"""The values of R that are thought of, as multiples of the first of the two short steps."""
_WELL_BELOW: Final = 1.8
_LATE: Final = 20
_ENOUGH_TO_ASK: Final = 1.8
"""Width of the interval from which on a step can tell whether an overload has an after-effect."""
_SURELY_HELD: Final = 1.1
_FEWEST_LEVEL: Final = 3
"""So many steps at much lower rates tell what is lost there."""
_MUCH: Final = 4.0
"""An overload loses more than so many targets."""

Script = Generator[StepPlan, StepResult, None]
Step = Generator[StepPlan, StepResult, Evidence]


@dataclass
class Threshold:
    """One search: what was asked, and what is known of the answer.

    Attributes:
        settings, series, cohort: of its steps.
        without: the subscriber whose losses do not count; None: everybody's do.
        evidence: what the steps said, in their order.
        answer: what is concluded.
    """

    settings: Settings
    series: SearchSeries
    cohort: Cohort = field(default_factory=Cohort)
    without: Lone | None = None
    evidence: list[Evidence] = field(default_factory=list)
    answer: Answer = field(default_factory=lambda: Answer("unknown", why=Why.GIVEN_UP))
    _target: float = 0.0
    _lowest: int = 0
    _highest: int = 0
    _now_s: float = 0.0
    _tires: bool | None = None
    """Whether this system loses more right after an overload; None: not known."""
    _unrested: list[Evidence] = field(default_factory=list)
    """Steps right after one that lost more than the target."""
    _given_s: float = 0.0
    """Seconds of steps that another search measured."""
    _holes: list[tuple[int, int]] = field(default_factory=list)
    _after_effects: list[Evidence] = field(default_factory=list)
    _short_from: float = 0.0
    _widened: float = 1.0
    """How many times as far up rates are thought of as the bracket said."""
    _range: tuple[float, float] = (0.0, 0.0)
    _estimate: RateEstimate | None = None
    _nearest: tuple[float, StepResult] | None = None

    @property
    def interval(self) -> Interval | None:
        """The figure with its 95 % interval, messages/s, as far as it is known."""
        return self.answer.interval

    @property
    def figure(self) -> float | None:
        """The rate that is vouched for, messages/s."""
        return self.answer.interval.figure if self.answer.kind == "figure" and self.answer.interval else None

    @property
    def _known(self) -> RateEstimate:
        if self._estimate is None:
            raise RuntimeError("nothing is known of a rate before it is bracketed")
        return self._estimate

    @property
    def spent_s(self) -> float:
        """Seconds of measuring so far."""
        return sum(e.seconds for e in self.evidence) - self._given_s

    def without_it(self, lone: Lone) -> Threshold:
        """The same search without a subscriber, of a system of which it is known whether it has after-effects."""
        found = Threshold(self.settings, self.series, self.cohort, without=lone)
        found._tires = self._tires
        return found

    def limiting(self, column: str) -> Figure:
        """A figure of the step that tells what limits: of those that fell short, the one at the lowest rate."""
        return None if self._nearest is None else self._nearest[1].figures.get(column)

    # --- the script ----------------------------------------------------------------------------------------------

    def search(self, asked: Asked, search: SearchSpec, start: float, there: list[StepResult] | None = None) -> Script:
        """Asks for steps until the answer is good enough or the budget is spent.

        Args:
            asked: whom to ask.
            search: what for, and how many steps.
            start: the first rate, messages/s.
            there: steps that were measured before, which are evidence as well; those that are in it after the bracket
                are taken out.
        """
        self._target = search.target
        self._lowest, self._highest = place(search.floor_rate), place(search.start_rate * 2.0**search.max_doublings)
        at = min(max(place(max(start, search.floor_rate)), self._lowest), self._highest)
        budget_s = search.steps * asked.step_s
        if (yield from self._bracket(asked, at, budget_s)):
            while there:
                step = self._recorded(there.pop(0), asked.clients)
                self._given_s += step.seconds
            least = max(self._short_from * _RANGE[0], rate_at(self._lowest) / 2)
            self._begin(least, self._short_from * _RANGE[1])
            yield from self.narrow(asked, search.width, budget_s)

    def narrow(self, asked: Asked, width: float, budget_s: float) -> Script:
        """Goes on until so many seconds are spent in all, or the interval is as narrow as that."""
        if self._estimate is None:
            return
        last_s = max(LAST_S, asked.step_s)
        if last_s > LAST_SHARE * budget_s:
            last_s = 0.0
        while True:
            yield from self._towards(asked, width, budget_s - last_s, LEAST_BELOW_S - last_s)
            self.answer = self._concluded(budget_s)
            if self.answer.kind != "figure" or not last_s or self.answer.interval is None:
                return
            interval = self.answer.interval
            last = yield from self._step(asked, place(interval.low), last_s)
            surprise = self._known.surprise(last, interval, self._known.temper())
            self._take(last)
            self.answer = self._concluded(budget_s)
            if surprise >= _SURPRISE:
                return
            if self.spent_s + last_s + asked.step_s > budget_s:
                if self.answer.kind == "figure":
                    self.answer = self._unknown(Why.CONTRADICTED)
                return

    def _bracket(self, asked: Asked, at: int, budget_s: float) -> Generator[StepPlan, StepResult, bool]:
        """Doubles, or halves; whether there is anything to narrow then."""
        first = yield from self._step(asked, at)
        tried = [(at, self._short(first))]
        while at < self._highest and first.shortfall <= max(_OVERLOAD, self._target):
            if len(tried) > 1 and tried[-2][1] and tried[-1][1]:
                break
            at = min(at + _DOUBLING, self._highest)
            tried.append((at, (yield from self._is_short(asked, at, waits=False))))
        if not any(short for _, short in tried):
            self.answer = Answer("unknown", why=Why.ABOVE_HIGHEST)
            return False
        held = len(tried)
        while held and tried[held - 1][1]:
            held -= 1
        # Where only the highest rates held, chance made the lower ones short, or they are holes.
        yield from self._find_holes(asked, [at for at, short in tried[:held] if short], budget_s)
        self._short_from = rate_at(tried[held][0] if held < len(tried) else self._highest)
        return True if held else (yield from self._halve(asked, tried[0][0]))

    def _halve(self, asked: Asked, at: int) -> Generator[StepPlan, StepResult, bool]:
        """From a rate that lost downwards; whether there is anything to narrow then."""
        tried = [self.evidence[0]]
        while at > self._lowest:
            at = max(at - _DOUBLING, self._lowest)
            tried.append((yield from self._step(asked, at)))
            if not self._short(tried[-1]):
                self._short_from = rate_at(at + _DOUBLING)
                return True
            if _is_level(tried, self._target):
                # Lower rates tell less and less: nobody looks for the answer there.
                self._lowest, self._short_from = at, rate_at(at + _DOUBLING)
                return True
        self.answer = Answer("unknown", why=Why.BELOW_LOWEST)
        return False

    def _find_holes(self, asked: Asked, places: list[int], budget_s: float) -> Script:
        """Tries rates again that lost while a higher one did not: those stay out that do so thrice more."""
        for last in places:
            above = min(last + _DOUBLING, self._highest)
            if above in places:
                continue
            for _ in range(3):
                if self.spent_s > budget_s / 2 or not (yield from self._is_short(asked, last)):
                    break
                if (yield from self._is_short(asked, above)):
                    break
            else:
                first = last
                while first - _DOUBLING in places:
                    first -= _DOUBLING
                low = yield from self._edge(asked, first, max(first - _DOUBLING, self._lowest))
                self._holes.append((low, (yield from self._edge(asked, last, above))))

    def _edge(self, asked: Asked, inside: int, outside: int) -> Generator[StepPlan, StepResult, int]:
        """A place that holds, close to one that does not."""
        for _ in range(_EDGE_STEPS):
            middle = (inside + outside) // 2
            if (yield from self._is_short(asked, middle)):
                inside = middle
            else:
                outside = middle
        return outside

    def _towards(self, asked: Asked, width: float, budget_s: float, least_below_s: float) -> Script:
        """Steps about R until the interval is narrow enough with enough seconds below it, or the budget is spent."""
        batches = 0
        batch: list[str] = []
        while self.spent_s + asked.step_s <= budget_s + 1e-9:
            estimate = self._known
            interval, none = estimate.interval(), estimate.none_holds()
            below_s = sum(e.seconds for e in self.evidence if e.rate <= interval.figure)
            if estimate.interval(estimate.temper()).width <= width and len(self.evidence) >= FEWEST_STEPS:
                kept = self._keeps_below(interval.low / _CLEARLY_BELOW)
                if below_s >= least_below_s and none < _SOME_HOLDS and kept:
                    return
                if none < 0.5:
                    batch = ["well below", "low"]
            if none > 0.97 and self.spent_s >= LEAST_BELOW_S and len(self.evidence) >= 2 * FEWEST_STEPS:
                return
            if not batch:
                batches += 1
                batch = ["middle", "high", "beyond"]
                if batches % 3 == 1:
                    batch.insert(0, "well below")
            yield from self._one(asked, batch.pop(0), interval)
            self._widen()

    def _one(self, asked: Asked, where: str, interval: Interval) -> Script:
        """One step of a batch; two or more where it can be found out whether an overload has an after-effect."""
        estimate = self._known
        last = self.evidence[-1]
        overloaded = last.shortfall > _MUCH * self._target and last.rate > interval.low
        known = interval.width <= (_ENOUGH_TO_ASK if len(self.evidence) < _LATE else WIDEST)
        # What is lost at any rate tells as well where no rate is known to hold.
        known = known or estimate.none_holds() > 0.5
        asks = self._tires is None and overloaded and known and where in ("middle", "well below")
        if asks and not self._is_usual(last):
            yield from self._ask_for_after_effects(asked)
            return
        if where == "well below":
            rate = interval.figure / _WELL_BELOW
        elif where == "low":
            rate = interval.low
        elif where == "middle":
            rate = float(estimate.quantiles((0.35,))[0])
        else:
            rate = self._even(asked.step_s, interval)
            if where == "high":
                rate = min(float(estimate.quantiles((0.85,))[0]), rate)
        self._take((yield from self._step(asked, self._placed(rate))))

    def _even(self, seconds: float, interval: Interval) -> float:
        """The rate at which a step loses more than the target a little more often than not."""
        logs = np.linspace(log(max(interval.low, 1.0)), log(interval.high) + 0.25, 16)
        over = np.maximum.accumulate(self._known.over(np.exp(logs), seconds)) + 1e-9 * np.arange(16)
        return exp(float(np.interp(0.55, over, logs)))

    def _ask_for_after_effects(self, asked: Asked) -> Script:
        """The same low rate right after an overload and when it is long over, twice if they differ."""
        low, figure = self._known.quantiles((0.2, 0.5))
        at, over = self._placed(min(float(low), float(figure) / _SURELY_HELD)), self._placed(1.5 * float(figure))
        suspect = yield from self._step(asked, at, waits=False)
        if not self._short(suspect) or self._is_usual(suspect):
            self._tires = False
            self._take(suspect)
            return
        later = yield from self._step(asked, at)
        if self._short(later):
            self._take(suspect)
            self._take(later)
            return
        self._take(later)
        self._take((yield from self._step(asked, over)))
        again = yield from self._step(asked, at, waits=False)
        self._tires = self._short(again)
        for step in (suspect, again):
            if self._tires:
                self._after_effects.append(step)
            else:
                self._take(step)

    # --- steps ---------------------------------------------------------------------------------------------------

    def _placed(self, rate: float) -> int:
        at = place(max(rate, 1e-3))
        if at < self._lowest:
            # What is lost at any rate is told apart from what a rate loses by several of them.
            at = self._lowest + len(self.evidence) % _LEVELS * _DOUBLING
        return min(at, self._highest)

    def _short(self, step: Evidence) -> bool:
        return step.shortfall > self._target

    def _is_short(self, asked: Asked, at: int, *, waits: bool = True) -> Generator[StepPlan, StepResult, bool]:
        return self._short((yield from self._step(asked, at, waits=waits)))

    def _level(self, rate: float) -> float:
        """The share that is usually lost at half of a rate or less, not right after an overload."""
        steps = [e for e in self.evidence if e.rate <= rate / 2 and e not in self._unrested]
        return _usual_loss(steps) if len(steps) >= _FEWEST_LEVEL else 0.0

    def _is_usual(self, step: Evidence) -> bool:
        """Whether a step lost what much lower rates lose as well, or what double its rate did: it was no overload."""
        if step.shortfall > _OVERLOAD:
            return False
        above = [e.shortfall for e in self.evidence if e.rate > 1.9 * step.rate and e not in self._unrested]
        # Where half of what is sent is lost, half the rate may be too much as well.
        if above and step not in self._unrested and self._target < min(above) <= _OVERLOAD:
            return _FALLING * min(above) < step.shortfall
        level = self._level(step.rate)
        return level > self._target and step.shortfall <= level / _FALLING + 2 * sqrt(level / step.copies)

    def _rest_s(self, step_s: float) -> float:
        """How long the next step waits, in a search of steps of that length."""
        last = self.evidence[-1] if self.evidence else None
        if self._tires is False or last is None or not self._short(last) or self._is_usual(last):
            return 0.0
        return rest_s(step_s, len(self.evidence) * _GOLDEN % 1)

    def _step(self, asked: Asked, at: int, seconds: float | None = None, *, waits: bool = True) -> Step:
        needed_s = self._rest_s(asked.step_s)
        rate, rest_s = rate_at(at), needed_s if waits else 0.0
        length_s = asked.step_s if seconds is None else seconds
        result = yield from asked.step(self.settings, self.series, rate, self.cohort, length_s, rest_s)
        evidence = self._recorded(result, asked.clients)
        if rest_s < needed_s:
            self._unrested.append(evidence)
        return evidence

    def _recorded(self, result: StepResult, clients: int) -> Evidence:
        """What a step says, which is added to the evidence."""
        plan = result.plan
        rate, length_s = float(plan.settings.rate), plan.duration_s
        # With subscribers dead or silent (asked.py) the step is short of theirs as well, in every second of it.
        gone = _gone(result) if unmeasured(result) else 0.0
        whole = max(round(length_s), 1)
        bursts = [gone * length_s / whole] * whole if gone else bursts_of(result, self.without)
        least = LEAST_BURST * self._target
        now_s = self._now_s + plan.rest_s + length_s
        kept = tuple(b for b in bursts if b >= least)
        evidence = Evidence(rate, length_s, kept, now_s - length_s / 2, rate * length_s * clients)
        self._now_s = now_s
        self.evidence.append(evidence)
        if evidence.bursts and (self._nearest is None or rate <= self._nearest[0]):
            self._nearest = (rate, result)
        return evidence

    # --- the estimate --------------------------------------------------------------------------------------------

    def _in_hole(self, rate: float) -> bool:
        return any(rate_at(low) < rate < rate_at(high) for low, high in self._holes)

    def _take(self, step: Evidence) -> None:
        if self._estimate is not None and not self._in_hole(step.rate):
            self._estimate.add(step, far=step.rate > _FAR * self._widened * self._short_from)

    def _begin(self, least: float, most: float) -> None:
        """What the steps so far say of R between these rates."""
        low = [e for e in self.evidence if e.rate <= self._short_from / 2]
        low = low or [e for e in self.evidence if e.rate <= self._short_from]
        self._range = (least, most)
        self._estimate = RateEstimate(self._target, least, most, _usual_loss(low))
        for step in self.evidence:
            if step not in self._after_effects:
                self._take(step)

    def _widen(self) -> None:
        """Thinks of more rates where the answer leans on an end of those that it thinks of."""
        low, _, high = self._known.interval()
        least, most = self._range
        lowest, highest = rate_at(self._lowest) / 2, rate_at(self._highest) * 2
        if low < 1.2 * least and least > lowest and self._known.none_holds() < 0.5:
            self._begin(max(least / 16, lowest), most)
        elif high > most / 1.05 and most < highest:
            self._widened *= 4
            self._begin(least, min(most * 4, highest))

    # --- the answer ----------------------------------------------------------------------------------------------

    def _concluded(self, budget_s: float) -> Answer:
        """What all steps so far come to."""
        estimate = self._known
        temper, none = estimate.temper(), estimate.none_holds()
        interval = estimate.interval(temper)
        if estimate.changing() > _CHANGING:
            return self._unknown(Why.CHANGING)
        if none > _NONE_HOLDS:
            return Answer("none", loss=self._loss(self._short_from))
        if none > _SOME_HOLDS or interval.width > WIDEST or not self._keeps_below(interval.low / _CLEARLY_BELOW):
            return self._unknown(Why.TOO_SHORT)
        if interval.low < 1.1 * self._range[0]:
            return self._unknown(Why.BELOW_LOWEST)
        if any(
            estimate.surprise(e, interval, temper) < _SURPRISE / len(self.evidence)
            for e in estimate.evidence
            if e.rate <= interval.high
        ):
            return self._unknown(Why.CONTRADICTED)
        below_s = sum(e.seconds for e in self.evidence if e.rate <= interval.figure)
        loss = self._loss(interval.low / 1.3) if estimate.floor() > _FLOOR_SURE else None
        form = below_s < LEAST_BELOW_S or LAST_SHARE * budget_s < LAST_S or temper < _BY_FORM
        return Answer("figure", interval, loss, holes=self._named_holes(), form=form)

    def _keeps_below(self, rate: float) -> bool:
        """Whether what was lost up to a rate, and one burst more, is what the target allows in that time."""
        steps = [e for e in self.evidence if e.rate <= rate and not self._in_hole(e.rate)]
        lost_s = sum(e.lost_s for e in steps if e not in self._after_effects)
        largest_s = max((max(e.bursts, default=0.0) for e in steps), default=0.0)
        return lost_s + largest_s <= self._target * sum(e.seconds for e in steps) or not largest_s

    def _unknown(self, why: Why) -> Answer:
        """That the search cannot tell, and what would tell."""
        estimate = self._known
        interval = estimate.interval(estimate.temper())
        needed_s = None
        if why is Why.TOO_SHORT:
            times = max(2.0, (log(interval.width) / log(WIDEST)) ** 2)
            bursts = FEW_BURSTS * estimate.burst_s() / self._target
            needed_s = float(10 * ceil(max(times * self.spent_s, bursts, 2 * LEAST_BELOW_S) / 10))
        return Answer("unknown", interval, why=why, needed_s=needed_s, holes=self._named_holes())

    def _named_holes(self) -> tuple[Hole, ...]:
        return tuple(Hole(rate_at(low), rate_at(high)) for low, high in self._holes)

    def _loss(self, up_to: float) -> Interval | None:
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
        return Interval(max(mean - half, 0.0), mean, mean + half)


def rest_s(step_s: float, part: float = 1.0) -> float:
    """The pause after a step that ended in loss, this part of the way (0 to 1) from the shortest to the longest."""
    low, high = REST_SPREAD
    return round(min(REST_S, REST_STEPS * step_s) * (low + (high - low) * part), 2)


def _is_level(tried: Sequence[Evidence], target: float) -> bool:
    """Whether it is no use to go on halving the rate, as each of these steps did.

    The loss did not fall with it: over several halvings, or over the last one where the next could not tell it from one
    within the target.
    """
    last = tried[-1]
    copies = last.copies / 2
    tells = float(pdtr(int(target * copies), last.shortfall * copies)) < _BY_CHANCE
    back = 1 + (_HALVINGS if tells else 1)
    return len(tried) >= back and _FALLING * tried[-back].shortfall < last.shortfall <= _OVERLOAD


def _gone(result: StepResult) -> float:
    """The share that a step lost of which subscribers are gone, who are missed by its figures: theirs at least."""
    gone = sum(number(result.figures.get(column)) or 0.0 for column in GONE) / result.plan.clients
    return min(max(gone, (number(result.figures.get("client_loss_pct")) or 0.0) / 100), 1.0)


def _usual_loss(steps: Sequence[Evidence]) -> float:
    """The median loss of steps, each counted by its copies."""
    if not steps:
        return 0.0
    rising = sorted(steps, key=lambda step: step.shortfall)
    sums = np.cumsum([step.copies for step in rising])
    return rising[int(np.searchsorted(sums, sums[-1] / 2))].shortfall
