"""The highest rate whose expected shortfall is at most a target, from steps that are each left to chance. Pure.

Definition. The *shortfall* of a rate r is the share of what is due that is lost, or that piles up instead of being
delivered, as a mean over time: L(r). The figure looked for is R, the highest rate with L(R) ≤ t. It does not depend on
how long the steps are, because a mean over time does not.

Model. Shortfall comes in bursts, as a Poisson process in time (a step of 5 s is five of 1 s):

    bursts a second   λ(r) = (t/m) · (r/R)^(β·(1−g))      (at most ``MOST_BURSTS``)
    mean size         m(r) = m · (r/R)^(β·g)               seconds of traffic that a burst costs, at most 1

so that λ(R)·m(R) = t. Sizes are gamma or log-normal. Beside it stands the system without chance, which carries a
capacity c and nothing more: a step of r > c falls short by 1 − c/r, where c varies by a few percent from step to step
(a censored regression; J. Tobin, Econometrica 26, 1958). The posterior over both, on a grid of R and of everything that
is not asked for, gives the figure (its median) and the 95 % interval (its 2.5 and 97.5 % quantiles).

Design. The next step is the one that is expected to leave the least entropy in R, as in QUEST+ (A. B. Watson, Journal
of Vision 17(3):10, 2017), of which this is an application: the "psychometric function" is whether a step has a burst.

The interval holds what differs between two runs on the same machine as well: see ``BETWEEN_RUNS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import exp, lgamma, log, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from hydra.sweep.answer import Interval

Floats = npt.NDArray[np.float64]

LATTICE: Final = log(2) / 28
"""Distance of neighbouring rates in logarithm: every rate that is tried, and every R that is thought of, is on it. It
holds 1,000/s and its doublings."""
BETWEEN_RUNS: Final = 0.05
"""Standard deviation of log R between runs of the same search, which no single run can know (docs/limits.md)."""
MOST_BURSTS: Final = 3.0
"""Bursts a second that can be told apart."""
_ORIGIN: Final = 1000.0
_WINDOW: Final = 140
"""Values of R that are thought of at a time: a factor of 32. The window moves with the posterior."""
_EDGE: Final = _WINDOW // 12
_EDGE_MASS: Final = 0.004
_REACH: Final = 4 * _WINDOW
"""Places on the lattice between a rate and an R; beyond it nothing changes any more."""
_SLOPES: Final = (1.2, 2.0, 3.2, 5.0, 8.0, 13.0, 22.0)
_USUAL_SLOPE: Final = 5.0
_SLOPE_SPREAD: Final = 1.0
"""The prior of β: log-normal about what subscribers of two implementations were recorded with."""
_SIZE_SHARES: Final = {0.0: 0.5, 0.3: 0.35, 0.6: 0.15}
"""The prior of g."""
_SIZES: Final = 7
_LARGEST_SIZE_S: Final = 0.5
_GAMMAS: Final = (0.7, 2.0)
_LOGNORMALS: Final = (0.8, 1.4)
_JITTERS: Final = (0.003, 0.01, 0.03, 0.08)
_CAPACITY_PRIOR: Final = 0.02
"""What the system without chance has to make up for before it is believed: two or three steps that fit it."""
_OVERLOAD: Final = 0.5
"""A step that falls short by more than this says only that it does: the model is of rates near R."""
_CANDIDATES: Final = 9
_BELOW: Final = 0.1
_ABOVE: Final = 0.2
"""How far beyond the middle 90 % of the posterior steps may lie, in logarithm: far away the model is least true."""
_HIGHEST_LOG: Final = 20.0
_NOTHING: Final = 1e-200
"""Probabilities below this add nothing to an entropy, and near 0 their logarithms are none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a step says of its rate.

    Attributes:
        rate: messages/s that were asked for.
        seconds: length of the step.
        bursts: what each burst cost, in seconds of traffic; none in a step without shortfall.
    """

    rate: float
    seconds: float
    bursts: Sequence[float]

    @property
    def shortfall(self) -> float:
        """The share of what was due that was lost or piled up."""
        return sum(self.bursts) / self.seconds


def place(rate: float) -> int:
    """Where on the lattice a rate is."""
    return round(log(rate / _ORIGIN) / LATTICE)


def rate_at(where: int) -> float:
    """The rate at a place of the lattice, in five digits."""
    return float(f"{_ORIGIN * exp(where * LATTICE):.5g}")


@dataclass(frozen=True, slots=True)
class _Tables:
    """The model by (place of the rate − place of R), a column for every combination of β, m and g."""

    log_prior: Floats
    bursts: Floats
    log_bursts: Floats
    log_size: Floats
    per_size: Floats
    capacity_above: Floats
    """log c − log R for every jitter of the capacity."""


@cache
def _tables(target: float) -> _Tables:
    sizes = np.geomspace(target, _LARGEST_SIZE_S, _SIZES)
    slope, size, share = np.array(list(product(_SLOPES, sizes, _SIZE_SHARES))).T
    prior = np.exp(-0.5 * ((np.log(slope) - log(_USUAL_SLOPE)) / _SLOPE_SPREAD) ** 2)
    prior *= np.array([_SIZE_SHARES[g] for g in share.tolist()])
    u = np.arange(-_REACH, _REACH + 1)[:, None] * LATTICE * slope
    bursts = np.exp(np.clip(np.log(target / size) + u * (1 - share), -_HIGHEST_LOG, _HIGHEST_LOG))
    bursts /= 1 + bursts / MOST_BURSTS
    log_size = np.clip(np.log(size) + u * share, -_HIGHEST_LOG, 0.0)
    return _Tables(
        log_prior=np.log(prior / prior.sum()),
        bursts=bursts,
        log_bursts=np.log(bursts),
        log_size=log_size,
        per_size=np.exp(-log_size),
        capacity_above=np.array([_capacity_above(target, jitter) for jitter in _JITTERS]),
    )


def _capacity_above(target: float, jitter: float) -> float:
    """Where c varies log-normally, log c − log R with E[max(0, 1 − c·e^(jitter·z)/R)] = target, z standard normal."""

    def excess(d: float) -> float:
        return float(ndtr(-d / jitter) - exp(d + jitter**2 / 2) * ndtr(-d / jitter - jitter) - target)

    return float(brentq(excess, -1.0, 1.0 + 5 * jitter))


class RateEstimate:
    """What is known of R after the evidence so far.

    Args:
        target: the shortfall that is allowed, as a fraction.
        guess: a rate (messages/s) that R is thought to be near, to a factor of ten.
    """

    def __init__(self, target: float, guess: float) -> None:
        self._model = _tables(target)
        self._evidence: list[Evidence] = []
        self._begin(place(guess) - _WINDOW // 2)

    def _begin(self, first: int) -> None:
        """The prior, with R at the places ``first`` … ``first`` + _WINDOW − 1."""
        shapes = len(_GAMMAS) + len(_LOGNORMALS)
        self._first = first
        self._log_r = log(_ORIGIN) + np.arange(first, first + _WINDOW) * LATTICE
        by_chance = self._model.log_prior + log((1 - _CAPACITY_PRIOR) / shapes)
        self._chance = np.tile(by_chance, (shapes, _WINDOW, 1))
        self._capacity = np.full((_WINDOW, len(_JITTERS)), log(_CAPACITY_PRIOR / len(_JITTERS)))
        self._weights: tuple[Floats, Floats] | None = None

    # --- evidence ------------------------------------------------------------------------------------------------

    def add(self, evidence: Evidence) -> None:
        """Takes what a step says."""
        self._evidence.append(evidence)
        self._enter(evidence)
        self._follow()

    def _enter(self, evidence: Evidence) -> None:
        seconds = evidence.seconds
        sizes = np.array(evidence.bursts)
        self._chance += self._log_chance(place(evidence.rate), seconds, sizes)
        self._capacity += self._log_capacity(log(evidence.rate), seconds, float(sizes.sum()))
        top = max(float(self._chance.max()), float(self._capacity.max()))
        self._chance -= top
        self._capacity -= top
        self._weights = None

    def _rows(self, table: Floats, where: int) -> Floats:
        """A table's rows for a rate at ``where``, one for each R of the window."""
        at = np.clip(where - np.arange(self._first, self._first + _WINDOW), -_REACH, _REACH) + _REACH
        return table[at]

    def _log_chance(self, where: int, seconds: float, sizes: Floats) -> Floats:
        """Log-likelihood of the bursts by (shape, R, combination)."""
        n = len(sizes)
        count = -seconds * self._rows(self._model.bursts, where)
        if not n:
            return count[None]
        if sizes.sum() > _OVERLOAD * seconds:
            return np.log(-np.expm1(count))[None]
        count += n * (self._rows(self._model.log_bursts, where) + log(seconds)) - lgamma(n + 1)
        logs = np.log(sizes)
        total, total_log, squares = float(sizes.sum()), float(logs.sum()), float((logs * logs).sum())
        log_size, per_size = self._rows(self._model.log_size, where), self._rows(self._model.per_size, where)
        shapes = [
            n * a * (log(a) - log_size) + (a - 1) * total_log - a * total * per_size - n * lgamma(a) for a in _GAMMAS
        ]
        for s in _LOGNORMALS:
            mean = log_size - s * s / 2
            off = squares - 2 * mean * total_log + n * mean * mean
            shapes.append(-off / (2 * s * s) - total_log - n * log(s * sqrt(2 * np.pi)))
        return np.stack([count + shape for shape in shapes])

    def _log_capacity(self, log_rate: float, seconds: float, lost_s: float) -> Floats:
        """Log-likelihood of the shortfall by (R, jitter): censored where there was none."""
        jitters = np.array(_JITTERS)
        capacity = self._log_r[:, None] + self._model.capacity_above
        if not lost_s:
            censored: Floats = log_ndtr((capacity - log_rate) / jitters)
            return censored
        delivered = 1 - lost_s / seconds
        if delivered < 1 - _OVERLOAD:
            below: Floats = log_ndtr((log_rate + log(1 - _OVERLOAD) - capacity) / jitters)
            return below
        z = (log(delivered) + log_rate - capacity) / jitters
        # As a density of the seconds that were lost, so that it compares with that of the bursts.
        seen: Floats = -0.5 * z * z - np.log(jitters * sqrt(2 * np.pi) * delivered * seconds)
        return seen

    def _follow(self) -> None:
        """Moves the window while the posterior leans on one of its edges; one that is as wide stays."""
        towards = 0
        while True:
            p = self._posterior()
            low, high = float(p[:_EDGE].sum()), float(p[-_EDGE:].sum())
            side = 1 if high > max(low, _EDGE_MASS) else -1 if low > max(high, _EDGE_MASS) else 0
            if not side or side == -towards or min(low, high) > _EDGE_MASS:
                return
            towards = side
            self._begin(self._first + side * _WINDOW // 3)
            for evidence in self._evidence:
                self._enter(evidence)

    # --- answers -------------------------------------------------------------------------------------------------

    def _weight(self) -> tuple[Floats, Floats]:
        """Unnormalised posterior weights by (R, combination) and (R, jitter)."""
        if self._weights is None:
            self._weights = np.exp(self._chance).sum(axis=0), np.exp(self._capacity)
        return self._weights

    def _posterior(self) -> Floats:
        chance, capacity = self._weight()
        p: Floats = chance.sum(axis=1) + capacity.sum(axis=1)
        p /= p.sum()
        return p

    def interval(self) -> Interval:
        """The figure and its 95 % interval, in messages/s."""
        reach = int(4 * BETWEEN_RUNS / LATTICE) + 1
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * LATTICE / BETWEEN_RUNS) ** 2)
        sums = np.cumsum(np.convolve(self._posterior(), kernel / kernel.sum()))
        # A place stands for what is nearest to it, so its mass is all there half a step further.
        logs = (np.arange(self._first - reach, self._first + _WINDOW + reach) + 0.5) * LATTICE
        low, figure, high = _ORIGIN * np.exp(np.interp((0.025, 0.5, 0.975), sums / sums[-1], logs))
        return Interval(float(low), float(figure), float(high))

    def next_rate(self, seconds: float, least: float, most: float) -> float:
        """The rate at which a step is expected to tell most of R.

        Args:
            seconds: length of the step.
            least: the lowest answer, messages/s.
            most: the highest.
        """
        chance, capacity = self._weight()
        p = chance.sum(axis=1) + capacity.sum(axis=1)
        sums = np.cumsum(p) / p.sum()
        low, high = (self._first + int(np.searchsorted(sums, q)) for q in (0.05, 0.95))
        likely = chance.sum(axis=0) > 1e-3 * p.sum()
        weights, bursts = chance[:, likely], self._model.bursts[:, likely]
        places = np.linspace(low - _BELOW / LATTICE, high + _ABOVE / LATTICE, _CANDIDATES).round().astype(int)
        limits = place(least), place(most)
        places = np.unique(np.clip(places, *limits))

        def entropy(at: int) -> float:
            return self._entropy_after(at, seconds, weights, bursts, capacity)

        return rate_at(min(map(int, places), key=entropy))

    def _entropy_after(self, at: int, seconds: float, chance: Floats, bursts: Floats, capacity: Floats) -> float:
        """Expected entropy of R after a step at this place, by whether it falls short at all."""
        above = self._log_r[:, None] - log(_ORIGIN) - at * LATTICE + self._model.capacity_above
        clean = (chance * np.exp(-seconds * self._rows(bursts, at))).sum(axis=1) + (
            capacity * ndtr(above / np.array(_JITTERS))
        ).sum(axis=1)
        short = np.maximum(chance.sum(axis=1) + capacity.sum(axis=1) - clean, 0.0)
        return _entropy(clean) + _entropy(short)


def _entropy(weights: Floats) -> float:
    """Entropy of normalised weights, times their sum."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    p = weights / total
    p = p[p > _NOTHING]
    return float(-total * (p * np.log(p)).sum())
