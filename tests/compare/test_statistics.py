"""Tests of means, and Holm's adjustment: against textbooks and scipy, and over thousands of draws at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hydra.compare.statistics import ALPHA, Estimate, holm, independent, paired

TIMES = 20_000


def assert_alike(mine: Estimate, theirs: Any) -> None:
    expected = [theirs.pvalue, *theirs.confidence_interval()]
    assert [float(x) for x in (mine.p, mine.low, mine.high)] == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_pairs_are_tested_as_scipy_does(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n))
    assert_alike(paired(b - a), stats.ttest_rel(b, a))


@pytest.mark.parametrize(("n", "m", "scale"), [(2, 2, 1), (5, 9, 3), (10, 10, 0.1)])
def test_independent_samples_are_tested_as_scipy_does(n: int, m: int, scale: float) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal(n), scale * rng.standard_normal(m)
    assert_alike(independent(a, b), stats.ttest_ind(b, a, equal_var=False))


def test_many_comparisons_at_once_are_each_by_itself() -> None:
    d = np.random.default_rng(1).standard_normal((4, 3, 6))
    together = paired(d)
    assert together.p.shape == (4, 3)
    assert float(together.p[2, 1]) == pytest.approx(float(paired(d[2, 1]).p))


def test_figures_that_are_all_the_same_do_not_differ() -> None:
    for same in (paired(np.zeros(5)), independent(np.ones(4), np.ones(6))):
        assert (float(same.p), float(same.mean), float(same.low), float(same.high)) == (1, 0, 0, 0)


def test_where_nothing_spreads_chance_is_that_of_the_order() -> None:
    """Two values, the same in all repeats of each: t would be infinite after two repeats."""
    assert float(paired(np.full(2, 0.1)).p) == 0.5
    assert float(paired(np.full(6, 0.1)).p) == pytest.approx(2 / 64)
    assert float(independent(np.ones(5), np.full(5, 2.0)).p) == pytest.approx(2 / math.comb(10, 5))


def test_rounding_is_no_spread() -> None:
    nearly = np.log(np.full(5, 3.0) * (1 + np.array([0, 1, -1, 0, 1]) * 1e-16))
    assert float(independent(nearly, nearly + 1).p) == pytest.approx(2 / math.comb(10, 5))


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.9, 0.001], [1.0, 1.0, 0.003]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm(ps: list[float], adjusted: list[float]) -> None:
    assert holm(ps) == pytest.approx(adjusted)


@pytest.mark.parametrize("n", [5, 6, 8, 10])
def test_of_the_same_with_the_same_one_in_twenty_differs(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = 0.05 * rng.standard_normal((2, TIMES, n))
    shared = 0.2 * rng.standard_normal((TIMES, n))
    assert 0.045 <= np.mean(paired((b + shared) - (a + shared)).p <= ALPHA) <= 0.055
    assert 0.04 <= np.mean(independent(a, b).p <= ALPHA) <= 0.055


@pytest.mark.parametrize("n", [5, 10])
def test_losses_that_are_mostly_zero_show_no_more_than_that(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.exponential(1.0, (2, TIMES, n)) * (rng.random((2, TIMES, n)) < 0.5)
    assert np.mean(paired(b - a).p <= ALPHA) <= 0.05
    assert np.mean(independent(a, b).p <= ALPHA) <= 0.05


@pytest.mark.parametrize(("spread", "found"), [(0.03, 0.999), (0.05, 0.95), (0.06, 0.88), (0.07, 0.75)])
def test_ten_pairs_find_10_percent_as_often_as_the_docs_say(spread: float, found: float) -> None:
    d = np.log(1.1) + math.sqrt(2) * spread * np.random.default_rng(1).standard_normal((TIMES, 10))
    assert np.mean(paired(d).p <= ALPHA) == pytest.approx(found, abs=0.03)
