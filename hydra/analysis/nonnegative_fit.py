"""Sums of terms that are not negative, fitted under multiplicative noise, with prediction intervals. Pure.

The model is log y = log(d · p) + e with e ~ N(0, s²) and p ≥ 0: y is a cost (CPU seconds, seconds per message), the
design d is how often each term occurs, and p is the cost of each term. All functions compute many fits at a time; the
first axis counts the fits. docs/models.md gives the reasons for the method, and its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NOISE: Final = 0.05
"""The difference of two runs on one machine (standard deviation of the logarithm; docs/limits.md)."""
NOISE_WEIGHT: Final = 3.0
"""The degrees of freedom of ``NOISE`` in addition to those of the residuals (G. K. Smyth, Statistical Applications
in Genetics and Molecular Biology 3:3, 2004)."""

_ITERATIONS: Final = 40
_STEPS: Final = (1.0, 0.4, 0.1, 0.02)
_HALVINGS: Final = 10
_FARTHEST: Final = 4.0
"""The largest distance of a limit from the estimate, as a logarithm: a factor of 55."""
_TINY: Final = 1e-300
_LOWEST: Final = 1e-12
"""The smallest share of a measured figure that a fit may have, so its logarithm exists."""
_GRID: Final = 400
"""The number of values of a term that are tried for its limits, 4 % apart."""
_HEAVY: Final = 1e8
"""The weight of a value that a fit has to go through."""


@dataclass(frozen=True, slots=True)
class TermFits:
    """The fitted ``terms`` (fits, terms), and the sums of the squared residuals (fits,)."""

    terms: Array
    squares: Array


@dataclass(frozen=True, slots=True)
class PredictedFigure:
    """A predicted figure: the estimate, and the limits between which a new measurement lies with 95 %.

    Attributes:
        estimate, low, high: (fits,); an infinite ``high``: there is no limit within a factor of 55.
        law: index of the law that fits best, and gave the estimate.
    """

    estimate: Array
    low: Array
    high: Array
    law: NDArray[np.intp]


def fit_terms(design: Array, y: Array, weights: Array | None = None) -> TermFits:
    """Fits the least squares of the logarithms under p ≥ 0 by Gauss-Newton steps.

    Each step is an exact non-negative least-squares solution; it is shortened if the squares would not decrease.

    Args:
        design: (fits, points, terms), not negative; every row has a positive term.
        y: (fits, points), above 0.
        weights: (fits, points) of the squared residuals; None: all 1.
    """
    # Relative to the measured figures, a fit's values are near 1 in any unit.
    parts = design / y[..., None]
    scale = np.maximum(np.sqrt(np.mean(parts**2, axis=1)), _TINY)
    columns = parts / scale[:, None, :]
    root = np.ones_like(y) if weights is None else np.sqrt(weights)
    terms = _least(columns * root[..., None], root)
    squares = _squares(columns, root, terms)
    busy = np.arange(len(y))
    for _ in range(_ITERATIONS):
        its, its_root, here, lowest = columns[busy], root[busy], terms[busy], squares[busy]
        values = _values(its, here)
        step = _least(its / values[..., None] * its_root[..., None], (1 - np.log(values)) * its_root) - here
        moved = np.zeros(len(busy), dtype=bool)
        for part in _STEPS:
            found = _squares(its, its_root, here + part * step)
            better = ~moved & (found < lowest)
            terms[busy[better]] = (here + part * step)[better]
            squares[busy[better]] = found[better]
            moved |= better
            if moved.all():
                break
        busy = busy[moved & (lowest - squares[busy] > 1e-9 * squares[busy] + 1e-14)]
        if not busy.size:
            break
    return TermFits(terms / scale, squares)


def predict(laws: Sequence[Array], y: Array, unknown: Sequence[int]) -> PredictedFigure:
    """Predicts a further measurement with all of several laws that agree with the points.

    A value is in the interval if some law fits the points *with* it only slightly worse than the best law fits them
    without it: by at most t² s², the profile of the predictive likelihood (J. F. Bjørnstad, Statistical Science 5,
        1990).
    For a single linear law this is the usual prediction interval.

    Args:
        laws: the design (fits, points + 1, terms) of each law; its last row is that of the figure to predict.
        y: (fits, points), the measured figures.
        unknown: the number of unknowns of each law.
    """
    fits = [fit_terms(law[:, :-1], y) for law in laws]
    squares = np.stack([each.squares for each in fits])
    best, lowest = squares.argmin(axis=0), squares.min(axis=0)
    at_end = np.stack([np.einsum("bk,bk->b", law[:, -1], each.terms) for law, each in zip(laws, fits, strict=True)])
    estimate = np.maximum(np.take_along_axis(at_end, best[None], axis=0)[0], _TINY)
    freedom = y.shape[1] - np.asarray(unknown)[best]
    allowed = agreeing(lowest, freedom)
    everything = np.concatenate(list(laws))

    def accepts(shift: Array) -> NDArray[np.bool_]:
        more = np.concatenate([y, (estimate * np.exp(shift))[:, None]], axis=1)
        found = fit_terms(everything, np.tile(more, (len(laws), 1))).squares.reshape(len(laws), -1).min(axis=0)
        agrees: NDArray[np.bool_] = found <= allowed
        return agrees

    low, high = (estimate * np.exp(limit(accepts, side, len(y))) for side in (-1.0, 1.0))
    return PredictedFigure(estimate, low, high, best)


def agreeing(squares: Array, freedom: NDArray[np.int_]) -> Array:
    """The sum of squared residuals up to which other fits agree with the points, too, at 95 %.

    Args:
        squares: (fits,), the sum of the best fit.
        freedom: (fits,), the number of points minus the number of unknowns.
    """
    from scipy.special import stdtrit  # it takes a third of a second: only who fits waits for it

    together = freedom + NOISE_WEIGHT
    variance = (squares + NOISE_WEIGHT * NOISE**2) / together
    allowed: Array = squares + stdtrit(together, 0.975) ** 2 * variance
    return allowed


def limit(accepts: Callable[[Array], NDArray[np.bool_]], side: float, count: int) -> Array:
    """The limit of an interval on one side, as a logarithm (count,), rounded outwards; infinite beyond ±4.

    Args:
        accepts: for shifts (count,), whether each is in the interval; 0 is.
        side: -1 or 1.
        count: number of intervals.
    """
    inside, outside = np.zeros(count), np.full(count, _FARTHEST)
    endless = accepts(side * outside)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        good = accepts(side * middle)
        inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
    reach: Array = side * np.where(endless, np.inf, outside)
    return reach


def terms_within(design: Array, y: Array, term: int, allowed: float) -> tuple[float, float | None]:
    """The limits of one term's cost; 0 and None if the points set no limit.

    Args:
        design: (points, terms).
        y: (points,).
        term: index of the term.
        allowed: the sum of squared residuals up to which a fit agrees with the points.
    """
    occurs = design[:, term] > 0
    # The term cannot cost more than this, because that would be far more than the whole.
    most = 30 * float(np.max(y[occurs] / design[occurs, term]))
    grid = np.geomspace(1e-7, 1.0, _GRID) * most
    through = np.tile(np.vstack([design, np.eye(design.shape[1])[term]]), (_GRID, 1, 1))
    values = np.concatenate([np.tile(y, (_GRID, 1)), grid[:, None]], axis=1)
    weights = np.ones_like(values)
    weights[:, -1] = _HEAVY
    return accepted(grid, fit_terms(through, values, weights).squares <= allowed)


def accepted(grid: Array, good: NDArray[np.bool_]) -> tuple[float, float | None]:
    """The limits of the accepted values of an ascending grid, rounded outwards; open at the ends of the grid."""
    found = np.flatnonzero(good)
    if not found.size:
        return 0.0, None
    first, last = int(found[0]), int(found[-1])
    return (float(grid[first - 1]) if first else 0.0), (float(grid[last + 1]) if last < len(grid) - 1 else None)


def _values(columns: Array, terms: Array) -> Array:
    values: Array = np.maximum(np.einsum("bnk,bk->bn", columns, terms), _LOWEST)
    return values


def _squares(columns: Array, root: Array, terms: Array) -> Array:
    residuals: Array = np.log(_values(columns, terms)) * root
    squares: Array = np.einsum("bn,bn->b", residuals, residuals)
    return squares


def _least(a: Array, b: Array) -> Array:
    """Minimises |a p − b|² under p ≥ 0 for few terms: the best feasible solution of all subsets."""
    size = a.shape[2]
    gram, right = np.einsum("bni,bnj->bij", a, a), np.einsum("bni,bn->bi", a, b)
    best, lowest = np.zeros((len(a), size)), np.zeros(len(a))
    for count in range(1, size + 1):
        for subset in combinations(range(size), count):
            part = list(subset)
            g = gram[:, part][:, :, part]
            # A term that never occurs, or two that always occur together, have no unique solution.
            ridge = 1e-13 * np.trace(g, axis1=1, axis2=2) + _TINY
            solved = np.linalg.solve(g + ridge[:, None, None] * np.eye(count), right[:, part, None])[..., 0]
            # |a p − b|² without b², at the solution.
            value = -np.einsum("bi,bi->b", solved, right[:, part])
            better = (solved >= 0).all(axis=1) & (value < lowest)
            lowest = np.where(better, value, lowest)
            whole = np.zeros_like(best)
            whole[:, part] = solved
            best = np.where(better[:, None], whole, best)
    return best
