"""The highest rate whose expected loss is at most a target, estimated from steps whose losses are random. Pure.

Definition. L(r) is the mean share over time of the messages due at rate r that are lost or added to the backlog. The
figure searched for is R, the highest rate with L(R) ≤ t. R does not depend on the length of steps.

Model. L(r) = f + g(r/K): a *floor* f that is lost at any rate, and the loss g by the rate, of
:mod:`hydra.sweep.loss_curves`. Where f ≥ t no rate holds, which is an atom of the same posterior. The evidence of a
step of s seconds is y, the seconds of traffic that it lost: a sum of bursts that come as a Poisson process, of
exponential size with mean μ (a compound Poisson-gamma or Tweedie law; B. Jørgensen, J. R. Stat. Soc. B 49, 1987). With
a = sL/μ, b = y/μ and z = 2√(ab),

    log p(y) = −a for y = 0, and else −a − b + ln(a/μ) + ln(I₁(z)·2/z),   ln(I₁(z)·2/z) ≈ z − 1.5·ln(1 + 1.1624·z).

The list of bursts is not used: it would count sixty bursts in a minute of constant loss, which has no bursts. Of a step
that lost more than half, only that fact is used. No curve is true, so no step determines its own loss better than
``_OWN``, nor R better than ``_SHIFT``: μ grows with the evidence by L·s·(_OWN² + (E·_SHIFT)²)/2, where E is
d ln L/d ln r. The least loss is one copy: μ grows by the seconds of traffic of one copy, and a constant floor is seen
with the noise of its count.

The posterior is on a grid of K, curve, burst size and floor. The figure is its median, and the 95 % confidence interval
lies between its 2.5 and 97.5 % quantiles, widened by the difference between two runs on the same host
(``BETWEEN_RUNS``). The posterior is tempered, prior × likelihood^η with η < 1, if the target allows few bursts in all
measured seconds: the form of the curve, which is a guess, then decides more. Only the kind of the curve is judged by
all of the evidence (P. Grünwald, T. van Ommen,
Bayesian Analysis 12(4), 2017; P. G. Bissiri, C. C. Holmes, S. G. Walker, J. R. Stat. Soc. B 78(5), 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import exp, inf, log, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from hydra.sweep.loss_curves import COARSE, FINE, PER_COARSE, REACH, SIZES_S, Floats, LossCurves, Singles, curves
from hydra.sweep.search_answer import CredibleInterval

Ints = npt.NDArray[np.int32]

LATTICE: Final = log(2) / 28
"""Distance of neighbouring tried rates, in logarithm. The lattice contains 1,000/s and its doublings."""
BETWEEN_RUNS: Final = 0.05
"""Standard deviation of log R between runs of the same search, which no single run can measure (docs/limits.md)."""
_ORIGIN: Final = 1000.0
_OWN: Final = 0.10
_SHIFT: Final = 0.03
_STEEPEST: Final = 30.0
_FLOORS: Final = (0.1, 0.3, 0.6, 0.85, 1.2, 1.7, 3.0, 8.0)
"""Floors that come in bursts, in targets."""
_FLOOR_SIZES_S: Final = (0.02, 0.15)
_CONSTANT: Final = (0.75, 0.87, 0.94, 1.0, 1.06, 1.14, 1.3)
"""Floors that are always there, as multiples of what steps at low rates lost."""
_BURSTY_FLOOR: Final = 0.06
_CONSTANT_FLOOR: Final = 0.10
"""Prior probability of a floor that comes in bursts, and of one that is always there."""
_EXACT: Final = 1e-5
"""The resolution of a constant floor, as a share of the traffic."""
_NEVER: Final = 2**30
"""The place of R in the cells in which no rate holds."""
_PRUNED: Final = -12.0
"""Cells whose log posterior, relative to the best cell's, is below this are discarded."""
_OVERLOAD: Final = 0.5
_FAR: Final = 10.0
"""Of a rate well above R that loses more than this many targets, only that fact is used: the curves hold near R."""
FEW_BURSTS: Final = 14.0
"""The evidence counts in full if the target allows at least this many bursts in the measured seconds."""
_LEAST_TEMPER: Final = 0.25
_LIKELY: Final = 600
_TREND_CELLS: Final = 1500
_DRIFTS: Final = (-0.45, -0.3, -0.18, -0.08, 0.0, 0.08, 0.18, 0.3, 0.45)
_EARLY: Final = (-0.3, 0.15, 0.3, 0.5)
"""Possible changes of ln R during a search: even ones, and early ones as in a system that warms up."""
_USUAL_DRIFT: Final = 0.08
_LARGE_DRIFT: Final = 0.25


