"""Tests of means, and Holm's adjustment: against textbooks and scipy, and over thousands of draws at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hydra.analysis.statistics import (
    ALPHA,
    MOST,
    POWER,
    DifferenceEstimate,
    holm,
    independent,
    levels,
    paired,
    repeats_for,
    shown_with,
    signs,
)

TIMES = 20_000
INF, NAN = math.inf, math.nan


def assert_alike(own: DifferenceEstimate, others: Any) -> None:
    expected = [others.pvalue, *others.confidence_interval()]
    assert [float(x) for x in (own.p, own.low, own.high)] == pytest.approx(expected)


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
        assert (float(same.mean), float(same.low), float(same.high)) == (0, 0, 0)


def test_where_nothing_spreads_or_rounding_does_nothing_tells_what_chance_does() -> None:
    nearly = np.log(np.full(5, 3.0) * (1 + np.array([0, 1, -1, 0, 1]) * 1e-16))
    for constant in (paired(np.zeros(5)), paired(np.full(6, 0.1)), independent(nearly, nearly + 1)):
        assert math.isnan(float(constant.p))


@pytest.mark.parametrize(
    ("differences", "reported"),
    [
        ([1, 2, 3, 4, 5], (3, -INF, INF, 0.0625)),
        ([1, 2, 3, 4, 5, 6], (3.5, 1, 6, 0.03125)),
        # One of ten may be on the other side, whatever is known of it; two may not.
        ([NAN, 1, 2, 3, 4, 5, 6, 7, 8, 9], (5, 1, 9, 11 / 512)),
        ([-INF, 1, 2, 3, 4, 5, 6, 7, 8, 9], (4.5, 1, 8, 11 / 512)),
        ([-INF, 0, 2, 3, 4, 5, 6, 7, 8, 9], (4.5, 0, 8, 56 / 512)),
        ([INF] * 9 + [-INF], (INF, INF, INF, 11 / 512)),
    ],
)
def test_the_median_of_pairs_by_their_signs(differences: list[float], reported: tuple[float, ...]) -> None:
    found = signs(differences)
    assert [float(x) for x in (found.mean, found.low, found.high, found.p)] == pytest.approx(reported, nan_ok=True)


@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_the_suggested_repeats_show_a_difference_of_the_stated_size(size: float, is_paired: bool) -> None:
    variance = 1.0 if is_paired else 2.0  # of the differences, or the sum of both
    n = repeats_for(size, variance, is_paired=is_paired)
    assert n is not None
    assert shown_with(variance, n, is_paired=is_paired) <= size < shown_with(variance, n - 1, is_paired=is_paired)
    for repeats, is_enough in ((n, True), (n - 1, False)):
        a, b = np.random.default_rng(n).standard_normal((2, TIMES, repeats))
        found = paired(size + a) if is_paired else independent(a, size + b)
        shown = (found.p <= ALPHA).mean()
        assert (shown > POWER - 0.02) if is_enough else (shown < POWER + 0.02)


def test_no_number_of_repeats_is_suggested_beyond_reason() -> None:
    assert repeats_for(0.001, 1.0, is_paired=True) is None
    assert repeats_for(1e9, 1.0, is_paired=True) == 2 < MOST


@pytest.mark.parametrize(
    ("ps", "each"),
    [
        ([0.001, 0.5], [0.025, 0.025]),
        # Holm tests the second one at 5 %, because the first is decided.
        ([0.001, 0.04], [0.025, 0.05]),
        ([0.03, 0.04], [0.025, 0.025]),
        ([], []),
    ],
)
def test_an_interval_says_what_the_adjusted_p_says(ps: list[float], each: list[float]) -> None:
    found = levels(ps, holm(ps))
    assert found == pytest.approx(each)
    assert [p <= alpha for p, alpha in zip(ps, found, strict=True)] == [p <= ALPHA for p in holm(ps)]


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
