"""What a comparison tells of runs whose truth is known: it sees nothing where there is nothing, and what there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hydra.compare.comparison import NO_DIFFERENCE, Compared, Comparison, compare
from hydra.compare.statistics import ALPHA, independent
from tests.compare.simulated import SEVERAL, Noise, drawn

pytestmark = pytest.mark.tier("test")  # the statistics alone are in test_statistics.py

EQUAL, LOUD = Noise(), Noise(run=0.2, block=0.5)


@pytest.fixture(params=[200, pytest.param(2000, marks=pytest.mark.tier("all"))])
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


def differ(found: Sequence[Compared]) -> bool:
    return any(each.verdict != NO_DIFFERENCE for each in found)


@pytest.mark.parametrize("turns", [True, False], ids=["in turns", "one after the other"])
@pytest.mark.parametrize("repeats", [5, 7, 10])
@pytest.mark.parametrize("noise", [EQUAL, LOUD], ids=["5 %", "20 %"])
def test_of_comparisons_of_the_same_5_percent_show_a_difference(
    times: int, turns: bool, repeats: int, noise: Noise
) -> None:
    found = share(times, lambda c: differ(c.first), 2, repeats, noise, turns=turns, seed=2)
    assert found == pytest.approx(0.05, abs=room(times))


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
