"""What a search concludes: a figure, none, or that it cannot tell; and what it finds beside. Data, and no words.

Beside it are a subscriber that loses alone, and what is lost as each step starts. Both are told by the steps well below
the answer, where the rate itself loses nothing or little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median
from typing import Final, Literal, NamedTuple

from hydra.measure.column_names import BURSTS, LONE_LOSER, LONE_LOSS, REST_BURSTS, START_LOST
from hydra.measure.loss_pattern import FEWEST, START_S, LoneLossySubscriber, decode_bursts
from hydra.model import StepResult, number


class CredibleInterval(NamedTuple):
    """A value with its 95 % interval: messages/s of a rate, a fraction of a share."""

    low: float
    figure: float
    high: float

    @property
    def width(self) -> float:
        """The upper limit over the lower."""
        return self.high / self.low


class Inconclusive(Enum):
    """Why a search cannot tell."""

    CHANGING = "changing"
    """The rate that holds moved during the search."""
    TOO_SHORT = "too short"
    """More seconds of measuring would tell: the interval is too wide, or whether any rate holds is open."""
    BELOW_LOWEST = "below lowest"
    """The answer is below the lowest rate that is tried."""
    ABOVE_HIGHEST = "above highest"
    """Nothing fell short up to the highest rate that is tried."""
    CONTRADICTED = "contradicted"
    """A step lost what has less than 1 % probability under the interval: the last, long one, or an earlier one."""
    GIVEN_UP = "given up"
    """The steps could not be measured."""


@dataclass(frozen=True, slots=True)
class LossyRange:
    """Rates between which more than the target is lost, although less is lost above them.

    Attributes:
        low, high: messages/s.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of one search.

    Attributes:
        kind: ``figure``, ``none`` (no rate holds) or ``unknown`` (the search cannot tell).
        interval: messages/s; the figure with its 95 % interval. Of ``unknown`` what is known so far, where it is.
        loss: the share (a fraction) that is lost at any rate, of ``none``; and of a floor below the target.
        why: of ``unknown`` only.
        needed_s: seconds of measuring, those that were spent among them, that would tell, if that is known.
        holes: rates that are left out of the figure.
        form: whether the figure rests on the form of the curve more than on what was seen near it.
    """

    kind: Literal["figure", "none", "unknown"]
    interval: CredibleInterval | None = None
    loss: CredibleInterval | None = None
    why: Inconclusive | None = None
    needed_s: float | None = None
    holes: tuple[LossyRange, ...] = ()
    form: bool = False


_BELOW: Final = 0.5
"""Share of the answer down from which steps tell of what is not the rate's."""
_FEWEST_STEPS: Final = 3
_NEARLY_ALL: Final = 0.8
"""Share of these steps in which it must be so."""
_LEAST_START: Final = 0.05
"""What is lost at the start is worth a word from this share of what the target allows on."""
_MOSTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class SideFindings:
    """What was found beside a figure.

    Attributes:
        lone: the subscriber that loses alone at every rate.
        without: messages/s that the others carry, with its 95 % interval; None: not known.
        start_ms: what is lost as each step starts, in ms of traffic.
    """

    lone: LoneLossySubscriber | None = None
    without: CredibleInterval | None = None
    start_ms: float | None = None


def telling(steps: Sequence[StepResult], figure: float | None) -> list[StepResult]:
    """The steps at half of the answer or below; all steps where there is no answer."""
    return [step for step in steps if figure is None or _rate(step) <= _BELOW * figure]


def lone_loser(steps: Sequence[StepResult], target: float) -> LoneLossySubscriber | None:
    """The subscriber that loses more than the target in nearly all of these steps, and all others far less.

    Args:
        steps: those that :func:`telling` gave.
        target: the shortfall that is searched for, a fraction.
    """
    losers = Counter(client for step in steps if isinstance(client := step.figures.get(LONE_LOSER), int))
    if not losers:
        return None
    client, count = losers.most_common(1)[0]
    alone = [step for step in steps if step.figures.get(LONE_LOSER) == client]
    due = [_rate(step) * step.plan.duration_s for step in alone]
    loss = fmean([number(step.figures.get(LONE_LOSS)) or 0.0 for step in alone], due) / 100
    # In steps of few messages it loses too few to stand out.
    enough = [step for step in steps if _rate(step) * step.plan.duration_s * loss >= 2 * FEWEST]
    seen = sum(step.figures.get(LONE_LOSER) == client for step in enough)
    if loss <= target or count < _FEWEST_STEPS or seen < _NEARLY_ALL * len(enough):
        return None
    return LoneLossySubscriber(client, loss)


def start_lost_ms(steps: Sequence[StepResult], target: float) -> float | None:
    """What is lost at the start of nearly each of these steps (ms of traffic), where that is most of their loss.

    Args:
        steps: those that :func:`telling` gave.
        target: the shortfall that is searched for, a fraction.
    """
    step_s = min((step.plan.duration_s for step in steps), default=0.0)
    # A loss that is the same all the time has its part in the start.
    mostly = max(_MOSTLY, 3 * START_S / step_s) if step_s else 1.0
    lost = [number(step.figures.get(START_LOST)) or 0.0 for step in steps]
    located = [
        ms > 0 and ms >= 1000 * mostly * sum(decode_bursts(str(step.figures.get(BURSTS) or "")))
        for ms, step in zip(lost, steps, strict=True)
    ]
    if len(steps) < _FEWEST_STEPS or sum(located) < _NEARLY_ALL * len(steps):
        return None
    usual = median(lost)
    return usual if usual >= 1000 * _LEAST_START * target * step_s else None


def bursts_of(step: StepResult, without: LoneLossySubscriber | None = None) -> tuple[float, ...]:
    """The bursts of a step, of all subscribers or of those beside the one that loses alone.

    Where that one did not stand out, by few messages or among many losses, its usual part is taken out.
    """
    bursts = decode_bursts(str(step.figures.get(BURSTS) or ""))
    if without is None:
        return bursts
    if step.figures.get(LONE_LOSER) == without.client:
        return decode_bursts(str(step.figures.get(REST_BURSTS) or ""))
    clients = step.plan.clients
    rest = (sum(bursts) - without.loss * step.plan.duration_s / clients) * clients / (clients - 1)
    return (min(rest, step.plan.duration_s),) if rest > 0 else ()


def _rate(step: StepResult) -> float:
    rate = step.plan.settings.rate
    return float(rate) if rate != "max" else float("inf")
