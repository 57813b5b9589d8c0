"""The search for the highest rate whose loss is within the target: a script over steps. Pure.

First the search brackets the rate: the rate doubles until two steps in a row lose more than the target, or three steps
if the second still received much more than the first. If already the first step loses more than the target, the rate
halves until a step does not. A rate that lost although its double did not is tried again; if it loses again, it is a
*hole*, which the figure leaves out. After the bracket, :class:`hydra.sweep.estimate.RateEstimate` decides the rates of
the steps: near R itself, not where half of the steps lose, which for short steps is far above R; and every third or
fourth well below, for the loss at any rate. The search ends when the interval is narrow enough, or the seconds are
spent.

After a step that lost more than the target the next step waits, until the search has found that this system loses no
more right after an overload than after a pause. The search does not wait after a step that lost as much as half or
double its rate, since that was no overload. At the end the answer is checked against a last, long step at the lower
limit and against all steps before it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Final

import numpy as np
from scipy.special import pdtr

from hydra.measure.column import LoneLossySubscriber
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Cohort, Settings, StepPlan
from hydra.sweep.estimate import RateObservation, place, rate_at
from hydra.sweep.findings import FALLING, OVERLOAD, Findings
from hydra.sweep.scripted_sweep import Script
from hydra.sweep.search_answer import SURPRISE, CredibleInterval, Inconclusive, SearchAnswer, bursts_of
from hydra.sweep.search_end import WIDEST, StopRule, unknown
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.step_retry import StepRetry, unmeasured

LEAST_BURST: Final = 0.02
"""Bursts with less than this share of the loss that the target allows in a second are left out as negligible."""
REST_S: Final = 10.0
"""The pause in seconds after a step that ended in loss; its length varies, so steps follow no periodic event."""
REST_STEPS: Final = 10.0
"""The pause is at most as long as this number of steps, so searches with short steps do not mostly wait."""
REST_SPREAD: Final = (0.9, 1.2)
_DOUBLING: Final = place(2000.0)
_STILL_GROWS: Final = 1.5
_HALVINGS: Final = 5
"""If the loss does not fall over this number of halvings, the rate is not its cause."""
_EDGE_STEPS: Final = 2
_LEVELS: Final = 3
_BY_CHANCE: Final = 0.02
"""The highest probability that half the rate seems to hold by chance although it loses the same share."""
_GOLDEN: Final = 0.618034
_WELL_BELOW: Final = 1.8
_LATE: Final = 20
_ENOUGH_TO_ASK: Final = 1.8
"""The widest interval at which a step can show whether an overload has an after-effect."""
_SURELY_HELD: Final = 1.1
_MUCH: Final = 4.0
"""An overload loses more than this many targets."""

Step = Generator[StepPlan, StepResult, RateObservation]


@dataclass
class ThresholdSearch:
    """One search: the settings of its steps, and its answer so far.

    Attributes:
        settings, series, cohort: those of its steps.
        without: the subscriber whose losses do not count; None: the losses of all subscribers count.
        findings: the observations of its steps.
        answer: the answer so far.
    """

    settings: Settings
    series: SearchSeries
    cohort: Cohort = field(default_factory=Cohort)
    without: LoneLossySubscriber | None = None
    findings: Findings = field(default_factory=Findings)
    answer: SearchAnswer = field(default_factory=lambda: SearchAnswer("unknown", why=Inconclusive.GIVEN_UP))
    _now_s: float = 0.0
    _has_after_effect: bool | None = None
    """Whether this system loses more right after an overload; None: not known."""
    _nearest: tuple[float, StepResult] | None = None

    @property
    def interval(self) -> CredibleInterval | None:
        """The figure with its 95 % confidence interval, messages/s; None if it is not known."""
        return self.answer.interval

    @property
    def figure(self) -> float | None:
        """The rate that was found, messages/s; None if none was."""
        return self.answer.interval.figure if self.answer.kind == "figure" and self.answer.interval else None

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The rates (messages/s) between which the answer is by the steps so far; None: no limit is known."""
        if (found := self.interval) is None and self.findings.bracketed:
            found = self.findings.estimate.interval(self.findings.estimate.temper())
        if found is not None:
            return found.low, found.high
        short = [e.rate for e in self.findings.evidence if self.findings.short(e)]
        high = min(short, default=None)
        passed = [e.rate for e in self.findings.evidence if not self.findings.short(e)]
        return max((rate for rate in passed if high is None or rate < high), default=None), high

    def without_subscriber(self, lone: LoneLossySubscriber) -> ThresholdSearch:
        """A new search that leaves out one subscriber; it knows what this one found about after-effects."""
        found = ThresholdSearch(self.settings, self.series, self.cohort, without=lone)
        found._has_after_effect = self._has_after_effect
        return found

    @property
    def limiting_step(self) -> StepResult | None:
        """The step that shows what limits: the step at the lowest rate of those with losses."""
        return None if self._nearest is None else self._nearest[1]

    @property
    def limiting(self) -> StepFigures:
        """The figures of that step; none without one."""
        return StepFigures() if self.limiting_step is None else self.limiting_step.figures

    # --- the script ----------------------------------------------------------------------------------------------

    def search(
        self, retry: StepRetry, search: SearchSpec, start: float, there: list[StepResult] | None = None
    ) -> Script:
        """Yields steps until the interval is narrow enough or the budget is spent.

        Args:
            retry: yields each step with its retries.
            search: the loss target, the width of the interval and the number of steps.
            start: the first rate, messages/s.
            there: steps that were measured before, which are evidence as well; those left in the list after the
                bracket are taken from it.
        """
        self.findings.target = search.target
        lowest, highest = place(search.floor_rate), place(search.start_rate * 2.0**search.max_doublings)
        self.findings.lowest, self.findings.highest = lowest, highest
        at = min(max(place(max(start, search.floor_rate)), lowest), highest)
        rule = StopRule.of(search, retry.step_s)
        if (yield from self._bracket(retry, at, rule.budget_s)):
            while there:
                step = self._recorded(there.pop(0), retry.clients)
                self.findings.given_s += step.seconds
            self.findings.begin()
            yield from self.narrow(retry, rule)

    def narrow(self, retry: StepRetry, rule: StopRule) -> Script:
        """Continues until the search ends by its rule."""
        if not self.findings.bracketed:
            return
        while True:
            yield from self._towards(retry, rule)
            self.answer = rule.answer(self.findings)
            if self.answer.kind != "figure" or not rule.last_s or self.answer.interval is None:
                return
            interval = self.answer.interval
            last = yield from self._step(retry, place(interval.low), rule.last_s)
            surprise = self.findings.estimate.surprise(last, interval, self.findings.estimate.temper())
            self.findings.take(last)
            self.answer = rule.answer(self.findings)
            if surprise >= SURPRISE:
                return
            if rule.is_spent(self.findings):
                if self.answer.kind == "figure":
                    self.answer = unknown(self.findings, Inconclusive.CONTRADICTED)
                return

    def _bracket(self, retry: StepRetry, at: int, budget_s: float) -> Generator[StepPlan, StepResult, bool]:
        """Doubles or halves the rate; returns whether there is an interval to narrow."""
        first = yield from self._step(retry, at)
        tried = [(at, self.findings.short(first))]
        while at < self.findings.highest and first.shortfall <= max(OVERLOAD, self.findings.target):
            in_a_row = next((n for n, (_, short) in enumerate(reversed(tried)) if not short), len(tried))
            if in_a_row > 2 or (in_a_row == 2 and not self._still_grows()):
                break
            at = min(at + _DOUBLING, self.findings.highest)
            tried.append((at, (yield from self._is_short(retry, at, waits=False))))
        if not any(short for _, short in tried):
            self.answer = SearchAnswer("unknown", why=Inconclusive.ABOVE_HIGHEST)
            return False
        held = len(tried)
        while held and tried[held - 1][1]:
            held -= 1
        # If only the highest rates held, the lower ones lost by chance, or they are holes.
        yield from self._find_holes(retry, [at for at, short in tried[:held] if short], budget_s)
        self.findings.short_from = rate_at(tried[held][0] if held < len(tried) else self.findings.highest)
        return True if held else (yield from self._halve(retry, tried[0][0]))

    def _still_grows(self) -> bool:
        """Whether much more arrived in the last step than in the one before: then no capacity caused the loss."""
        before, last = (e.rate * (1 - e.shortfall) for e in self.findings.evidence[-2:])
        return last > _STILL_GROWS * before

    def _halve(self, retry: StepRetry, at: int) -> Generator[StepPlan, StepResult, bool]:
        """Halves a rate that lost; returns whether there is an interval to narrow."""
        tried = [self.findings.evidence[0]]
        while at > self.findings.lowest:
            at = max(at - _DOUBLING, self.findings.lowest)
            tried.append((yield from self._step(retry, at)))
            if not self.findings.short(tried[-1]):
                self.findings.short_from = rate_at(at + _DOUBLING)
                return True
            if _is_level(tried, self.findings.target):
                # Lower rates give less and less evidence, so the search ends here.
                self.findings.lowest, self.findings.short_from = at, rate_at(at + _DOUBLING)
                return True
        self.answer = SearchAnswer("unknown", why=Inconclusive.BELOW_LOWEST)
        return False

    def _find_holes(self, retry: StepRetry, places: list[int], budget_s: float) -> Script:
        """Tries rates again that lost although a higher one did not; rates that do so three times more are holes."""
        for last in places:
            above = min(last + _DOUBLING, self.findings.highest)
            if above in places:
                continue
            for _ in range(3):
                if self.findings.spent_s > budget_s / 2 or not (yield from self._is_short(retry, last)):
                    break
                if (yield from self._is_short(retry, above)):
                    break
            else:
                first = last
                while first - _DOUBLING in places:
                    first -= _DOUBLING
                low = yield from self._edge(retry, first, max(first - _DOUBLING, self.findings.lowest))
                self.findings.holes.append((low, (yield from self._edge(retry, last, above))))

    def _edge(self, retry: StepRetry, inside: int, outside: int) -> Generator[StepPlan, StepResult, int]:
        """The place of a rate that holds, close to one that does not."""
        for _ in range(_EDGE_STEPS):
            middle = (inside + outside) // 2
            if (yield from self._is_short(retry, middle)):
                inside = middle
            else:
                outside = middle
        return outside

    def _towards(self, retry: StepRetry, rule: StopRule) -> Script:
        """Yields steps near R until the rule decides, or no step fits before the last one."""
        batches = 0
        batch: list[str] = []
        while not rule.is_spent(self.findings):
            interval, narrow = self.findings.estimate.interval(), rule.is_narrow(self.findings)
            if rule.is_decided(self.findings, narrow=narrow):
                return
            if narrow and self.findings.estimate.none_holds() < 0.5:
                batch = ["well below", "low"]
            if not batch:
                batches += 1
                batch = ["middle", "high", "beyond"]
                if batches % 3 == 1:
                    batch.insert(0, "well below")
            yield from self._one(retry, batch.pop(0), interval)
            self.findings.widen()

    def _one(self, retry: StepRetry, where: str, interval: CredibleInterval) -> Script:
        """Yields one step of a batch, or several if they can show whether an overload has an after-effect."""
        estimate = self.findings.estimate
        last = self.findings.evidence[-1]
        overloaded = last.shortfall > _MUCH * self.findings.target and last.rate > interval.low
        known = interval.width <= (_ENOUGH_TO_ASK if len(self.findings.evidence) < _LATE else WIDEST)
        # If no rate holds, the loss at any rate is evidence, too.
        known = known or estimate.none_holds() > 0.5
        asks = self._has_after_effect is None and overloaded and known and where in ("middle", "well below")
        if asks and not self.findings.is_usual(last):
            yield from self._ask_for_after_effects(retry)
            return
        if where == "well below":
            rate = interval.figure / _WELL_BELOW
        elif where == "low":
            rate = interval.low
        elif where == "middle":
            rate = float(estimate.quantiles((0.35,))[0])
        else:
            rate = self._even(retry.step_s, interval)
            if where == "high":
                rate = min(float(estimate.quantiles((0.85,))[0]), rate)
        self.findings.take((yield from self._step(retry, self._placed(rate))))

    def _even(self, seconds: float, interval: CredibleInterval) -> float:
        """The rate at which a step loses more than the target with a probability of 0.55."""
        logs = np.linspace(log(max(interval.low, 1.0)), log(interval.high) + 0.25, 16)
        over = np.maximum.accumulate(self.findings.estimate.over(np.exp(logs), seconds)) + 1e-9 * np.arange(16)
        return exp(float(np.interp(0.55, over, logs)))

    def _ask_for_after_effects(self, retry: StepRetry) -> Script:
        """Measures one low rate right after an overload and after a pause, twice if the two results differ."""
        low, figure = self.findings.estimate.quantiles((0.2, 0.5))
        at, over = self._placed(min(float(low), float(figure) / _SURELY_HELD)), self._placed(1.5 * float(figure))
        suspect = yield from self._step(retry, at, waits=False)
        if not self.findings.short(suspect) or self.findings.is_usual(suspect):
            self._has_after_effect = False
            self.findings.take(suspect)
            return
        later = yield from self._step(retry, at)
        if self.findings.short(later):
            self.findings.take(suspect)
            self.findings.take(later)
            return
        self.findings.take(later)
        self.findings.take((yield from self._step(retry, over)))
        again = yield from self._step(retry, at, waits=False)
        self._has_after_effect = self.findings.short(again)
        for step in (suspect, again):
            if self._has_after_effect:
                self.findings.after_effects.append(step)
            else:
                self.findings.take(step)

    # --- steps ---------------------------------------------------------------------------------------------------

    def _placed(self, rate: float) -> int:
        at = place(max(rate, 1e-3))
        if at < self.findings.lowest:
            # Several rates distinguish the loss at any rate from the loss that the rate causes.
            at = self.findings.lowest + len(self.findings.evidence) % _LEVELS * _DOUBLING
        return min(at, self.findings.highest)

    def _is_short(self, retry: StepRetry, at: int, *, waits: bool = True) -> Generator[StepPlan, StepResult, bool]:
        return self.findings.short((yield from self._step(retry, at, waits=waits)))

    def pause_s(self, step_s: float) -> float:
        """The pause before the next step in seconds, in a search with steps of ``step_s`` seconds."""
        last = self.findings.evidence[-1] if self.findings.evidence else None
        if (
            self._has_after_effect is False
            or last is None
            or not self.findings.short(last)
            or self.findings.is_usual(last)
        ):
            return 0.0
        return rest_s(step_s, len(self.findings.evidence) * _GOLDEN % 1)

    def _step(self, retry: StepRetry, at: int, seconds: float | None = None, *, waits: bool = True) -> Step:
        needed_s = self.pause_s(retry.step_s)
        rate, rest_s = rate_at(at), needed_s if waits else 0.0
        length_s = retry.step_s if seconds is None else seconds
        result = yield from retry.step(self.settings, self.series, rate, self.cohort, length_s, rest_s)
        evidence = self._recorded(result, retry.clients)
        if rest_s < needed_s:
            self.findings.unrested.append(evidence)
        return evidence

    def _recorded(self, result: StepResult, clients: int) -> RateObservation:
        """The observation of a step, which is added to the evidence."""
        plan = result.plan
        rate, length_s = float(plan.settings.rate), plan.duration_s
        # If subscribers are dead or silent (step_retry.py), the step lacks their messages in every second.
        failed = _failed_share(result) if unmeasured(result) else 0.0
        whole = max(round(length_s), 1)
        bursts = [failed * length_s / whole] * whole if failed else bursts_of(result, self.without)
        least = LEAST_BURST * self.findings.target
        now_s = self._now_s + plan.rest_s + length_s
        kept = tuple(b for b in bursts if b >= least)
        evidence = RateObservation(rate, length_s, kept, now_s - length_s / 2, rate * length_s * clients)
        self._now_s = now_s
        self.findings.evidence.append(evidence)
        if evidence.bursts and (self._nearest is None or rate <= self._nearest[0]):
            self._nearest = (rate, result)
        return evidence


def rest_s(step_s: float, part: float = 1.0) -> float:
    """The pause in seconds after a step that ended in loss; ``part`` goes from 0 (shortest) to 1 (longest)."""
    low, high = REST_SPREAD
    return round(min(REST_S, REST_STEPS * step_s) * (low + (high - low) * part), 1)


def _is_level(tried: Sequence[RateObservation], target: float) -> bool:
    """Whether further halving of the rate is useless, since the loss did not fall over the halvings so far.

    That is so after several halvings, or after one if the next step could not distinguish its loss from the target.
    """
    last = tried[-1]
    copies = last.copies / 2
    is_clear = float(pdtr(int(target * copies), last.shortfall * copies)) < _BY_CHANCE
    back = 1 + (_HALVINGS if is_clear else 1)
    return len(tried) >= back and FALLING * tried[-back].shortfall < last.shortfall <= OVERLOAD


def _failed_share(result: StepResult) -> float:
    """The share that a step lost if subscribers are dead or silent: at least the messages of these subscribers."""
    failed = result.figures.loss.without_report / result.plan.clients
    return min(max(failed, (result.figures.totals.client_loss_pct or 0.0) / 100), 1.0)
