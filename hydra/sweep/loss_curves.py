"""Forms that the loss may have around the searched rate, with the prior probability of each. Pure.

A curve is the mean share g over time that is lost at u = ln(rate / K), where g(0) is the target, and the size m of the
loss bursts (seconds of traffic). The curves are a rough grid over the behaviour of systems: loss that rises as a power
of the rate, loss above a capacity that varies, a capacity for a share of the time, the part of stalls that a buffer
does not absorb, an onset, a capacity that collapses, a cliff. The curves are made for no particular system; the steps
decide which curve holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Final

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


@cache
def curves(target: float) -> LossCurves:
    """The curves of a target (a fraction)."""
    u: Floats = np.arange(-REACH, REACH + 1, dtype=np.float64) * FINE
    losses: list[Floats] = []
    sizes: list[Floats] = []
    priors: list[Floats] = []
    kinds: list[str] = []
    by_chance = np.tile(SIZES_S, (len(u), 1))

    def add(kind: str, loss: Floats, size: Floats, prior: Floats) -> None:
        kinds.append(kind)
        losses.append(np.clip(loss, 1e-12, 1.0))
        sizes.append(size)
        priors.append(prior)

    def alike(prior: float, among: int = len(SIZES_S)) -> Floats:
        """The prior of the first ``among`` sizes."""
        return np.asarray(np.where(np.arange(len(SIZES_S)) < among, prior / among, 0.0), dtype=np.float64)

    def power(slope: float) -> Floats:
        times = np.exp(np.clip(slope * u, -40.0, 20.0))
        return np.asarray(-np.expm1(np.maximum(np.log1p(-target) * times, -50.0)))

    slope_prior = np.exp(-0.5 * (np.log(_SLOPES) - log(_USUAL_SLOPE)) ** 2)
    slope_prior[0] += _FLATTEST
    for slope, p in zip(_SLOPES, slope_prior / slope_prior.sum(), strict=True):
        add("power", power(slope), by_chance, _PRIOR["power"] * p * _SIZE_PRIOR)
    bent = [(slope, times) for slope in (0.4, 1.0, 2.2) for times in (4.0, 12.0)]
    for slope, times in bent:
        over = np.maximum(1 - times * np.exp(-u), 0.0)
        prior = _PRIOR["power, then capacity"] / len(bent) * _SIZE_PRIOR
        add("power, then capacity", np.minimum(power(slope) + over, 1.0), by_chance, prior)
    for jitter in _JITTERS:
        varies = _capacity(jitter)
        # Each period of low capacity, of 20 ms to 2 s, loses half a jitter of its traffic.
        size = np.tile(jitter / 2 * np.array([0.02, 0.2, 0.7, 2.0, 2.0, 2.0, 2.0]), (len(u), 1))
        add(
            "capacity",
            varies(u + _through_target(varies, target)),
            size,
            alike(_PRIOR["capacity"] / len(_JITTERS), _CONSTANT_SIZES),
        )
    steady = _capacity(0.02)
    for share, times in _PARTS:

        def two(x: Floats, share: float = share, times: float = times) -> Floats:
            return share * steady(x) + (1 - share) * np.maximum(1 - times * np.exp(-x), 0.0)

        shift = _through_target(two, target)
        size = _SHARES_S * np.maximum(steady(u + shift), 0.02)[:, None]
        among = _USUAL_PART if share > _RARE else _RARE_PART
        add("part", two(u + shift), size, alike(_PRIOR["part"] / len(_PARTS), among))
    for share in _BUFFERS:
        seen = np.maximum(1 - share * np.exp(-u), 0.0) / (1 - share)
        prior = _PRIOR["buffer"] / len(_BUFFERS) * _SIZE_PRIOR
        add("buffer", target * seen, np.maximum(seen, 0.02)[:, None] * SIZES_S, prior)
    above, at = u > _JUMP, np.abs(u) <= _JUMP
    for times in _ONSETS:
        h = min(times * target, 0.5)
        rising = h * np.exp(np.clip(2.5 * u, -5.0, 8.0))
        add(
            "onset",
            np.where(above, rising, np.where(at, 0.4 * h, 1e-9)),
            by_chance,
            _PRIOR["onset"] / len(_ONSETS) * _SIZE_PRIOR,
        )
    for share in _COLLAPSES:
        h = max(share, 2 * target) if target < _HALF else 1.0
        size = np.tile(np.where(at, 0.6 * h, 0.01)[:, None], (1, len(SIZES_S)))
        add(
            "collapse",
            np.where(above, 1 - (1 - h) * np.exp(-u), np.where(at, 0.4 * h, 1e-9)),
            size,
            alike(_PRIOR["collapse"] / len(_COLLAPSES)),
        )
    for times, m in _CLIFFS:
        h = max(min(times * target, 0.98), 2 * target) if target < _HALF else 1.0
        size = np.tile(np.where(at, 0.6 * h, m)[:, None], (1, len(SIZES_S)))
        add("cliff", np.where(above, h, np.where(at, 0.4 * h, 1e-9)), size, alike(_PRIOR["cliff"] / len(_CLIFFS)))
    cliffs = len(_COLLAPSES) + len(_CLIFFS)
    jumps = len(_ONSETS) + cliffs
    loss = np.array(losses)
    rise = np.gradient(loss, FINE, axis=1)
    # A jump has no slope: the posterior of K has its place.
    rise[-jumps:] = 0.0
    rise[-jumps:-cliffs] = np.where(at, 0.0, np.clip(2.5 * loss[-jumps:-cliffs], 0.0, 1.0))
    every = np.array(priors)
    return LossCurves(
        loss.astype(np.float32),
        rise.astype(np.float32),
        np.array(sizes).astype(np.float32),
        every / every.sum(),
        np.unique(kinds, return_inverse=True)[1],
        jumps,
        cliffs,
    )
