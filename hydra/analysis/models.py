"""What can be said of throughput by the number of clients: three models, and how far each is believed. Pure.

The law (N. J. Gunther, Guerrilla Capacity Planning, 2007, ch. 4-6)

    X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1)),   λ > 0, σ ≥ 0, κ ≥ 0

says of the cost N / X that it is a sum of terms that are not negative, 1/λ + σ/λ (N − 1) + κ/λ N (N − 1), which is
what :mod:`hydra.analysis.nonnegative_fit` fits. What reaches a capacity all at once (a link, a thread, the rate that
was asked for) has a knee at some K instead: N / X = a + b (N − 1) + c max(N − K, 0), and a plateau behind it. A power
of N is what the last counts alone say, whatever the form of the curve.

Near the measured counts the law or the knee is believed, whichever agrees with the points. Farther away the form of
the curve decides more than the noise does, and the points say little of it: there the interval is that of all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.analysis.constants import FARTHEST, WIDEST
from hydra.analysis.nonnegative_fit import NOISE, NOISE_WEIGHT, Array, predicted

UNKNOWN_OF_LAW: Final = 3
_UNKNOWN_OF_KNEE: Final = 4
"""Its three terms and where it is."""
_TAIL: Final = 4.0
"""A power of N is that of the counts from the largest one down to this part of it."""
_LEAST_TAIL: Final = 3


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its 95 % interval. ``high`` None: the points set no upper limit; ``estimate`` None: none."""

    estimate: float | None
    low: float
    high: float | None

    @property
    def usable(self) -> bool:
        """Whether the upper limit is at most twice the lower."""
        return self.high is not None and self.high <= WIDEST * self.low


def law_design(counts: Array) -> Array:
    """How often each term of the law's cost occurs (points, 3)."""
    return np.stack([np.ones_like(counts), counts - 1, counts * (counts - 1)], axis=-1)


def knee_design(counts: Array, knee: float) -> Array:
    """The same of a knee."""
    return np.stack([np.ones_like(counts), counts - 1, np.maximum(counts - knee, 0)], axis=-1)


def knees(counts: Array) -> list[float]:
    """Where a knee is looked for: at every count but the first and the last, and half-way between them."""
    logs = np.log(np.unique(counts))
    between = (logs[:-2] + logs[1:-1]) / 2
    return [float(k) for k in np.exp(np.sort(np.concatenate([logs[1:-1], between])))]


def throughputs(counts: Array, y: Array, asked: Array) -> list[Interval]:
    """What a new measurement of other counts will be.

    Args:
        counts: (points,).
        y: (runs, points), the costs N / X of many runs at the same counts.
        asked: (runs,), the count that is asked of each.
    """
    at = np.concatenate([np.tile(counts, (len(asked), 1)), asked[:, None]], axis=1)
    law, bent = law_design(at), [knee_design(at, knee) for knee in knees(counts)]
    far = np.flatnonzero(asked > FARTHEST * counts.max())
    found = _of_costs(asked, [law, *bent], y, [UNKNOWN_OF_LAW, *[_UNKNOWN_OF_KNEE] * len(bent)])
    if far.size:
        each = [
            _of_costs(asked[far], [law[far]], y[far], [UNKNOWN_OF_LAW]),
            _of_costs(asked[far], [its[far] for its in bent], y[far], [_UNKNOWN_OF_KNEE] * len(bent)),
            _power(counts, y[far], asked[far]),
        ]
        for index, its in zip(far.tolist(), zip(*each, strict=True), strict=True):
            found[index] = _together(found[index], its)
    return found


def _together(best: Interval, models: Sequence[Interval]) -> Interval:
    """The estimate of the best, within what any model holds for possible."""
    every = (best, *models)
    highs = [each.high for each in every if each.high is not None]
    return Interval(best.estimate, min(each.low for each in every), max(highs) if len(highs) == len(every) else None)


def _of_costs(asked: Array, designs: Sequence[Array], y: Array, unknown: Sequence[int]) -> list[Interval]:
    cost = predicted(designs, y, unknown)
    limits = zip(asked.tolist(), cost.estimate.tolist(), cost.low.tolist(), cost.high.tolist(), strict=True)
    # The limits of the throughput are those of its cost, the other way round: an endless cost is a throughput of 0.
    return [Interval(n / estimate, n / high, n / low if low > 0 else None) for n, estimate, low, high in limits]


def _power(counts: Array, y: Array, asked: Array) -> list[Interval]:
    """By X = a Nᵖ, through the logarithms of the last counts: the prediction interval of a straight line."""
    from scipy.special import stdtrit  # it takes a third of a second: only who fits waits for it

    different = np.unique(counts)
    tail = counts >= min(different[-1] / _TAIL, different[-_LEAST_TAIL])
    x, values = np.log(counts[tail]), np.log(counts[tail] / y[:, tail])
    middle, mean = x.mean(), values.mean(axis=1)
    around = float(((x - middle) ** 2).sum())
    slope = (values - mean[:, None]) @ (x - middle) / around
    squares = ((values - mean[:, None] - slope[:, None] * (x - middle)) ** 2).sum(axis=1)
    freedom = x.size - 2 + NOISE_WEIGHT
    spread = np.sqrt((squares + NOISE_WEIGHT * NOISE**2) / freedom)
    away = np.log(asked) - middle
    half = stdtrit(freedom, 0.975) * spread * np.sqrt(1 + 1 / x.size + away**2 / around)
    estimate = mean + slope * away
    limits = zip(estimate.tolist(), (estimate - half).tolist(), (estimate + half).tolist(), strict=True)
    return [Interval(*(float(np.exp(value)) for value in its)) for its in limits]