@dataclass(frozen=True, slots=True)
class RateObservation:
    """The loss of one step at its rate.

    Attributes:
        rate: messages/s that the step asked for.
        seconds: length of the step.
        bursts: the loss in each burst, in seconds of traffic; empty in a step without loss.
        at_s: the middle of the step, in seconds since the first step began.
        copies: messages that were due in the step, each counted at every subscriber; a loss is a whole number of them.
    """

    rate: float
    seconds: float
    bursts: Sequence[float]
    at_s: float = 0.0
    copies: float = inf

    @property
    def copy_s(self) -> float:
        """The loss of one copy, in seconds of traffic."""
        return self.seconds / self.copies

    @property
    def lost_s(self) -> float:
        """Seconds of traffic that were lost or added to the backlog."""
        return sum(self.bursts)

    @property
    def shortfall(self) -> float:
        """The share of the due messages that was lost or added to the backlog."""
        return self.lost_s / self.seconds


def place(rate: float) -> int:
    """The place of a rate on the lattice."""
    return round(log(rate / _ORIGIN) / LATTICE)


def rate_at(where: int) -> float:
    """The rate at a place of the lattice, rounded to five digits."""
    return float(f"{_ORIGIN * exp(where * LATTICE):.5g}")


def _fine(rate: float) -> int:
    return round(log(rate / _ORIGIN) / FINE)


