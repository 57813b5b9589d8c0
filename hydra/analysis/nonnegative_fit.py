"""Sums of terms that are not negative, fitted under multiplicative noise, with prediction intervals. Pure.

The model is log y = log(d · p) + e with e ~ N(0, s²) and p ≥ 0: y is a cost (CPU seconds, seconds per message), the
design d says how often each term occurs, and p is what each costs. All is made for many fits at a time, the first axis
counts them. docs/models.md tells why it is done like this, and how it was tried.
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
"""What two runs on the same machine differ by (standard deviation of the logarithm; docs/limits.md)."""
NOISE_WEIGHT: Final = 3.0
"""As how many degrees of freedom that counts beside what the residuals say (G. K. Smyth, Statistical Applications in
Genetics and Molecular Biology 3:3, 2004)."""

_ITERATIONS: Final = 40
_STEPS: Final = (1.0, 0.4, 0.1, 0.02)
_HALVINGS: Final = 10
_FARTHEST: Final = 4.0
"""How far from the estimate a limit is looked for, as a logarithm: a factor of 55."""
_TINY: Final = 1e-300
_LOWEST: Final = 1e-12
"""The part of a measured figure that a fit says at least, so that it has a logarithm."""
_GRID: Final = 400
"""Values of a term that are tried for its limits: 4 % from each to the next."""
_HEAVY: Final = 1e8
"""The weight of a value that a fit has to go through."""


@dataclass(frozen=True, slots=True)
class TermFits:
    """``terms`` (fits, terms), and the sum of the squared residuals (fits,)."""

    terms: Array
    squares: Array


@dataclass(frozen=True, slots=True)
class PredictedFigure:
    """A figure that was not measured: the estimate, and between which limits a new measurement of it lies in 95 %.

    Attributes:
        estimate, low, high: (fits,); an infinite ``high``: there is no limit within a factor of 55.
        law: which of several laws fits best, and gave the estimate.
    """

    estimate: Array
    low: Array
    high: Array
    law: NDArray[np.intp]


def fit_terms(design: Array, y: Array, weights: Array | None = None) -> TermFits:
    """The least squares of the logarithms under p ≥ 0, by Gauss and Newton's steps.

    Each step is an exact non-negative least squares, made shorter where it would not descend.

    Args:
        design: (fits, points, terms), not negative; every row has a term.
        y: (fits, points), above 0.
        weights: (fits, points) of the squared residuals; None: all 1.
    """
    # In parts of what was measured, a fit's values are near 1, whatever the units.
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
    """What a further measurement will be, by whichever of several laws agree with the points.

    A value is in the interval where some law fits the points *with* it hardly worse than the best law fits them
    without: by at most t² s², the profile of the predictive likelihood (J. F. Bjørnstad, Statistical Science 5, 1990).
    For one law that is linear this is the usual prediction interval.

    Args:
        laws: of each law the design (fits, points + 1, terms); its last row is of the figure to predict.
        y: (fits, points), the measured ones.
        unknown: of each law how many things the points have to tell.
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
    """The squared residuals up to which other fits agree with the points as well, at 95 %.

    Args:
        squares: (fits,), of the best.
        freedom: (fits,), points less what they have to tell.
    """
    from scipy.special import stdtrit  # it takes a third of a second: only who fits waits for it

    together = freedom + NOISE_WEIGHT
    variance = (squares + NOISE_WEIGHT * NOISE**2) / together
    allowed: Array = squares + stdtrit(together, 0.975) ** 2 * variance
    return allowed


def limit(accepts: Callable[[Array], NDArray[np.bool_]], side: float, count: int) -> Array:
    """How far an interval reaches to one side as a logarithm (count,), rounded outwards; infinite beyond ±4.

    Args:
        accepts: of shifts (count,), which are in the interval; 0 is.
        side: -1 or 1.
        count: how many intervals there are.
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
    """Between which values one term's cost is; 0 and None where the points set no limit.

    Args:
        design: (points, terms).
        y: (points,).
        term: which.
        allowed: the squared residuals up to which a fit agrees with the points.
    """
    occurs = design[:, term] > 0
    # More than this the term cannot cost, for it would be more than the whole.
    most = 30 * float(np.max(y[occurs] / design[occurs, term]))
    grid = np.geomspace(1e-7, 1.0, _GRID) * most
    through = np.tile(np.vstack([design, np.eye(design.shape[1])[term]]), (_GRID, 1, 1))
    values = np.concatenate([np.tile(y, (_GRID, 1)), grid[:, None]], axis=1)
    weights = np.ones_like(values)
    weights[:, -1] = _HEAVY
    return accepted(grid, fit_terms(through, values, weights).squares <= allowed)


def accepted(grid: Array, good: NDArray[np.bool_]) -> tuple[float, float | None]:
    """The limits of what is accepted of a rising grid, rounded outwards; open where the grid ends."""
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
    """The least |a p − b|² under p ≥ 0, of few terms: the best of the feasible solutions of all subsets."""
    size = a.shape[2]
    gram, right = np.einsum("bni,bnj->bij", a, a), np.einsum("bni,bn->bi", a, b)
    best, lowest = np.zeros((len(a), size)), np.zeros(len(a))
    for count in range(1, size + 1):
        for subset in combinations(range(size), count):
            part = list(subset)
            g = gram[:, part][:, :, part]
            # A term that never occurs, or two that always occur together, have no solution of their own.
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
