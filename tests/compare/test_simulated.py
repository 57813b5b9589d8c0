"""Comparisons of runs whose truth is known: they show a difference if there is one, and none otherwise."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hydra.analysis.comparison import Comparison, FigureComparison, compare
from hydra.analysis.statistics import ALPHA, independent
from tests.compare.simulated import SEVERAL, Noise, drawn, failing

pytestmark = pytest.mark.tier("test")  # the statistics alone are in test_statistics.py

EQUAL, LOUD = Noise(), Noise(run=0.2, block=0.5)
WORLDS = {"5 %": EQUAL, "20 %": LOUD, "heavy tails": Noise(heavy=True), "a fifth slow": Noise(slower=0.2)}


MANY = int(os.environ.get("HYDRA_COMPARISONS", "1000"))
"""2000 in make soak."""


@pytest.fixture(params=[200, pytest.param(MANY, marks=pytest.mark.tier("all"))])
def times(request: pytest.FixtureRequest) -> int:
    """How many comparisons are drawn: the fewer, the further from the truth their share may be."""
    many: int = request.param
    return many


def room(times: int) -> float:
    """Two standard errors of a share of 5 %: 1 % of 2000 comparisons."""
    return 0.45 / math.sqrt(times)


def share(
    times: int, shows: Callable[[Comparison], bool], sides: int, repeats: int, noise: Noise = EQUAL, *,
    seed: int = 1, turns: bool = True, **more: Any,
) -> float:  # fmt: skip
    """The share of comparisons of drawn runs which show it."""
    rng = np.random.default_rng(seed)
    found = [compare(drawn(rng, sides, repeats, noise, turns=turns, **more), paired=turns) for _ in range(times)]
    return sum(map(shows, found)) / times


def differ(found: Sequence[FigureComparison]) -> bool:
    return any(each.differs for each in found)


def contradicts(each: FigureComparison) -> bool:
    """Whether the interval contradicts the verdict."""
    return each.low is not None and each.high is not None and (each.low > 0 or each.high < 0) != each.differs


@pytest.mark.parametrize("turns", [True, False], ids=["in turns", "one after the other"])
@pytest.mark.parametrize("repeats", [5, 10])
@pytest.mark.parametrize("world", WORLDS)
def test_of_comparisons_of_the_same_5_percent_at_most_show_a_difference(
    times: int, turns: bool, repeats: int, world: str
) -> None:
    found = share(times, lambda c: differ(c.first), 2, repeats, WORLDS[world], turns=turns, seed=2)
    assert found <= 0.05 + room(times)
    # What spreads in another form than the normal one hides a difference, and makes none.
    assert found >= 0.05 - room(times) or world not in ("5 %", "20 %")


@pytest.mark.parametrize("repeats", [3, 12])
def test_runs_that_did_not_take_turns_differ_by_their_days_and_none_is_called_faster(times: int, repeats: int) -> None:
    days = Noise(block=0.0, day=0.05)
    found = share(times, lambda c: differ(c.first), 2, repeats, days, turns=False)
    assert found > 0.12, "the world has the trouble"
    assert share(times, lambda c: c.first[0].verdict in ("faster", "slower"), 2, repeats, days, turns=False) == 0


@pytest.mark.parametrize("repeats", [8, 12])
@pytest.mark.parametrize("turns", [True, False], ids=["in turns", "one after the other"])
def test_a_run_that_fails_where_it_is_slow_is_not_called_faster(times: int, repeats: int, turns: bool) -> None:
    rng = np.random.default_rng(4)
    pairs = (drawn(rng, 2, repeats, EQUAL) for _ in range(times))
    found = [compare([a, failing(b, 0.3)], paired=turns).first[0].verdict for a, b in pairs]
    assert found.count("faster") <= 0.025 * times


def test_verdicts_and_intervals_never_contradict_each_other_and_together_hold_their_truths(times: int) -> None:
    """Half of the tables are of the same; in the others everything is a tenth faster."""
    for factor in (1.0, 1.1):
        rng = np.random.default_rng(6)
        drawn_ = (drawn(rng, 3, 6, EQUAL, rows=4, figures=SEVERAL, factor=factor) for _ in range(times // 4))
        tables = [compare(sides, paired=True) for sides in drawn_]
        assert not any(contradicts(each) for table in tables for each in (*table.first, *table.others))
        # The second and the third run alike are ``factor`` from the first.
        holds = [all((e.low or 0) <= factor - 1 <= (e.high or 0) for e in table.first) for table in tables]
        assert np.mean(holds) >= 0.95 - 2 * room(times)


@pytest.mark.parametrize(("rows", "sides"), [(7, 2), (1, 4), (3, 3)])
def test_many_rows_and_runs_are_wrong_as_rarely_as_one(times: int, rows: int, sides: int) -> None:
    found = share(times, lambda c: differ(c.first), sides, 5, rows=rows)
    assert 0.05 - 3 * room(times) <= found <= 0.05 + room(times)


@pytest.mark.parametrize("shared", [0.0, 0.9], ids=["each by itself", "all alike"])
def test_many_figures_are_wrong_as_rarely_as_one(times: int, shared: float) -> None:
    found = share(times, lambda c: differ(c.others), 2, 6, Noise(shared=shared), figures=SEVERAL)
    assert 0.05 - 4 * room(times) <= found <= 0.05 + room(times)


@pytest.mark.parametrize(("factor", "word"), [(1.1, "faster"), (1 / 1.1, "slower")])
def test_a_difference_of_10_percent_is_found_with_ten_repeats(times: int, factor: float, word: str) -> None:
    """A repeat's own standard deviation is 5 %; what both share, 10 %, goes out of the pairs."""
    assert share(times, lambda c: c.first[0].verdict == word, 2, 10, factor=factor) >= 0.9


def test_without_turns_what_both_would_have_shared_hides_the_difference(times: int) -> None:
    # Nothing is shared: the same spread of a repeat by itself and its block, 11 %.
    alone = Noise(run=float(np.hypot(EQUAL.run, EQUAL.block)))
    assert share(times, lambda c: differ(c.first), 2, 10, alone, factor=1.1, turns=False) < 0.6


def test_the_interval_holds_the_truth_in_19_of_20(times: int) -> None:
    def holds(comparison: Comparison) -> bool:
        (first,) = comparison.first
        return (first.low or 1) <= 0.2 <= (first.high or 0)

    assert share(times, holds, 2, 6, factor=1.2) == pytest.approx(0.95, abs=room(times))


def test_slices_of_time_as_samples_would_find_differences_everywhere() -> None:
    """Why a repeat is one sample: a minute's sixty seconds share its processes, and are no sixty samples."""
    rng = np.random.default_rng(3)
    runs = EQUAL.run * rng.standard_normal((2, 500, 1))
    slices = runs + 0.02 * rng.standard_normal((2, 500, 60))
    assert np.mean(independent(slices[0], slices[1]).p <= ALPHA) > 0.8
