"""Whether two samples of repeats differ, by how much, and with what certainty. Pure.

A paired comparison is Student's t test of the pairs' differences, an unpaired one is Welch's (B. L. Welch: The
generalization of "Student's" problem when several different population variances are involved, Biometrika 34, 1947).
Both are given logarithms where all figures are above zero, so that a difference of means is a ratio.

Everything takes arrays whose last axis are the repeats, and gives arrays of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

ALPHA: Final = 0.05
"""The share of comparisons of the same with the same that may show a difference."""
_CONSTANT: Final = 1e-12
"""Spreads below this share of the figures are rounding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference of means.

    Attributes:
        mean: other − base.
        low, high: its 95 % interval.
        p: how likely a difference of at least this size is if there is none, two-sided.
    """

    mean: Floats
    low: Floats
    high: Floats
    p: Floats


def paired(differences: ArrayLike) -> Estimate:
    """The mean of the differences of pairs.

    Args:
        differences: other − base, of at least 2 pairs.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    spread = _spread(d)
    return _estimate(d.mean(axis=-1), spread / np.sqrt(n), np.asarray(n - 1.0), rank_floor=2.0 ** (1 - n))


def independent(base: ArrayLike, other: ArrayLike) -> Estimate:
    """The difference of the means of two samples that have nothing to do with each other, each of at least 2."""
    a, b = np.asarray(base, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n, m = a.shape[-1], b.shape[-1]
    va, vb = _spread(a) ** 2 / n, _spread(b) ** 2 / m
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
    freedom = np.where(va + vb > 0, freedom, 1.0)
    return _estimate(b.mean(axis=-1) - a.mean(axis=-1), np.sqrt(va + vb), freedom, rank_floor=2.0 / comb(n + m, n))


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


def _spread(values: Floats) -> Floats:
    """The standard deviation; 0 where all are the same but for rounding."""
    spread = values.std(axis=-1, ddof=1)
    size = np.abs(values).max(axis=-1)
    return np.where(spread > _CONSTANT * size, spread, 0.0)


def _estimate(mean: Floats, error: Floats, freedom: Floats, rank_floor: float) -> Estimate:
    """The estimate of a mean with its standard error.

    Args:
        mean: other − base.
        error: of the mean.
        freedom: degrees of freedom.
        rank_floor: the p value where nothing spreads, and t knows no scale: how rarely chance sorts as many repeats so
            cleanly.
    """
    half = stdtrit(freedom, 1 - ALPHA / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(freedom, -np.abs(mean) / error)
    p = np.where(error > 0, p, np.where(mean == 0, 1.0, rank_floor))
    return Estimate(mean, mean - half, mean + half, p)
