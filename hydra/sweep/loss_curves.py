"""Forms that the loss may have around the searched rate, with the prior probability of each. Pure.

A curve is the mean share g over time that is lost at u = ln(rate / K), where g(0) is the target, and the size m of the
loss bursts (seconds of traffic). The curves are a rough grid over the behaviour of systems: loss that rises as a power
of the rate, loss above a capacity that varies, a capacity for a share of the time, the part of stalls that a buffer
does not absorb, an onset, a capacity that collapses, a cliff. The curves are made for no particular system; the steps
decide which curve holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

COARSE: Final = log(2) / 20
"""Distance of neighbouring K in logarithm."""
PER_COARSE: Final = 7
FINE: Final = COARSE / PER_COARSE
"""Distance of neighbouring places in logarithm; the logarithms of tried rates are multiples of 5 of them."""
REACH: Final = int(8 / FINE)
"""The most places between a rate and K; beyond, curves are constant."""
SIZES_S: Final = np.array([5e-6, 0.003, 0.02, 0.05, 0.12, 0.3, 0.7])
"""Burst sizes of curves whose bursts are random; the first is a loss without bursts."""
_SIZE_PRIOR: Final = np.array([0.16, 0.16, 0.18, 0.18, 0.18, 0.11, 0.03])
_SHARES_S: Final = np.array([0.002, 0.01, 0.05, 0.2, 0.6, 2.0, 6.0])
"""Burst sizes of curves whose bursts grow with the loss, per lost share: how long a period of low capacity lasts."""
_SLOPES: Final = (0.4, 0.7, 1.0, 1.5, 2.2, 3.3, 5.0, 8.0, 13.0, 22.0, 60.0)
_USUAL_SLOPE: Final = 5.0
_FLATTEST: Final = 0.003
"""The addition to the prior of the least slope: loss that hardly depends on the rate."""
_JITTERS: Final = (0.01, 0.03, 0.08, 0.16)
_PARTS: Final = ((0.5, 1.25), (0.5, 1.5), (0.2, 1.3), (0.05, 1.3), (0.05, 8.0))
"""The share of time at a capacity, and the factor by which the capacity is higher at other times."""
_BUFFERS: Final = (0.5, 0.75, 0.9)
"""The share of a stall that a buffer absorbs at the rate whose loss is the target; it absorbs nothing far above."""
_ONSETS: Final = (5.0, 14.0)
"""The loss just above an onset, in targets; it rises with the rate."""
_CLIFFS: Final = ((196.0, 0.01), (60.0, 0.03), (20.0, 0.01))
"""The loss above a cliff, in targets, and its burst size."""
_COLLAPSES: Final = (0.1, 0.25, 0.5)
"""The share of a capacity that is lost as soon as the rate exceeds it."""
_JUMP: Final = 0.035
"""Rates nearer than this to an onset or a cliff, in logarithm, have a loss between those below and above it."""
_PRIOR: Final = {
    "power": 0.60,
    "power, then capacity": 0.016,
    "capacity": 0.20,
    "part": 0.03,
    "buffer": 0.04,
    "onset": 0.03,
    "cliff": 0.05,
    "collapse": 0.02,
}
_CONSTANT_SIZES: Final = 4
"""A capacity that varies all the time has one of the first burst sizes, this many."""
_RARE: Final = 0.1
_USUAL_PART: Final = 7
_RARE_PART: Final = 5
"""The number of burst sizes of a capacity for a share of the time, and for a rare share."""
_HALF: Final = 0.45
"""If the target is at least this, the loss above a jump is 1."""


@dataclass(frozen=True, slots=True)
class LossCurves:
    """All curves, by (curve, place of the rate − place of K + REACH).

    Attributes:
        loss: the lost share g.
        rise: the derivative d g / d u.
        size: the burst size m in seconds of traffic, with the number of the size as a third axis.
        prior: the prior probability by (curve, burst size); 0 if a curve has no such size.
        kind: the number of the kind of each curve.
        jumps: the number of curves, at the end of the list, that jump at K.
        cliffs: the number of these, at the end of the list, whose loss hardly rises above K.
    """

    loss: Singles
    rise: Singles
    size: Singles
    prior: Floats
    kind: npt.NDArray[np.int64]
    jumps: int
    cliffs: int


def _capacity(jitter: float) -> Callable[[Floats], Floats]:
    """The mean of max(0, 1 − e^(jitter·z − x)), z standard normal: the loss at x = ln(rate / median capacity)."""

    def lost(x: Floats) -> Floats:
        free: Floats = ndtr(x / jitter) - np.exp(np.minimum(jitter**2 / 2 - x, 50.0)) * ndtr(x / jitter - jitter)
        return np.maximum(free, 0.0)

    return lost


def _through_target(curve: Callable[[Floats], Floats], target: float) -> float:
    """The x at which a rising curve passes the target."""
    return float(brentq(lambda x: float(curve(np.array([x]))[0]) - target, -4.0, 9.0))


class _Curve(NamedTuple):
    """One form: its loss by distance from K, its burst sizes by distance and number of the size, and their prior."""

    kind: str
    loss: Floats
    size: Floats
    prior: Floats


_U: Final[Floats] = np.arange(-REACH, REACH + 1, dtype=np.float64) * FINE
"""The distances from K in logarithm."""
_ABOVE: Final = _U > _JUMP
_AT: Final = np.abs(_U) <= _JUMP
_BY_CHANCE: Final = np.tile(SIZES_S, (len(_U), 1))
"""The burst sizes of a curve whose bursts are random."""


def _even_prior(kind: str, forms: int, sizes: int = len(SIZES_S)) -> Floats:
    """The prior of one of the forms of a kind that has each of the first ``sizes`` burst sizes as often."""
    prior = _PRIOR[kind] / forms
    return np.asarray(np.where(np.arange(len(SIZES_S)) < sizes, prior / sizes, 0.0), dtype=np.float64)


def _powers(target: float) -> Iterator[_Curve]:
    """Loss that rises as a power of the rate, some of it only up to a capacity."""

    def power(slope: float) -> Floats:
        times = np.exp(np.clip(slope * _U, -40.0, 20.0))
        return np.asarray(-np.expm1(np.maximum(np.log1p(-target) * times, -50.0)))

    slope_prior = np.exp(-0.5 * (np.log(_SLOPES) - log(_USUAL_SLOPE)) ** 2)
    slope_prior[0] += _FLATTEST
    for slope, p in zip(_SLOPES, slope_prior / slope_prior.sum(), strict=True):
        yield _Curve("power", power(slope), _BY_CHANCE, _PRIOR["power"] * p * _SIZE_PRIOR)
    kind, bent = "power, then capacity", [(slope, times) for slope in (0.4, 1.0, 2.2) for times in (4.0, 12.0)]
    for slope, times in bent:
        over = np.maximum(1 - times * np.exp(-_U), 0.0)
        yield _Curve(kind, np.minimum(power(slope) + over, 1.0), _BY_CHANCE, _PRIOR[kind] / len(bent) * _SIZE_PRIOR)


def _capacities(target: float) -> Iterator[_Curve]:
    """Loss above a capacity that varies all the time, or that is low for a share of the time."""
    for jitter in _JITTERS:
        varies = _capacity(jitter)
        # Each period of low capacity, of 20 ms to 2 s, loses half a jitter of its traffic.
        size = np.tile(jitter / 2 * np.array([0.02, 0.2, 0.7, 2.0, 2.0, 2.0, 2.0]), (len(_U), 1))
        loss = varies(_U + _through_target(varies, target))
        yield _Curve("capacity", loss, size, _even_prior("capacity", len(_JITTERS), _CONSTANT_SIZES))
    steady = _capacity(0.02)
    for share, times in _PARTS:

        def two(x: Floats, share: float = share, times: float = times) -> Floats:
            return share * steady(x) + (1 - share) * np.maximum(1 - times * np.exp(-x), 0.0)

        shift = _through_target(two, target)
        size = _SHARES_S * np.maximum(steady(_U + shift), 0.02)[:, None]
        sizes = _USUAL_PART if share > _RARE else _RARE_PART
        yield _Curve("part", two(_U + shift), size, _even_prior("part", len(_PARTS), sizes))


def _stalls(target: float) -> Iterator[_Curve]:
    """The part of stalls that a buffer does not absorb."""
    for share in _BUFFERS:
        seen = np.maximum(1 - share * np.exp(-_U), 0.0) / (1 - share)
        prior = _PRIOR["buffer"] / len(_BUFFERS) * _SIZE_PRIOR
        yield _Curve("buffer", target * seen, np.maximum(seen, 0.02)[:, None] * SIZES_S, prior)


def _onsets(target: float) -> Iterator[_Curve]:
    """Loss that begins with a jump at K, and rises with the rate."""
    for times in _ONSETS:
        h = min(times * target, 0.5)
        rising = h * np.exp(np.clip(2.5 * _U, -5.0, 8.0))
        yield _Curve("onset", _jump(rising, h), _BY_CHANCE, _PRIOR["onset"] / len(_ONSETS) * _SIZE_PRIOR)


def _collapses(target: float) -> Iterator[_Curve]:
    """A capacity of which a part is lost as soon as the rate exceeds it."""
    for share in _COLLAPSES:
        h = max(share, 2 * target) if target < _HALF else 1.0
        loss = _jump(1 - (1 - h) * np.exp(-_U), h)
        yield _Curve("collapse", loss, _jump_sizes(h, 0.01), _even_prior("collapse", len(_COLLAPSES)))


def _cliffs(target: float) -> Iterator[_Curve]:
    """Loss that jumps at K, and hardly rises above it."""
    for times, m in _CLIFFS:
        h = max(min(times * target, 0.98), 2 * target) if target < _HALF else 1.0
        yield _Curve("cliff", _jump(h, h), _jump_sizes(h, m), _even_prior("cliff", len(_CLIFFS)))


def _jump(above: Floats | float, h: float) -> Floats:
    """No loss below K, and this loss above it; ``h`` is the loss just above."""
    return np.where(_ABOVE, above, np.where(_AT, 0.4 * h, 1e-9))


def _jump_sizes(h: float, elsewhere_s: float) -> Floats:
    """The burst sizes of a curve that jumps: near K the rate is too high for a part of the time."""
    return np.tile(np.where(_AT, 0.6 * h, elsewhere_s)[:, None], (1, len(SIZES_S)))


@cache
def curves(target: float) -> LossCurves:
    """The curves of a target (a fraction)."""
    smooth = [*_powers(target), *_capacities(target), *_stalls(target)]
    flat = [*_collapses(target), *_cliffs(target)]
    jumping = [*_onsets(target), *flat]
    jumps, cliffs = len(jumping), len(flat)
    every = [*smooth, *jumping]
    loss = np.array([np.clip(curve.loss, 1e-12, 1.0) for curve in every])
    rise = np.gradient(loss, FINE, axis=1)
    # A jump has no slope: the posterior of K has its place.
    rise[-jumps:] = 0.0
    rise[-jumps:-cliffs] = np.where(_AT, 0.0, np.clip(2.5 * loss[-jumps:-cliffs], 0.0, 1.0))
    prior = np.array([curve.prior for curve in every])
    return LossCurves(
        loss.astype(np.float32),
        rise.astype(np.float32),
        np.array([curve.size for curve in every]).astype(np.float32),
        prior / prior.sum(),
        np.unique([curve.kind for curve in every], return_inverse=True)[1],
        jumps,
        cliffs,
    )