@dataclass(slots=True)
class _Cells:
    """Cells of the grid, as flat arrays of one length: curve × places, burst size, place of K, floor, place of R."""

    row: Ints
    size: Ints
    k: Ints
    floor: Singles
    floor_size: Singles
    answer: Ints
    log_prior: Singles
    log_p: Floats

    def kept(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> _Cells:
        """Some of the cells."""
        return _Cells(*(getattr(self, f.name)[which] for f in fields(self)))


def _cells(
    model: LossCurves, target: float, places: tuple[int, int], floors: Floats, sizes: Floats, priors: Floats
) -> _Cells:
    """The prior of every K (between coarse ``places``), curve and burst size with each of the floors."""
    curve, size = np.nonzero(model.prior > 0)
    ks = np.arange(places[0], places[1] + 1) * PER_COARSE
    k, pair, floor = (x.ravel() for x in np.meshgrid(ks, np.arange(len(curve)), np.arange(len(floors)), indexing="ij"))
    answers = _answers(model, target, floors)
    answer = answers[curve[pair], floor]
    log_prior = np.log(model.prior[curve, size])[pair] + np.log(priors)[floor]
    return _Cells(
        row=(curve[pair] * model.loss.shape[1]).astype(np.int32),
        size=size[pair].astype(np.int32),
        k=k.astype(np.int32),
        floor=floors[floor].astype(np.float32),
        floor_size=sizes[floor].astype(np.float32),
        answer=np.where(answer == _NEVER, _NEVER, k + answer).astype(np.int32),
        log_prior=log_prior.astype(np.float32),
        log_p=log_prior,
    )


def _answers(model: LossCurves, target: float, floors: Floats) -> Ints:
    """The place of R minus the place of K, by (curve, floor)."""
    found = np.full((len(model.loss), len(floors)), _NEVER, dtype=np.int64)
    for c, loss in enumerate(np.maximum.accumulate(model.loss, axis=1)):
        for f, floor in enumerate(floors):
            if floor < target:
                found[c, f] = min(int(np.searchsorted(loss, (target - floor) * (1 - 1e-6))), 2 * REACH) - REACH
    found[-model.jumps :] = np.where(floors < target, 0, _NEVER)
    return found.astype(np.int32)


class RateEstimate:
    """The posterior of R after the evidence so far.

    Args:
        target: the allowed loss, as a fraction.
        least: the lowest K considered, messages/s.
        most: the highest K considered, messages/s.
        constant: the share lost at low rates, which may be a floor.
    """

    def __init__(self, target: float, least: float, most: float, constant: float = 0.0) -> None:
        self._target = target
        self._model = model = curves(target)
        self._loss, self._rise = model.loss.ravel(), model.rise.ravel()
        self._sizes = model.size.ravel()
        self.evidence: list[RateObservation] = []
        self._least: list[float | None] = []
        self._concluded: dict[float, tuple[float, int, Floats]] = {}
        """The results of :meth:`_answers` for the evidence so far."""
        places = (round(log(least / _ORIGIN) / COARSE), round(log(most / _ORIGIN) / COARSE))
        in_bursts = np.repeat(_FLOORS, len(_FLOOR_SIZES_S)) * target
        floors = np.concatenate(([0.0], in_bursts))
        sizes = np.concatenate(([1e-3], np.tile(_FLOOR_SIZES_S, len(_FLOORS))))
        priors = np.concatenate(
            ([1 - _BURSTY_FLOOR - _CONSTANT_FLOOR], np.full(len(in_bursts), _BURSTY_FLOOR / len(in_bursts)))
        )
        self._chance = _cells(model, target, places, floors, sizes, priors)
        always = np.array(_CONSTANT) * constant if constant > 1e-6 else np.zeros(0)
        prior = np.full(len(always), _CONSTANT_FLOOR / max(len(always), 1))
        self._always = _cells(model, target, places, always, np.zeros(len(always)), prior)

    # --- evidence ------------------------------------------------------------------------------------------------

    def add(self, evidence: RateObservation, *, far: bool = False) -> None:
        """Adds the loss of a step; of a step ``far`` above R only that it lost much."""
        much = _FAR * self._target * evidence.seconds
        least = much if far and evidence.lost_s > much else None
        self.evidence.append(evidence)
        self._least.append(least)
        where = np.array(_fine(evidence.rate))
        for cells, always in ((self._chance, False), (self._always, True)):
            cells.log_p += self._log_likelihood(cells, where, evidence, evidence.lost_s, least, always=always)
        self._concluded.clear()
        top = max(float(cells.log_p.max(initial=-np.inf)) for cells in (self._chance, self._always))
        self._chance.log_p -= top
        self._always.log_p -= top
        self._chance, self._always = (_pruned(cells) for cells in (self._chance, self._always))

    def _at(self, cells: _Cells, where: npt.NDArray[np.int64]) -> tuple[Singles, Singles, Singles]:
        """g, its rise and the burst size of each cell at a place (or places, broadcast)."""
        index = np.clip(where - cells.k + REACH, 0, 2 * REACH) + cells.row
        return self._loss[index], self._rise[index], self._sizes[index * len(SIZES_S) + cells.size]

    def _log_likelihood(
        self,
        cells: _Cells,
        where: npt.NDArray[np.int64],
        step: RateObservation,
        lost_s: float,
        least: float | None,
        *,
        always: bool,
    ) -> Singles:
        """Log-likelihood of ``lost_s`` of a step in each cell, or of at least ``least``; see the module."""
        seconds, copy_s = step.seconds, np.float32(step.copy_s)
        if least is None and lost_s > _OVERLOAD * seconds:
            least = _OVERLOAD * seconds
        g, rise, size = self._at(cells, where)
        f, s = cells.floor, np.float32(seconds)
        if not always:
            loss = g + f
            mean = (g * size + f * cells.floor_size) / loss + _spread(loss, rise, s) + copy_s
            a = loss * s / mean
            if least is not None:
                return _at_least(a, least / mean)
            return _log_density(a, np.float32(lost_s) / mean, mean) if lost_s else np.negative(a)
        # The floor is always there: the loss above it is caused by the rate.
        mean = size + _spread(g, rise, s) + copy_s
        a = g * s / mean
        steady = f * s
        sd = np.sqrt((_OWN * steady) ** 2 + steady * copy_s) + np.float32(_EXACT) * s
        if least is not None:
            by_floor = log_ndtr((steady - np.float32(least)) / sd)
            by_bursts = _at_least(a, np.maximum(least - steady, 0) / mean)
            return np.asarray(np.minimum(np.logaddexp(by_floor, by_bursts), 0), dtype=np.float32)
        beyond = np.float32(lost_s) - steady
        scale = np.log(np.float32(2.5066) * sd)
        alone = -a - 0.5 * (beyond / sd) ** 2
        more = _log_density(a, np.maximum(beyond, 0.3 * sd) / mean, mean) + scale
        both: Singles = np.where(beyond > 0, np.logaddexp(alone, more), alone) - scale
        return np.asarray(np.maximum(both, np.float32(-600.0)), dtype=np.float32)

    # --- answers -------------------------------------------------------------------------------------------------

    def _weights(self, cells: _Cells, temper: float) -> Floats:
        log_p = cells.log_p if temper == 1 else cells.log_prior + temper * (cells.log_p - cells.log_prior)
        return np.asarray(np.exp(log_p), dtype=np.float64)

    def _both(self, temper: float) -> Floats:
        """The weights of all cells; the sum of each kind of curve is not tempered, as it needs no allowed bursts."""
        full = np.concatenate([self._weights(cells, 1.0) for cells in (self._chance, self._always)])
        if temper == 1:
            return full
        weight = np.concatenate([self._weights(cells, temper) for cells in (self._chance, self._always)])
        width = self._model.loss.shape[1]
        kind = np.concatenate([self._model.kind[cells.row // width] for cells in (self._chance, self._always)])
        of_kind = np.bincount(kind, weight)
        times = np.divide(np.bincount(kind, full), of_kind, out=np.zeros_like(of_kind), where=of_kind > 0)
        return np.asarray(weight * times[kind], dtype=np.float64)

    def _answers(self, temper: float) -> tuple[float, int, Floats]:
        """The probability that no rate holds; the first place of R, and the probability of each place from there."""
        if temper not in self._concluded:
            self._concluded[temper] = self._summed(temper)
        return self._concluded[temper]

    def _summed(self, temper: float) -> tuple[float, int, Floats]:
        answer = np.concatenate((self._chance.answer, self._always.answer))
        weight = self._both(temper)
        weight /= weight.sum()
        holds = answer != _NEVER
        if not holds.any():
            return 1.0, 0, np.ones(1)
        first = int(answer[holds].min())
        masses = np.asarray(np.bincount(answer[holds] - first, weight[holds]), dtype=np.float64)
        return float(1 - masses.sum()), first, masses

    def quantiles(self, at: Sequence[float], temper: float = 1.0) -> Floats:
        """Quantiles of R, messages/s, given that a rate holds."""
        _, first, masses = self._answers(temper)
        # The grid's width is added: without it, 10 % of the figures in steep worlds were wrong instead of 4 %.
        sd = sqrt(BETWEEN_RUNS**2 + (COARSE / 2) ** 2 / 3)
        reach = int(4 * sd / FINE) + 1
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * FINE / sd) ** 2)
        sums = np.cumsum(np.convolve(masses, kernel))
        logs = (np.arange(len(sums)) + first - reach) * FINE
        return np.asarray(_ORIGIN * np.exp(np.interp(at, sums / sums[-1], logs)))

    def interval(self, temper: float = 1.0) -> CredibleInterval:
        """The figure and its 95 % confidence interval, in messages/s."""
        low, figure, high = self.quantiles((0.025, 0.5, 0.975), temper)
        return CredibleInterval(float(low), float(figure), float(high))

    def none_holds(self) -> float:
        """The probability that no rate holds."""
        return self._answers(1.0)[0]

    def floor(self) -> float:
        """The probability that every rate loses something."""
        weights = [self._weights(cells, 1.0) for cells in (self._chance, self._always)]
        return float((weights[0][self._chance.floor > 0].sum() + weights[1].sum()) / sum(w.sum() for w in weights))

    def burst_s(self) -> float:
        """The mean size of a burst at R, seconds of traffic."""
        total = weighted = 0.0
        for cells in (self._chance, self._always):
            weight = self._weights(cells, 1.0)
            size = self._at(cells, cells.k.astype(np.int64))[2]
            total += float(weight.sum())
            # The loss at a jump is no measure of bursts.
            jump = cells.row >= (len(self._model.loss) - self._model.cliffs) * self._model.loss.shape[1]
            weighted += float((weight * np.where(jump, 0.01, size)).sum())
        return weighted / total

    def over(self, rates: Floats, seconds: float) -> Floats:
        """The probability that a step of each rate loses more than the target."""
        weights = [self._weights(cells, 1.0) for cells in (self._chance, self._always)]
        found, total = np.zeros(len(rates)), 0.0
        where = np.array([_fine(rate) for rate in rates])[:, None]
        for cells, weight in zip((self._chance, self._always), weights, strict=True):
            top = np.argsort(-weight)[:_LIKELY]
            cells, weight = cells.kept(top), weight[top]
            g, rise, size = self._at(cells, where)
            f = cells.floor
            mean = size + _spread(g, rise, np.float32(seconds))
            allowed = self._target * seconds
            sd = np.sqrt(2 * mean * g * seconds + (_OWN * f * seconds) ** 2 + 1e-12)
            by_burst = -np.expm1(-g * seconds / mean)
            share = np.where(mean > allowed, by_burst, ndtr(((g + f) * seconds - allowed) / sd))
            found += share @ weight
            total += float(weight.sum())
        return found / total

    def surprise(self, evidence: RateObservation, within: CredibleInterval, temper: float) -> float:
        """The probability that a step loses as much as it did or more, if R is within an interval."""
        if not evidence.lost_s:
            return 1.0
        where = np.array(_fine(evidence.rate))
        low, high = _fine(within.low), _fine(within.high)
        found = total = 0.0
        for cells, always in ((self._chance, False), (self._always, True)):
            cells = cells.kept((cells.answer >= low) & (cells.answer <= high))
            weight = self._weights(cells, temper)
            log_p = self._log_likelihood(cells, where, evidence, 0.0, evidence.lost_s, always=always)
            found += float((weight * np.exp(log_p)).sum())
            total += float(weight.sum())
        return found / total if total else 1.0

    def changing(self) -> float:
        """The probability that ln R changed by more than a quarter during the search."""
        times = np.array([e.at_s for e in self.evidence])
        since = (times - times[0]) / max(float(times[-1] - times[0]), 1e-9)
        even, early = np.array(_DRIFTS), np.array(_EARLY)
        prior = np.concatenate((0.9 * np.exp(-0.5 * (even / _USUAL_DRIFT) ** 2) + 0.1 / 3, np.full(len(early), 0.02)))
        sums = []
        for cells, always in ((self._chance, False), (self._always, True)):
            if len(cells.k) == 0:
                continue
            cells = cells.kept(np.argsort(-cells.log_p)[:_TREND_CELLS])
            log_p = np.tile(cells.log_prior, (len(prior), 1)).astype(np.float64)
            for e, least, x in zip(self.evidence, self._least, since, strict=True):
                shift = np.concatenate((-even * (x - 0.5), early * exp(-5 * x)))
                where = np.round((log(e.rate / _ORIGIN) + shift) / FINE).astype(np.int64)[:, None]
                log_p += self._log_likelihood(cells, where, e, e.lost_s, least, always=always)
            sums.append(np.logaddexp.reduce(log_p, axis=1))
        evidence = np.logaddexp.reduce(sums, axis=0)
        p = prior * np.exp(evidence - evidence.max())
        large = np.abs(np.concatenate((even, early))) > _LARGE_DRIFT
        return float(p[large].sum() / p.sum())

    def temper(self) -> float:
        """The exponent η of the module's docstring."""
        seconds = sum(e.seconds for e in self.evidence)
        allowed = self._target * seconds / self.burst_s()
        return min(1.0, max(_LEAST_TEMPER, allowed / FEW_BURSTS))


def _pruned(cells: _Cells) -> _Cells:
    keep = cells.log_p > _PRUNED
    return cells if keep.all() else cells.kept(keep)


def _spread(loss: Singles, rise: Singles, seconds: np.float32) -> Singles:
    """The increase of the burst size that allows for curves that are not exact."""
    elasticity = np.minimum(rise / loss, _STEEPEST)
    spread: Singles = loss * (seconds / 2) * (np.float32(_OWN**2) + np.float32(_SHIFT**2) * elasticity * elasticity)
    return spread


def _log_density(a: Singles, b: Singles, mean: Singles) -> Singles:
    z = 2 * np.sqrt(a * b)
    density: Singles = z - a - b + np.log(a / mean) - np.float32(1.5) * np.log1p(np.float32(1.1624) * z)
    return density


def _at_least(a: Singles, b: Singles) -> Singles:
    """Log of the probability of at least this loss: that of any loss, times a Chernoff bound of the rest."""
    beyond = np.maximum(np.sqrt(b) - np.sqrt(a), 0)
    chance: Singles = np.log(-np.expm1(-a) + np.float32(1e-12)) - beyond * beyond
    return chance
