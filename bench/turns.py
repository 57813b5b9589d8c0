"""Takes turns between two sides, and judges what was measured. The judgement is pure.

The interval is that of ``hydra compare`` (:mod:`hydra.analysis.statistics`). A line is judged at most twice: after its
pairs, and after twice as many. With an interval of 95 %, a figure exactly at its goal *holds* in at most 5 % of all
lines: 2.5 % at each look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bench.line import Goal, Side
from hydra.analysis.statistics import paired

Verdict = Literal["holds", "misses", "cannot tell", "no goal"]

WIDEST: Final = 0.05
"""An interval that is wider than this share of its middle, either way, does not decide."""
_FEWEST: Final = 2

Values = tuple[float, ...]
"""The values of one measurement, one for each figure of the line."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio of ours to bare, or a figure of ours alone, with its 95 % confidence interval.

    Attributes:
        middle: the geometric mean; the mean if a value is not above zero.
        low, high: limits of the interval; infinite with one pair.
    """

    middle: float
    low: float
    high: float

    @property
    def is_narrow(self) -> bool:
        """Whether the interval is at most ± 5 %."""
        return max(self.high - self.middle, self.middle - self.low) <= WIDEST * abs(self.middle)


def estimate(ours: Sequence[float], bare: Sequence[float] | None) -> Estimate:
    """Estimates the ratio of pairs, or the figure itself.

    Args:
        ours: a value of each measurement.
        bare: the values of the other side, in pairs with ``ours``; None if there is no other side.

    Raises:
        ValueError: a value of a ratio is not above zero.
    """
    if bare is not None and min(*ours, *bare) <= 0:
        raise ValueError(f"a ratio of {min(*ours, *bare):g}")
    is_logarithmic = min(ours) > 0
    forward, back = (math.log, _exp) if is_logarithmic else (float, float)
    d = [forward(x) for x in ours] if bare is None else [math.log(x / y) for x, y in zip(ours, bare, strict=True)]
    if len(d) < _FEWEST:
        return Estimate(back(d[0]), 0.0 if is_logarithmic else -math.inf, math.inf)
    e = paired(d)
    return Estimate(back(float(e.mean)), back(float(e.low)), back(float(e.high)))


def meets(found: Estimate, goal: Goal) -> bool | None:
    """Whether the whole interval meets the goal, or no part of it; None: the goal lies inside."""
    # Counts have no spread, and may be exactly at their goal.
    if found.low == found.high and math.isclose(found.middle, goal.bound):
        return True
    if found.low <= goal.bound <= found.high:
        return None
    return (found.low > goal.bound) == goal.is_least


def judge(found: Estimate, goal: Goal | None) -> Verdict:
    """The verdict: an interval that contains the goal, or is wider than ± 5 %, does not decide."""
    if goal is None:
        return "no goal"
    if (good := meets(found, goal)) is None or not found.is_narrow:
        return "cannot tell"
    return "holds" if good else "misses"


def shortfall(found: Estimate, goal: Goal) -> float:
    """By what share of the goal's bound the middle falls short of it: 0.05 is 5 % worse, a negative share better."""
    short = goal.bound - found.middle if goal.is_least else found.middle - goal.bound
    return short / goal.bound if goal.bound else short


def order(pair: int) -> tuple[int, int]:
    """Which side a pair measures first: A B, B A, A B, …; side 0 is ours."""
    return (0, 1) if pair % 2 == 0 else (1, 0)


def decided(ours: Sequence[Values], bare: Sequence[Values], goals: Sequence[Goal | None]) -> bool:
    """Whether every figure that has a goal holds or misses."""
    return all(
        judge(estimate(*side_values(ours, bare, n)), goal) != "cannot tell"
        for n, goal in enumerate(goals)
        if goal is not None
    )


def side_values(ours: Sequence[Values], bare: Sequence[Values], n: int) -> tuple[list[float], list[float] | None]:
    """The values of figure ``n`` on both sides."""
    return [values[n] for values in ours], [values[n] for values in bare] or None


def take(
    ours: Side,
    bare: Side | None,
    goals: Sequence[Goal | None],
    pairs: int,
    *,
    before: Callable[[], object] = lambda: None,
    may_add: bool = True,
) -> tuple[list[Values], list[Values]]:
    """Measures pairs, and as many again if they do not decide.

    Args:
        ours, bare: the sides.
        goals: a goal, or None, of each figure.
        pairs: the number of pairs.
        before: called before each pair.
        may_add: whether pairs are added.
    """
    taken: tuple[list[Values], list[Values]] = ([], [])
    sides = (ours,) if bare is None else (ours, bare)
    for pair in _pairs(pairs, lambda: may_add and not decided(*taken, goals)):
        before()
        for n in order(pair):
            if n < len(sides):
                taken[n].append(_values(sides[n], len(goals)))
    return taken


def _pairs(pairs: int, is_open: Callable[[], bool]) -> Iterator[int]:
    yield from range(pairs)
    if is_open():
        yield from range(pairs, 2 * pairs)


def _values(side: Side, figures: int) -> Values:
    """One measurement.

    Raises:
        ValueError: it has another number of values than the line has figures.
    """
    measured = side()
    values = (float(measured),) if isinstance(measured, int | float) else tuple(map(float, measured))
    if len(values) != figures:
        raise ValueError(f"{len(values)} values for {figures} figures")
    return values


def _exp(x: float) -> float:
    return math.inf if x >= 700 else math.exp(x)
