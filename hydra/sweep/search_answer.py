"""The answer of a search (a figure, ``none`` or ``unknown``) and its side findings, as data without texts.

The side findings are a subscriber that loses alone, and the loss at the start of each step. Both findings follow from
the steps well below the answer, where the rate itself causes little loss or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median
from typing import Final, Literal, NamedTuple

from hydra.measure.column import FEWEST, START_S, LoneLossySubscriber, LossBursts
from hydra.measure.step_result import StepResult
from hydra.model import Evidence


class CredibleInterval(NamedTuple):
    """A value with its 95 % confidence interval: a rate in messages/s, or a share as a fraction."""

    low: float
    figure: float
    high: float

    @property
    def width(self) -> float:
        """The upper limit over the lower."""
        return self.high / self.low


SURPRISE: Final = 0.01
"""A step contradicts an answer if its loss has less than this probability by the interval."""


class Inconclusive(Enum):
    """Why a search has no answer."""

    CHANGING = "changing"
    """The rate that holds changed during the search."""
    TOO_SHORT = "too short"
    """An answer needs more seconds of measurement: the interval is too wide, or it is open whether any rate holds."""
    BELOW_LOWEST = "below lowest"
    """The answer is below the lowest tried rate."""
    ABOVE_HIGHEST = "above highest"
    """All tried rates up to the highest one are within the target."""
    CONTRADICTED = "contradicted"
    """The loss of a step, of the last, long one or of an earlier one, has less than 1 % probability by the interval."""
    GIVEN_UP = "given up"
    """The steps could not be measured."""


@dataclass(frozen=True, slots=True)
class LossyRange:
    """A range of rates that lose more than the target, although higher rates lose less.

    Attributes:
        low, high: the limits of the range, messages/s.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LossyRanges(Evidence):
    """Such ranges; at least one."""

    ranges: tuple[LossyRange, ...]

    def __str__(self) -> str:
        return ", ".join(f"{each.low:.5g} {each.high:.5g}" for each in self.ranges)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of one search.

    Attributes:
        kind: ``figure``, ``none`` (no rate holds) or ``unknown`` (the search found no answer).
        interval: the figure with its 95 % confidence interval, messages/s; for ``unknown`` what is known so far.
        loss: the share (a fraction) that every rate loses: for ``none``, and for a floor below the target.
        why: the reason for ``unknown``.
        needed_s: the least seconds of measurement that an answer usually needs, those already measured included; None:
            not known.
        holes: ranges of rates that the figure leaves out.
        form: whether the figure rests more on the assumed form of the curve than on losses near the figure.
    """

    kind: Literal["figure", "none", "unknown"]
    interval: CredibleInterval | None = None
    loss: CredibleInterval | None = None
    why: Inconclusive | None = None
    needed_s: float | None = None
    holes: tuple[LossyRange, ...] = ()
    form: bool = False


_BELOW: Final = 0.5
"""Steps up to this share of the answer show losses that the rate does not cause."""
_FEWEST_STEPS: Final = 3
_NEARLY_ALL: Final = 0.8
"""The share of these steps that must show the same finding."""
_LEAST_START: Final = 0.05
"""The least reported loss at the start, as a share of the loss that the target allows."""
_MOSTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class SideFindings:
    """The findings beside a figure.

    Attributes:
        lone: the subscriber that loses alone at every rate; None: there is none.
        without: messages/s that the other subscribers carry, with the 95 % confidence interval; None: not known.
        start_ms: the loss at the start of each step, in ms of traffic; None: there is none.
    """

    lone: LoneLossySubscriber | None = None
    without: CredibleInterval | None = None
    start_ms: float | None = None


def telling(steps: Sequence[StepResult], figure: float | None) -> list[StepResult]:
    """The steps at half of the answer or below; all steps if there is no answer."""
    return [step for step in steps if figure is None or _rate(step) <= _BELOW * figure]


def lone_loser(steps: Sequence[StepResult], target: float) -> LoneLossySubscriber | None:
    """The subscriber that loses more than the target in nearly all of these steps, while all others lose far less.

    Args:
        steps: the result of :func:`telling`.
        target: the loss target of the search, a fraction.
    """
    losers = Counter(client for step in steps if (client := step.figures.passing.lone_loser) is not None)
    if not losers:
        return None
    client, count = losers.most_common(1)[0]
    alone = [step for step in steps if step.figures.passing.lone_loser == client]
    due = [_rate(step) * step.plan.duration_s for step in alone]
    loss = fmean([step.figures.passing.lone_loser_loss_pct or 0.0 for step in alone], due) / 100
    # In steps with few messages the subscriber loses too few to be noticed.
    enough = [step for step in steps if _rate(step) * step.plan.duration_s * loss >= 2 * FEWEST]
    seen = sum(step.figures.passing.lone_loser == client for step in enough)
    if loss <= target or count < _FEWEST_STEPS or seen < _NEARLY_ALL * len(enough):
        return None
    return LoneLossySubscriber(client, loss)


def start_lost_ms(steps: Sequence[StepResult], target: float) -> float | None:
    """The loss at the start of nearly all of these steps (ms of traffic), if it is most of their loss.

    Args:
        steps: the result of :func:`telling`.
        target: the loss target of the search, a fraction.
    """
    step_s = min((step.plan.duration_s for step in steps), default=0.0)
    # A constant loss has its part in the start, too.
    mostly = max(_MOSTLY, 3 * START_S / step_s) if step_s else 1.0
    lost = [step.figures.passing.start_lost_ms or 0.0 for step in steps]
    located = [ms > 0 and ms >= 1000 * mostly * _bursts(step).total_s for ms, step in zip(lost, steps, strict=True)]
    if len(steps) < _FEWEST_STEPS or sum(located) < _NEARLY_ALL * len(steps):
        return None
    usual = median(lost)
    return usual if usual >= 1000 * _LEAST_START * target * step_s else None


def bursts_of(step: StepResult, without: LoneLossySubscriber | None = None) -> tuple[float, ...]:
    """The bursts of a step: of all subscribers, or of all but the one that loses alone.

    If the step does not show that one, because of few messages or many losses, its usual part is subtracted.
    """
    bursts = _bursts(step)
    if without is None:
        return bursts.sizes_s
    if step.figures.passing.lone_loser == without.client:
        return (step.figures.passing.rest_bursts_s or LossBursts()).sizes_s
    clients = step.plan.clients
    rest = (bursts.total_s - without.loss * step.plan.duration_s / clients) * clients / (clients - 1)
    return (min(rest, step.plan.duration_s),) if rest > 0 else ()


def _bursts(step: StepResult) -> LossBursts:
    return step.figures.passing.bursts_s or LossBursts()


def _rate(step: StepResult) -> float:
    rate = step.plan.settings.rate
    return float(rate) if rate != "max" else float("inf")
