"""Whether two samples of repeats differ, by how much, and with what certainty. Pure.

A paired comparison is Student's t test of the pairs' differences, an unpaired one is Welch's (B. L. Welch: The
generalization of "Student's" problem when several different population variances are involved, Biometrika 34, 1947).
Both are given logarithms where all figures are above zero, so that a difference of means is a ratio. Pairs of which a
repeat failed have no difference that could be a mean: their median is judged by its signs (W. J. Dixon, A. M. Mood: The
statistical sign test, Journal of the American Statistical Association 41, 1946).

Everything but the signs takes arrays whose last axis are the repeats, and gives arrays of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtr, stdtrit

ALPHA: Final = 0.05
"""The share of comparisons of the same with the same that may show a difference."""
_CONSTANT: Final = 1e-12
"""Spreads below this share of the figures are rounding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DifferenceEstimate:
    """A difference of means, or a median of differences.

    Attributes:
        mean: other − base.
        low, high: its interval.
        p: how likely a difference of at least this size is if there is none, two-sided; NaN where nothing spreads, so
            that nothing tells what chance does.
    """

    mean: Floats
    low: Floats
    high: Floats
    p: Floats


def paired(differences: ArrayLike, alpha: float = ALPHA) -> DifferenceEstimate:
    """The mean of the differences of pairs.

    Args:
        differences: other − base, of at least 2 pairs.
        alpha: how rarely the interval may miss the truth.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    return _estimate(d.mean(axis=-1), _spread(d) / np.sqrt(n), np.asarray(n - 1.0), alpha)


def independent(base: ArrayLike, other: ArrayLike, alpha: float = ALPHA) -> DifferenceEstimate:
    """The difference of the means of two samples that have nothing to do with each other, each of at least 2."""
    a, b = np.asarray(base, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n, m = a.shape[-1], b.shape[-1]
    va, vb = _spread(a) ** 2 / n, _spread(b) ** 2 / m
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
    freedom = np.where(va + vb > 0, freedom, 1.0)
    return _estimate(b.mean(axis=-1) - a.mean(axis=-1), np.sqrt(va + vb), freedom, alpha)


def signs(differences: Sequence[float], alpha: float = ALPHA) -> DifferenceEstimate:
    """The median of the differences of pairs, by their signs.

    Args:
        differences: other − base. Infinite where one of a pair was the worst that there is; NaN where nobody knows
            which was better: such a pair speaks against whatever the others show.
        alpha: how rarely the interval may miss the truth.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = len(d)
    lowest = np.sort(np.where(np.isnan(d), -np.inf, d))
    highest = np.sort(np.where(np.isnan(d), np.inf, d))
    against = n - max(int((d > 0).sum()), int((d < 0).sum()))
    # How many of the pairs may be on the other side of the truth, at most: −1 where that can always be chance.
    beyond = int(sum(2 * bdtr(k, n, 0.5) <= alpha for k in range(n // 2 + 1))) - 1
    low, high = (lowest[beyond], highest[-1 - beyond]) if beyond >= 0 else (-np.inf, np.inf)
    middle = (lowest[(n - 1) // 2], highest[n // 2])
    median = middle[0] if middle[0] == middle[1] else float(np.mean(middle)) if np.isfinite(middle).all() else np.nan
    return DifferenceEstimate(
        *(np.asarray(value) for value in (median, low, high, min(1.0, 2 * bdtr(against, n, 0.5))))
    )


def holm(ps: Sequence[float]) -> list[float]:
    """The p values of one family, adjusted so that any false alarm among them has the chance of one.

    S. Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def levels(ps: Sequence[float], adjusted: Sequence[float]) -> list[float]:
    """How rarely each interval of a family may miss its truth, so that they say what the adjusted p values say.

    It is Bonferroni's share, with which all of them together hold their truths in 95 %. A difference that Holm shows
    and Bonferroni does not has the level at which Holm has tested it: its interval leaves 0 out as well.

    Args:
        ps: of the family.
        adjusted: the same, by :func:`holm`.
    """
    each = ALPHA / max(len(ps), 1)
    return [ALPHA * p / its if p > each and its <= ALPHA else each for p, its in zip(ps, adjusted, strict=True)]


def _spread(values: Floats) -> Floats:
    """The standard deviation; 0 where all are the same but for rounding."""
    spread = values.std(axis=-1, ddof=1)
    size = np.abs(values).max(axis=-1)
    return np.where(spread > _CONSTANT * size, spread, 0.0)


def _estimate(mean: Floats, error: Floats, freedom: Floats, alpha: float) -> DifferenceEstimate:
    """The estimate of a mean with its standard error and degrees of freedom."""
    half = stdtrit(freedom, 1 - alpha / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, 2 * stdtr(freedom, -np.abs(mean) / error), np.nan)
    return DifferenceEstimate(mean, mean - half, mean + half, p)
