"""What a comparison tells of runs whose truth is known: it sees nothing where there is nothing, and what there is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hydra.compare.comparison import NO_DIFFERENCE, Comparison, compare
from hydra.compare.statistics import ALPHA, independent
from tests.compare.simulated import SEVERAL, Noise, drawn

pytestmark = pytest.mark.processes  # seconds each; the statistics alone are in test_statistics.py

TIMES = 2000
EQUAL, LOUD = Noise(), Noise(run=0.2, block=0.5)


def share(times: int, shows: Callable[[np.random.Generator], bool], seed: int = 1) -> float:
    rng = np.random.default_rng(seed)
    return sum(shows(rng) for _ in range(times)) / times


def any_primary(comparison: Comparison) -> bool:
    return any(each.verdict != NO_DIFFERENCE for each in comparison.first)


def any_other(comparison: Comparison) -> bool:
    return any(each.verdict != NO_DIFFERENCE for each in comparison.others)


@pytest.mark.parametrize("turns", [True, False], ids=["in turns", "one after the other"])
@pytest.mark.parametrize("repeats", [5, 7, 10])
@pytest.mark.parametrize("noise", [EQUAL, LOUD], ids=["5 %", "20 %"])
def test_of_2000_comparisons_of_the_same_4_to_6_percent_show_a_difference(
    turns: bool, repeats: int, noise: Noise
) -> None:
    found = share(
        TIMES, lambda rng: any_primary(compare(drawn(rng, 2, repeats, noise, turns=turns), paired=turns)), seed=2
    )
    assert 0.04 <= found <= 0.06


@pytest.mark.parametrize(("rows", "sides"), [(7, 2), (1, 4), (3, 3)])
def test_many_rows_and_runs_are_wrong_as_rarely_as_one(rows: int, sides: int) -> None:
    found = share(TIMES, lambda rng: any_primary(compare(drawn(rng, sides, 5, EQUAL, rows=rows), paired=True)))
    assert 0.02 <= found <= 0.06


@pytest.mark.parametrize("shared", [0.0, 0.9], ids=["each by itself", "all alike"])
def test_many_figures_are_wrong_as_rarely_as_one(shared: float) -> None:
    noise = Noise(shared=shared)
    found = share(TIMES, lambda rng: any_other(compare(drawn(rng, 2, 6, noise, figures=SEVERAL), paired=True)))
    assert 0.01 <= found <= 0.06


@pytest.mark.parametrize("factor", [1.1, 1 / 1.1])
def test_a_difference_of_10_percent_is_found_with_ten_repeats(factor: float) -> None:
    """A repeat's own standard deviation is 5 %; what both share, 10 %, goes out of the pairs."""
    word = "faster" if factor > 1 else "slower"

    def shows(rng: np.random.Generator) -> bool:
        (first,) = compare(drawn(rng, 2, 10, EQUAL, factor=factor), paired=True).first
        return first.verdict == word

    assert share(TIMES, shows) >= 0.9


def test_without_turns_what_both_would_have_shared_hides_the_difference() -> None:
    # Nothing is shared: the same spread of a repeat by itself and its block, 11 %.
    alone = Noise(run=float(np.hypot(EQUAL.run, EQUAL.block)))
    found = share(
        TIMES, lambda rng: any_primary(compare(drawn(rng, 2, 10, alone, factor=1.1, turns=False), paired=False))
    )
    assert found < 0.6


def test_the_interval_holds_the_truth_in_19_of_20() -> None:
    def holds(rng: np.random.Generator) -> bool:
        (first,) = compare(drawn(rng, 2, 6, EQUAL, factor=1.2), paired=True).first
        assert first.low is not None
        assert first.high is not None
        return first.low <= 0.2 <= first.high

    assert 0.94 <= share(TIMES, holds) <= 0.96


def test_slices_of_time_as_samples_would_find_differences_everywhere() -> None:
    """Why a repeat is one sample: a minute's sixty seconds share its processes, and are no sixty samples."""
    rng = np.random.default_rng(3)
    runs = EQUAL.run * rng.standard_normal((2, TIMES, 1))
    slices = runs + 0.02 * rng.standard_normal((2, TIMES, 60))
    assert np.mean(independent(slices[0], slices[1]).p <= ALPHA) > 0.8
