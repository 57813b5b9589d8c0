"""Tests whether two samples of repeats differ, and estimates the difference with its interval. Pure.

A paired comparison is Student's t test of the pairs' differences, an unpaired one is Welch's (B. L. Welch: The
generalization of "Student's" problem when several different population variances are involved, Biometrika 34, 1947).
Both tests get logarithms if all figures are above zero, so a difference of means is a ratio. If a repeat of a pair
failed,
differences have no mean: the sign test judges their median (W. J. Dixon, A. M. Mood: The statistical sign test, Journal
of the American Statistical Association 41, 1946).

All functions except the sign test take arrays whose last axis is the repeats, and return arrays of the other axes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtr, stdtrit

ALPHA: Final = 0.05
"""The share of comparisons without a true difference that may show one."""
POWER: Final = 0.8
"""The share of comparisons that show a true difference of the stated size."""
MOST: Final = 1000
"""The largest number of repeats that is suggested."""
_CONSTANT: Final = 1e-12
"""Spreads below this share of the figures are rounding errors."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DifferenceEstimate:
    """A difference of means, or a median of differences.

    Attributes:
        mean: other − base.
        low, high: limits of its interval.
        p: the two-sided probability of a difference of at least this size if there is no true one; NaN if there is no
            spread, so the effect of chance is unknown.
    """

    mean: Floats
    low: Floats
    high: Floats
    p: Floats


def paired(differences: ArrayLike, alpha: float = ALPHA) -> DifferenceEstimate:
    """Estimates the mean of the differences of pairs.

    Args:
        differences: other − base, of at least 2 pairs.
        alpha: probability that the interval misses the true value.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    return _estimate(d.mean(axis=-1), _spread(d) / np.sqrt(n), np.asarray(n - 1.0), alpha)


def independent(base: ArrayLike, other: ArrayLike, alpha: float = ALPHA) -> DifferenceEstimate:
    """Estimates the difference of the means of two independent samples, each of at least 2."""
    a, b = np.asarray(base, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n, m = a.shape[-1], b.shape[-1]
    va, vb = _spread(a) ** 2 / n, _spread(b) ** 2 / m
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
    freedom = np.where(va + vb > 0, freedom, 1.0)
    return _estimate(b.mean(axis=-1) - a.mean(axis=-1), np.sqrt(va + vb), freedom, alpha)


def signs(differences: Sequence[float], alpha: float = ALPHA) -> DifferenceEstimate:
    """Estimates the median of the differences of pairs by their signs.

    Args:
        differences: other − base. A difference is infinite if one of the pair failed; NaN if it is unknown which one
            was better: such a pair counts against the difference that the others show.
        alpha: probability that the interval misses the true value.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = len(d)
    lowest = np.sort(np.where(np.isnan(d), -np.inf, d))
    highest = np.sort(np.where(np.isnan(d), np.inf, d))
    against = n - max(int((d > 0).sum()), int((d < 0).sum()))
    # The maximum number of pairs beyond a limit of the interval; −1 if there are too few pairs for any limit.
    beyond = int(sum(2 * bdtr(k, n, 0.5) <= alpha for k in range(n // 2 + 1))) - 1
    low, high = (lowest[beyond], highest[-1 - beyond]) if beyond >= 0 else (-np.inf, np.inf)
    middle = (lowest[(n - 1) // 2], highest[n // 2])
    median = middle[0] if middle[0] == middle[1] else float(np.mean(middle)) if np.isfinite(middle).all() else np.nan
    return DifferenceEstimate(
        *(np.asarray(value) for value in (median, low, high, min(1.0, 2 * bdtr(against, n, 0.5))))
    )


def shown_with(variance: float, repeats: int, alpha: float = ALPHA, *, is_paired: bool) -> float:
    """The true difference of two means that a comparison shows with the probability :data:`POWER`.

    It is (t(1 − α/2) + t(power)) standard errors (J. Neyman, B. Tokarska, Journal of the American Statistical
    Association 31, 1936, in its usual approximation).

    Args:
        variance: that of the pairs' differences, or the sum of those of the two samples.
        repeats: the number of pairs, or of repeats of each sample, at least 2.
        alpha: probability that the interval misses the true value.
        is_paired: whether the repeats are pairs.
    """
    freedom = (repeats - 1) * (1 if is_paired else 2)
    return float((stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, POWER)) * np.sqrt(variance / repeats))


def repeats_for(size: float, variance: float, alpha: float = ALPHA, *, is_paired: bool) -> int | None:
    """The least number of repeats with which :func:`shown_with` is at most ``size``; None: more than ``MOST``."""
    numbers = range(2, MOST + 1)
    at = bisect_left(numbers, True, key=lambda n: shown_with(variance, n, alpha, is_paired=is_paired) <= size)
    return None if at == len(numbers) else numbers[at]


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusts the p values of a family, so the probability of any false alarm among them is that of one.

    S. Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def levels(ps: Sequence[float], adjusted: Sequence[float]) -> list[float]:
    """The alpha of each interval of a family, such that the intervals agree with the adjusted p values.

    It is Bonferroni's share, with which all intervals together contain the true values with 95 %. A difference that
    Holm shows and Bonferroni does not has the alpha with which Holm tested it, so its interval excludes 0, too.

    Args:
        ps: the p values of the family.
        adjusted: the p values adjusted by :func:`holm`.
    """
    each = ALPHA / max(len(ps), 1)
    return [ALPHA * p / its if p > each and its <= ALPHA else each for p, its in zip(ps, adjusted, strict=True)]


def _spread(values: Floats) -> Floats:
    """The standard deviation; 0 if all values are equal except for rounding."""
    spread = values.std(axis=-1, ddof=1)
    size = np.abs(values).max(axis=-1)
    return np.where(spread > _CONSTANT * size, spread, 0.0)


def _estimate(mean: Floats, error: Floats, freedom: Floats, alpha: float) -> DifferenceEstimate:
    """The estimate of a mean with its standard error and degrees of freedom."""
    half = stdtrit(freedom, 1 - alpha / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, 2 * stdtr(freedom, -np.abs(mean) / error), np.nan)
    return DifferenceEstimate(mean, mean - half, mean + half, p)
