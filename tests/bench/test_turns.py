"""The verdict about a line, and the turns of its two sides."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from bench.line import Goal, Side, at_least, at_most
from bench.turns import Estimate, Verdict, estimate, judge, meets, shortfall, take

PLANTED = 0.95


@pytest.mark.parametrize(
    ("low", "middle", "high", "goal", "verdict"),
    [
        (0.96, 0.98, 1.00, at_least(0.95), "holds"),
        (0.90, 0.92, 0.94, at_least(0.95), "misses"),
        (0.93, 0.95, 0.97, at_least(0.95), "cannot tell"),  # the goal lies inside
        (0.96, 1.05, 1.14, at_least(0.95), "cannot tell"),  # wider than ± 5 %
        (0.50, 0.60, 0.70, at_least(0.95), "cannot tell"),
        (1.90, 1.95, 2.00, at_most(2.1), "holds"),
        (2.20, 2.25, 2.30, at_most(2.1), "misses"),
        (0.00, 1.00, math.inf, at_least(0.5), "cannot tell"),  # one pair
        (4.00, 4.00, 4.00, at_most(4), "holds"),  # counts without spread
        (5.00, 5.00, 5.00, at_most(4), "misses"),
        (0.00, 0.00, 0.00, at_most(0), "holds"),
        (0.96, 0.98, 1.00, None, "no goal"),
    ],
)
def test_only_a_narrow_interval_beyond_the_goal_decides(
    low: float, middle: float, high: float, goal: Goal | None, verdict: Verdict
) -> None:
    assert judge(Estimate(middle, low, high), goal) == verdict


@pytest.mark.parametrize(
    ("low", "high", "goal", "whole", "short"),
    [
        (0.96, 1.14, at_least(0.95), True, -0.1053),  # too wide to hold
        (0.50, 0.70, at_least(0.95), False, 0.3684),
        (0.93, 0.97, at_least(0.95), None, 0.0),
        (1.10, 1.30, at_most(1.0), False, 0.2),
        (0.00, 0.00, at_most(0), True, 0.0),
    ],
)
def test_an_undecided_interval_may_meet_its_goal_as_a_whole(
    low: float, high: float, goal: Goal, whole: bool | None, short: float
) -> None:
    found = Estimate((low + high) / 2, low, high)
    assert meets(found, goal) is whole
    assert shortfall(found, goal) == pytest.approx(short, abs=1e-4)


@pytest.mark.parametrize(
    ("own", "bare", "middle"),
    [
        ([2.0, 8.0], [1.0, 1.0], 4.0),  # the geometric mean of the pairs' ratios
        ([1.0, 4.0], None, 2.0),
        ([-1.0, 4.0], None, 1.5),  # without a logarithm, the mean
        ([3.0], [2.0], 1.5),
    ],
)
def test_the_estimate_is_that_of_logarithms_if_there_are_any(
    own: Sequence[float], bare: Sequence[float] | None, middle: float
) -> None:
    found = estimate(own, bare)
    assert found.middle == pytest.approx(middle)
    assert found.low <= found.middle <= found.high


def test_a_ratio_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="ratio of 0"):
        estimate([1.0], [0.0])


@pytest.mark.parametrize(
    ("first", "rest", "pairs", "may_add", "taken"),
    [
        (1.0, 1.0, 5, True, 5),  # decided
        (0.8, 1.2, 5, True, 10),  # a wide interval takes twice as many
        (0.8, 1.2, 3, True, 6),
        (0.8, 1.2, 5, False, 5),
    ],
)
def test_sides_take_turns_until_pairs_decide(first: float, rest: float, pairs: int, may_add: bool, taken: int) -> None:
    turns: list[str] = []

    def own_side() -> float:
        turns.append("A")
        return first if turns.count("A") % 2 else rest

    def bare() -> tuple[float]:
        turns.append("B")
        return (1.0,)

    looks: list[None] = []
    sides = take(own_side, bare, [at_least(0.95)], pairs, before=lambda: looks.append(None), may_add=may_add)
    assert [len(side) for side in sides] == [taken, taken]
    assert len(looks) == taken
    assert "".join(turns) == ("ABBA" * taken)[: 2 * taken]


def test_every_figure_with_a_goal_has_to_be_decided() -> None:
    noise = iter([1.0, 3.0] * 10)
    own, bare = take(lambda: (1.0, next(noise)), None, [at_most(2), None], 5)
    assert (len(own), len(bare)) == (5, 0)
    own, _ = take(lambda: (1.0, next(noise)), None, [at_most(2), at_most(2)], 5)
    assert len(own) == 10


def test_a_measurement_has_a_value_of_each_figure() -> None:
    with pytest.raises(ValueError, match="2 values for 1 figures"):
        take(lambda: (1.0, 2.0), None, [None], 1)


@pytest.mark.parametrize(("pairs", "spread"), [(5, 0.02), (3, 0.01)])
def test_a_ratio_at_its_goal_holds_in_at_most_one_line_of_twenty(pairs: int, spread: float) -> None:
    """1,000 lines whose true ratio is the goal; a share of 5 % has a standard error of 0.7 %."""
    rng = np.random.default_rng(34)
    verdicts = [judge(estimate(*_planted(rng, PLANTED, pairs, spread)), at_least(PLANTED)) for _ in range(1000)]
    assert verdicts.count("holds") / len(verdicts) <= 0.05 + 0.014


def test_a_ratio_well_beyond_its_goal_is_decided() -> None:
    rng = np.random.default_rng(34)
    verdicts = [judge(estimate(*_planted(rng, PLANTED + 0.05, 5, 0.01)), at_least(PLANTED)) for _ in range(200)]
    assert verdicts.count("holds") / len(verdicts) > 0.95
    assert "misses" not in verdicts


def _planted(rng: np.random.Generator, ratio: float, pairs: int, spread: float) -> tuple[list[float], list[float]]:
    """Both sides of a line of this ratio, as the command takes them; a pair shares the machine at its time."""
    shared = rng.normal(0, 0.1, 2 * pairs)

    def side(middle: float) -> Side:
        values = iter(np.exp(shared + rng.normal(math.log(middle), spread, 2 * pairs)).tolist())
        return lambda: float(next(values))

    own, bare = take(side(ratio), side(1.0), [at_least(PLANTED)], pairs)
    return [value for (value,) in own], [value for (value,) in bare]
