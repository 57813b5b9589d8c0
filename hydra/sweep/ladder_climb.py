"""The search on a ladder for two neighbouring rungs of which the lower one is held and the higher one is not. Pure.

Short steps bracket the answer: up from a clean rung or down from one that is not, 1, 2, 4, … rungs at a time, then by
halves. The clean rung is then held for a whole duration; if it is not, whole durations continue below it. At last the
rung above is measured once more before it counts as not held. So is a rung that chance may have held: the last whole
duration counts, or half of them if the time is over before a lower rung is held. A step decides by the rule that rows
have for *clean* (``cleanness.py``): losses choose the next rung, and nothing else is inferred from them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from hydra.measure.step_result import StepResult
from hydra.measure.verdict import OTHERS_PCT
from hydra.model import Cohort, Settings, StepPlan
from hydra.sweep.cleanness import flaws, others_of, why_not_clean
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.interface import QUICK_DRAIN_S, LadderProgress
from hydra.sweep.ladder import Ladder
from hydra.sweep.scripted_sweep import Script
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.step_retry import StepRetry

LEAST_MESSAGES: Final = 20
"""Every step is so long that a publisher sends at least this many messages."""
_USUAL_DURATION_S: Final = 10.0
USUAL_SHORT_S: Final = 2.0
_WHOLE_STEPS: Final = 3
_SHORT_STEPS: Final = 4
"""The numbers of steps of a whole duration, and of short ones, whose greater length raises the time limit."""
_FAR_TOO_MUCH: Final = 20.0
_HARDLY_ANY: Final = 0.05
"""Losses as multiples of the target: above the one, the next rungs below are left out; above the other, a rung that was
held is near the highest one."""


class HeldKind(Enum):
    """What is known of the rate that is held."""

    HELD = "held"
    """A rung was held, and a higher one was not, or there is none."""
    AT_LEAST = "at_least"
    """A rung was held; the clients or their hosts were the limit of the step above it, or the time was over."""
    UNCONFIRMED = "unconfirmed"
    """The time was over before a rung was held for a whole duration."""
    NONE = "none_held"
    """Not even the lowest rung was held."""


class Try(NamedTuple):
    """A step at a rung; ``whole`` is whether it lasted for a whole duration."""

    step: StepResult
    clean: bool
    whole: bool


def _holds(tries: Sequence[Try]) -> StepResult | None:
    """The last step of a whole duration if it is clean; None: there is none."""
    last = next((each for each in reversed(tries) if each.whole), None)
    return last.step if last and last.clean else None


def _holds_in_half(tries: Sequence[Try]) -> StepResult | None:
    """The last clean step of a whole duration if at least half of these steps are clean; None: they are not."""
    whole = [each for each in tries if each.whole]
    clean = [each.step for each in whole if each.clean]
    return clean[-1] if clean and 2 * len(clean) >= len(whole) else None


class _TimeOverError(Exception):
    """The next step would exceed the time limit."""


@dataclass
class LadderClimb:
    """One series of a client count.

    Attributes:
        settings, series, cohort: those of its steps.
        ladder: the ladder.
        lowest, highest: its first and last rung.
        duration_s: how long a rate has to be held, in seconds.
        short_s: the length of the steps that bracket it, in seconds.
        within_s: its time limit in seconds, connecting included.
        spent_s: the time of its steps so far, in seconds.
        tries: the steps at each rung, in their order.
        low, high: the highest rung that is held and the lowest one that is not, by what is known; None: there is none.
        ended: whether it has ended.
    """

    settings: Settings
    series: SearchSeries
    cohort: Cohort
    ladder: Ladder
    lowest: int
    highest: int
    duration_s: float
    short_s: float
    within_s: float
    spent_s: float = 0.0
    tries: dict[int, list[Try]] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    ended: bool = False

    # --- what is known -----------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[StepResult]:
        """All measured steps, in their order."""
        return sorted((each.step for tries in self.tries.values() for each in tries), key=lambda step: step.epoch)

    @property
    def kind(self) -> HeldKind:
        """What is known."""
        if self.low is None:
            return HeldKind.NONE if self._fails(self.lowest) else HeldKind.UNCONFIRMED
        if self.confirming is None:
            return HeldKind.UNCONFIRMED
        if self.high is None:
            return HeldKind.AT_LEAST if self.low < self.highest else HeldKind.HELD
        limited = self.failing is not None and self.failing.figures.limit.generator_limited
        return HeldKind.AT_LEAST if limited else HeldKind.HELD

    @property
    def confirming(self) -> StepResult | None:
        """The step in which the held rung was held for a whole duration; None: there is none."""
        return None if self.low is None else _holds_in_half(self.tries[self.low])

    @property
    def failing(self) -> StepResult | None:
        """The last step at the rung that was not held; None: no rung was."""
        tries = self.tries.get(self.high, []) if self.high is not None else []
        return next((each.step for each in reversed(tries) if not each.clean), None)

    @property
    def failures(self) -> int:
        """The number of steps at that rung that were not clean."""
        return 0 if self.high is None else sum(not each.clean for each in self.tries.get(self.high, []))

    @property
    def holds(self) -> tuple[int, int]:
        """Of the steps of a whole duration at the held rung, how many were clean, and how many there were."""
        whole = [each.clean for each in self.tries.get(self.low, []) if each.whole] if self.low is not None else []
        return sum(whole), len(whole)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The rates (messages/s) of the two rungs so far."""
        low, high = (None if rung is None else self.ladder.rate(rung) for rung in (self.low, self.high))
        return low, high

    @property
    def failed_below(self) -> list[float]:
        """The rates (messages/s) not held in two steps although a step at a higher one was clean, ascending."""
        clean = max((rung for rung, tries in self.tries.items() if any(t.clean for t in tries)), default=self.lowest)
        return [self.ladder.rate(rung) for rung in sorted(self.tries) if rung < clean and self._fails(rung)]

    def _fails(self, rung: int) -> bool:
        """Whether a rung was not held in two steps in a row, the last ones."""
        last = self.tries.get(rung, [])[-2:]
        return len(last) == 2 and not any(each.clean for each in last)

    # --- the script --------------------------------------------------------------------------------------------------

    def climb(self, retry: StepRetry, start: float, fastest: float | None = None) -> Script:
        """Yields steps until two neighbours are known, or the time is over.

        Args:
            retry: yields each step with its retries.
            start: the rate (messages/s) with whose rung it begins.
            fastest: what a publisher sent at full speed (messages/s), which no rung above is tried beyond; None: not
                known.
        """
        at = min(max(self.ladder.at_most(start), self.lowest), self.highest)
        most = self.highest if fastest is None else min(max(self.ladder.at_least(fastest), at), self.highest)
        with contextlib.suppress(_TimeOverError):
            yield from self._neighbours(retry, at, most)
        with contextlib.suppress(_TimeOverError):
            while (yield from self._goes_on(retry)):
                pass
        if self.confirming is None and not self._fails(self.lowest):
            # There was no time to hold a rung whose short step was clean, or one below a rung that was held in part.
            held = self._held_below(self.highest + 1)
            if held is None:
                held = self._held_below(self.highest + 1, _holds_in_half)
            if held is not None:
                self.low, self.high = held, self._failed_above(held)
        self.ended = True

    def bracket(self, retry: StepRetry, start: float) -> Script:
        """Yields the short steps only, which end with two neighbours, or at an end of the ladder."""
        at = min(max(self.ladder.at_most(start), self.lowest), self.highest)
        yield from self._neighbours(retry, at, self.highest)

    def _neighbours(self, retry: StepRetry, at: int, most: int) -> Script:
        """Yields short steps until the highest clean rung and the lowest other one are neighbours, or an end is met.

        Args:
            retry: yields the steps.
            at: the first rung, if no rung is known yet.
            most: the rung beyond which no higher one is tried at first.
        """
        width = 1
        while True:
            if self.low is not None and self.high is not None:
                if self.high - self.low == 1:
                    return
                at = (self.low + self.high) // 2
            elif self.low is not None:
                if self.low == self.highest:
                    return
                top = most if most > self.low else self.highest
                # A server need not be asked for many times what it takes.
                at, width = min(self.low + width, top), min(2 * width, self.ladder.rungs // 2)
            elif self.high is not None:
                if self.high == self.lowest:
                    return
                at, width = max(self.high - width, self.lowest), 2 * width
            self._take(at, clean=(yield from self._is_clean(retry, at, whole=False)))

    def _goes_on(self, retry: StepRetry) -> Generator[StepPlan, StepResult, bool]:
        """Makes sure of the lower rung, then of the higher one; returns whether there is more to measure."""
        if self.low is None:
            return (yield from self._descends(retry))
        if self.confirming is None:
            yield from self._confirms(retry, self.low)
            return True
        if self.high is not None:
            return (yield from self._repeats(retry, self.low, self.high))
        if self.low == self.highest:
            return False
        yield from self._neighbours(retry, self.low, self.highest)
        return True

    def _descends(self, retry: StepRetry) -> Generator[StepPlan, StepResult, bool]:
        """Tries to hold a rung below the one that was not held; the lowest one is measured once more."""
        rung = self.lowest if self.high is None else self.high
        if rung > self.lowest:
            below = self._below(rung)
            self._take(below, clean=(yield from self._is_clean(retry, below, whole=True)))
            return True
        if self._fails(rung):
            return False
        self._take(rung, clean=(yield from self._is_clean(retry, rung, whole=self.tries[rung][-1].whole)))
        return True

    def _confirms(self, retry: StepRetry, rung: int) -> Script:
        """Tries to hold a rung for a whole duration.

        If a lower one was held, and no time would be left to find one that is not, that is looked for instead.
        """
        known = self.high is not None or rung == self.highest or self._held_below(rung) is None
        if not known and not self._fits(1, self.short_s + QUICK_DRAIN_S):
            yield from self._neighbours(retry, rung, self.highest)
        elif not (yield from self._is_clean(retry, rung, whole=True)):
            self.low, self.high = self._held_below(rung), rung

    def _repeats(self, retry: StepRetry, low: int, high: int) -> Generator[StepPlan, StepResult, bool]:
        """Tries rungs between, then repeats what one step showed: that one was not held, or a doubtful one was."""
        whole, failed = self.tries[high][-1].whole, self._fails(high)
        if high - low > 1:
            middle = (low + high) // 2
            between = max(middle, high - self._tenth) if whole else middle
            self._take(between, clean=(yield from self._is_clean(retry, between, whole=whole)))
        elif (whole or failed) and self._doubted(low):
            if not (yield from self._is_clean(retry, low, whole=True)):
                self.low, self.high = self._held_below(low), low
        elif failed:
            return False
        elif (yield from self._is_clean(retry, high, whole=whole)):
            self._take(high, clean=True)
        return True

    def _doubted(self, rung: int) -> bool:
        """Whether a rung was held in one step only, which may be chance, and there is time for another one.

        This is so if others used the hosts at any time, or if it lost a part of what the target allows; then there has
        to be time for the rung below, too.
        """
        whole = [each.step for each in self.tries[rung] if each.whole]
        if len(whole) > 1 or not self._fits(1):
            return False
        if _times_target(whole[0]) > _HARDLY_ANY and self._fits(2):
            return True
        return any(others_of(step.figures.hosts) >= OTHERS_PCT for step in self.steps)

    def _below(self, rung: int) -> int:
        """The rung to hold next, below one that was not held: a tenth of a decade, or more if far too much was lost."""
        far_too_much = _times_target(self.tries[rung][-1].step, late=True) > _FAR_TOO_MUCH
        below = rung - (2 if far_too_much else 1) * self._tenth
        # There has to be time to return to the rungs that are left out.
        far = self._meets_target() if self._fits(2) else None
        return max(below if far is None else min(below, far), self.lowest)

    @property
    def _tenth(self) -> int:
        """The rungs of a tenth of a decade, at least one."""
        return max(self.ladder.rungs // 10, 1)

    def _meets_target(self) -> int | None:
        """The rung at which the losses of the two lowest rungs that were not held would meet the target.

        They are on a line through 1/rate, as above a capacity, and where a buffer takes a part of each stall. None: it
        is not known.
        """
        failed = sorted((rung, tries[-1].step) for rung, tries in self.tries.items() if _misses(tries))
        if len(failed) < 2:
            return None
        (below, less), (above, more) = ((rung, _times_target(step, late=True)) for rung, step in failed[:2])
        if not 1 < less < more:
            return None
        at, beyond = 1 / self.ladder.rate(below), 1 / self.ladder.rate(above)
        rate = 1 / (at + (at - beyond) * (less - 1) / (more - less))
        return max(self.ladder.at_most(rate), below - self.ladder.rungs)

    def _take(self, rung: int, *, clean: bool) -> None:
        """Moves one of the two rungs; above a clean one, the lowest rung that failed is the next one not held."""
        if clean:
            self.low = rung
            if self.high is not None and self.high <= rung:
                self.high = self._failed_above(rung)
        else:
            self.high = rung

    def _failed_above(self, rung: int) -> int | None:
        """The lowest rung above this one whose last step was not clean; None: there is none."""
        return min((r for r, tries in self.tries.items() if r > rung and not tries[-1].clean), default=None)

    def _held_below(self, rung: int, holds: Callable[[Sequence[Try]], StepResult | None] = _holds) -> int | None:
        """The highest rung below this one that was held for a whole duration; None: there is none."""
        return max((r for r, tries in self.tries.items() if r < rung and holds(tries)), default=None)

    def _is_clean(self, retry: StepRetry, rung: int, *, whole: bool) -> Generator[StepPlan, StepResult, bool]:
        """Measures a rung; a step that is as long as a whole duration is one.

        Raises:
            _TimeOverError: the step would exceed the time limit; a short one leaves time for whole durations.
        """
        rate = self.ladder.rate(rung)
        needed_s = LEAST_MESSAGES / rate
        seconds = max(self.duration_s if whole else min(self.short_s, self.duration_s), needed_s)
        whole = seconds >= self.duration_s
        # What follows a bracket may be several whole durations.
        held = self._held_below(rung) is not None
        later = 1 if held or None in (self.low, self.high) else _WHOLE_STEPS
        if whole or (held and self.high is None):
            later = 0
        if self.tries and not self._fits(later, seconds + QUICK_DRAIN_S):
            raise _TimeOverError
        step = yield from self._timed(retry.step(self.settings, self.series, rate, self.cohort, seconds))
        clean = not flaws(step.figures)
        self.tries.setdefault(rung, []).append(Try(step, clean, whole))
        return clean

    def _fits(self, whole_steps: int, more_s: float = 0.0) -> bool:
        """Whether the time that is left is enough for this number of whole durations, and more seconds."""
        return self.spent_s + whole_steps * (self.duration_s + QUICK_DRAIN_S) + more_s <= self.within_s

    def _timed(self, steps: Generator[StepPlan, StepResult, StepResult]) -> Generator[StepPlan, StepResult, StepResult]:
        """The same steps, whose time is counted, also that of failed ones."""
        plan = next(steps)
        while True:
            result = yield plan
            self.spent_s += wall_s(result)
            try:
                plan = steps.send(result)
            except StopIteration as e:
                return e.value  # type: ignore[no-any-return]  # of the generator


def _misses(tries: Sequence[Try]) -> bool:
    """Whether the last step is a whole duration that is not clean."""
    return tries[-1].whole and not tries[-1].clean


def _times_target(step: StepResult, *, late: bool = False) -> float:
    """A step's loss, or with ``late`` what was lost or late, in multiples of the loss target; 0 if it is not known."""
    figures = step.figures
    share = (figures.totals.client_loss_pct or 0.0) + ((figures.loss.late_pct or 0.0) if late else 0.0)
    target = figures.passing.loss_target_pct
    return share / target if target else 0.0


def ends_of(search: SearchSpec, ladder: Ladder) -> tuple[int, int]:
    """The first and the last rung that a series may try."""
    highest = ladder.at_most(search.start_rate * 2.0**search.max_doublings)
    return min(ladder.at_least(search.floor_rate), highest), highest


def progress_of(step: StepResult, limits: tuple[float | None, float | None]) -> LadderProgress:
    """What a step has shown; ``limits`` are the rates (messages/s) of the two rungs so far."""
    why, figures = why_not_clean(step.figures), step.figures
    shares = ((figures.totals.client_loss_pct, "lost"), (figures.loss.late_pct, "late"))
    parts = [] if why else [(share, name) for share, name in shares if share]
    return LadderProgress(step.plan.duration_s, why, parts, *limits)


def wall_s(result: StepResult) -> float:
    """The time in seconds that a step took; by its length if it was not stored."""
    known = result.figures.wall_s
    return result.plan.duration_s + QUICK_DRAIN_S if known is None else known


def limit_s(spec: HeldSpec, duration_s: float) -> float:
    """The time limit in seconds of a series of a client count.

    Args:
        spec: the table ``[sweep.held]``.
        duration_s: how long a rate has to be held, in seconds.
    """
    short_s = min(spec.short_s, duration_s)
    longer_s = _WHOLE_STEPS * max(duration_s - _USUAL_DURATION_S, 0.0)
    return spec.within_s + longer_s + _SHORT_STEPS * max(short_s - USUAL_SHORT_S, 0.0)
