"""Throughput by the number of clients: three models, their ranges of validity, and the fit of a run. Pure.

The law (N. J. Gunther, Guerrilla Capacity Planning, 2007, ch. 4-6)

    X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1)),   λ > 0, σ ≥ 0, κ ≥ 0

makes the cost N / X a sum of non-negative terms, 1/λ + σ/λ (N − 1) + κ/λ N (N − 1), which
:mod:`hydra.analysis.nonnegative_fit` fits. If a capacity is reached suddenly (a link, a thread, the requested rate),
the curve has a knee at some K instead: N / X = a + b (N − 1) + c max(N − K, 0), and a plateau after it. A power of N
is fitted to the last counts only, for any form of the curve.

Near the measured counts the laws and knees that agree with the points are used. Farther away the form of the curve
has more effect than the noise, and the points show little of it: there the interval covers all three models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.analysis.nonnegative_fit import (
    NOISE,
    NOISE_WEIGHT,
    Array,
    accepted,
    agreeing,
    fit_terms,
    predict,
    terms_within,
)
from hydra.errors import UsageError

WIDEST: Final = 2.0
"""The largest ratio of upper to lower limit with which an interval can be used."""
FARTHEST: Final = 2.0
"""The multiple of the largest measured count above which a figure is an extrapolation, unless several models agree."""
UNKNOWN_OF_LAW: Final = 3
_UNKNOWN_OF_KNEE: Final = 4
"""Unknowns of a knee: its three terms and its place."""
_TAIL: Final = 4.0
"""The power of N is fitted to the counts down to the largest one divided by this number."""
_LEAST_TAIL: Final = 3


@dataclass(frozen=True, slots=True)
class ThroughputInterval:
    """An estimate (None: there is none) and its 95 % interval (``high`` None: there is no upper limit)."""

    estimate: float | None
    low: float
    high: float | None

    @property
    def usable(self) -> bool:
        """Whether the upper limit is at most twice the lower one."""
        return self.high is not None and self.high <= WIDEST * self.low


def law_design(counts: Array) -> Array:
    """The design (points, 3) of the law: how often each term of its cost occurs."""
    return np.stack([np.ones_like(counts), counts - 1, counts * (counts - 1)], axis=-1)


def knee_design(counts: Array, knee: float) -> Array:
    """The design (points, 3) of a knee."""
    return np.stack([np.ones_like(counts), counts - 1, np.maximum(counts - knee, 0)], axis=-1)


def knees(counts: Array) -> list[float]:
    """The possible places of a knee: every count except the first and the last, and the middles between counts."""
    logs = np.log(np.unique(counts))
    between = (logs[:-2] + logs[1:-1]) / 2
    return [float(k) for k in np.exp(np.sort(np.concatenate([logs[1:-1], between])))]


def throughputs_at(counts: Array, y: Array, targets: Array) -> list[ThroughputInterval]:
    """Predicts new measurements at other counts.

    Args:
        counts: (points,).
        y: (runs, points), the costs N / X of many runs at the same counts.
        targets: (runs,), the count to predict for each run.
    """
    at = np.concatenate([np.tile(counts, (len(targets), 1)), targets[:, None]], axis=1)
    law, bent = law_design(at), [knee_design(at, knee) for knee in knees(counts)]
    far = np.flatnonzero(targets > FARTHEST * counts.max())
    found = _of_costs(targets, [law, *bent], y, [UNKNOWN_OF_LAW, *[_UNKNOWN_OF_KNEE] * len(bent)])
    if far.size:
        each = [
            _of_costs(targets[far], [law[far]], y[far], [UNKNOWN_OF_LAW]),
            _of_costs(targets[far], [its[far] for its in bent], y[far], [_UNKNOWN_OF_KNEE] * len(bent)),
            _power(counts, y[far], targets[far]),
        ]
        for index, its in zip(far.tolist(), zip(*each, strict=True), strict=True):
            found[index] = _together(found[index], its)
    return found


def _together(best: ThroughputInterval, models: Sequence[ThroughputInterval]) -> ThroughputInterval:
    """The best estimate, with an interval that covers those of all models."""
    every = (best, *models)
    highs = [each.high for each in every if each.high is not None]
    return ThroughputInterval(
        best.estimate, min(each.low for each in every), max(highs) if len(highs) == len(every) else None
    )


def _of_costs(targets: Array, designs: Sequence[Array], y: Array, unknown: Sequence[int]) -> list[ThroughputInterval]:
    cost = predict(designs, y, unknown)
    limits = zip(targets.tolist(), cost.estimate.tolist(), cost.low.tolist(), cost.high.tolist(), strict=True)
    # The limits of the throughput are the inverses of those of its cost; a cost without limit is a throughput of 0.
    return [
        ThroughputInterval(n / estimate, n / high, n / low if low > 0 else None) for n, estimate, low, high in limits
    ]


def _power(counts: Array, y: Array, targets: Array) -> list[ThroughputInterval]:
    """Predicts by X = a Nᵖ from the last counts, with the prediction interval of a straight line of logarithms."""
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
    distance = np.log(targets) - middle
    half = stdtrit(freedom, 0.975) * spread * np.sqrt(1 + 1 / x.size + distance**2 / around)
    estimate = mean + slope * distance
    limits = zip(estimate.tolist(), (estimate - half).tolist(), (estimate + half).tolist(), strict=True)
    return [ThroughputInterval(*(float(np.exp(value)) for value in its)) for its in limits]


LEAST: Final = 6
"""The minimum number of different subscriber counts for a fit."""
LAW: Final = "universal scalability law"
KNEE: Final = "knee"

_GRID: Final = 240
"""The number of values of a parameter that are tried for its limits."""
_DRAWN: Final = 24
"""The number of points of a plot's curve."""


@dataclass(frozen=True, slots=True)
class ThroughputPrediction:
    """The throughput at ``clients``; ``beyond`` is ``clients`` as a multiple of the largest measured count."""

    clients: int
    throughput: ThroughputInterval
    beyond: float

    @property
    def extrapolated(self) -> bool:
        """Whether ``beyond`` is more than 2 and the models do not agree, so the figure cannot be used."""
        return self.beyond > FARTHEST and not self.throughput.usable


@dataclass(frozen=True, slots=True)
class ThroughputLaw:
    """The fitted throughput of a run.

    Attributes:
        counts, throughputs: the points, ascending by count.
        rate: λ, messages/s of one client alone.
        contention: σ.
        coherency: κ.
        peak: the count with the highest throughput, √((1 − σ)/κ); it has no estimate if κ is 0.
        scatter: standard deviation of the points around the law, as a share of the throughput.
        better: the model that fits better: ``LAW`` or ``KNEE``.
        knee: the subscriber count of the knee; None if the law fits better.
        predictions: predictions for the requested counts.
        curve: predictions from the smallest to the largest count, for a plot.
        held_out: the prediction for the largest measured count from the other points; None if these are too few.
        held_out_measured: the throughput measured there, the mean of the logarithms.
    """

    counts: tuple[int, ...]
    throughputs: tuple[float, ...]
    rate: ThroughputInterval
    contention: ThroughputInterval
    coherency: ThroughputInterval
    peak: ThroughputInterval
    scatter: float
    better: str
    knee: float | None
    predictions: tuple[ThroughputPrediction, ...]
    curve: tuple[ThroughputPrediction, ...]
    held_out: ThroughputPrediction | None
    held_out_measured: float | None

    @property
    def largest(self) -> int:
        """The largest measured count: where the evidence ends."""
        return self.counts[-1]


def fit(points: Sequence[tuple[int, float]], targets: Sequence[int] = ()) -> ThroughputLaw:
    """Fits the law to measured throughputs, and predicts other counts.

    Args:
        points: (clients, messages/s of all together); a count occurs as often as it was measured.
        targets: subscriber counts to predict.

    Raises:
        UsageError: there are fewer than six different counts, or a value is not above 0.
    """
    points = sorted(points)
    enough(len({clients for clients, _ in points}), "subscriber counts")
    counts = np.array([clients for clients, _ in points], dtype=float)
    throughputs = np.array([throughput for _, throughput in points])
    different = sorted(set(counts.tolist()))
    if min(counts) < 1 or min(throughputs) <= 0:
        raise UsageError("a fit needs counts and rates above 0", "leave out the rows without any message")
    y, design = counts / throughputs, law_design(counts)
    found = fit_terms(design[None], y[None])
    freedom = len(y) - UNKNOWN_OF_LAW
    allowed = float(agreeing(found.squares, np.array([freedom]))[0])
    first, second, third = found.terms[0].tolist()
    most = [*targets, different[-1]]
    wide = np.unique(np.geomspace(different[0], max(most), _DRAWN).round()).astype(int)
    everything = _predictions(counts, y, [*targets, *wide.tolist()])
    tried = knees(counts)
    squares = fit_terms(np.stack([knee_design(counts, knee) for knee in tried]), np.tile(y, (len(tried), 1))).squares
    # The knee has one more unknown.
    bent = squares.min() / max(freedom - 1, 1) < found.squares[0] / freedom
    held_out, measured = _hold_out(counts, throughputs)
    return ThroughputLaw(
        counts=tuple(int(count) for count in counts),
        throughputs=tuple(float(x) for x in throughputs),
        rate=_rate(design, y, first, allowed),
        contention=_contention(counts, y, second / first if first > 0 else None, allowed),
        coherency=_coherency(counts, y, third / first if first > 0 else None, allowed),
        peak=_peak(counts, y, _at_peak(first, second, third), allowed),
        scatter=float(np.sqrt(found.squares[0] / freedom)),
        better=KNEE if bent else LAW,
        knee=float(tried[int(squares.argmin())]) if bent else None,
        predictions=everything[: len(targets)],
        curve=everything[len(targets) :],
        held_out=held_out,
        held_out_measured=measured,
    )


def throughputs_of(law: ThroughputLaw, targets: Sequence[int]) -> tuple[ThroughputPrediction, ...]:
    """The throughput that a fitted run predicts for further counts."""
    counts = np.array(law.counts, dtype=float)
    return _predictions(counts, counts / np.array(law.throughputs), targets)


def enough(count: int, of: str) -> None:
    """Checks that there are enough counts for a fit.

    Raises:
        UsageError: there are fewer than six.
    """
    if count < LEAST:
        raise UsageError(
            f"{count} different {of} are too few for a fit, which has three unknowns and an error estimate",
            f"measure at least {LEAST}",
        )


def _predictions(counts: Array, y: Array, targets: Sequence[int]) -> tuple[ThroughputPrediction, ...]:
    """The predictions for all counts, computed at once."""
    found = throughputs_at(counts, np.tile(y, (len(targets), 1)), np.array(targets, dtype=float))
    beyond = [clients / float(max(counts)) for clients in targets]
    return tuple(ThroughputPrediction(*each) for each in zip(map(int, targets), found, beyond, strict=True))


def _hold_out(counts: Array, throughputs: Array) -> tuple[ThroughputPrediction | None, float | None]:
    largest = counts.max()
    others = counts < largest
    if len(set(counts[others])) < LEAST:
        return None, None
    (prediction,) = _predictions(counts[others], (counts / throughputs)[others], [int(largest)])
    return prediction, float(np.exp(np.log(throughputs[~others]).mean()))


def _rate(design: Array, y: Array, first: float, allowed: float) -> ThroughputInterval:
    """The interval of λ, which is 1 / the first term."""
    low, high = terms_within(design, y, 0, allowed)
    return ThroughputInterval(
        1 / first if first > 0 else None, 0.0 if high is None else 1 / high, 1 / low if low > 0 else None
    )


def _contention(counts: Array, y: Array, estimate: float | None, allowed: float) -> ThroughputInterval:
    grid = np.geomspace(1e-7, 1e3, _GRID)
    first = 1 + grid[:, None] * (counts - 1)
    return _accepted(grid, np.stack([first, np.tile(counts * (counts - 1), (_GRID, 1))], axis=-1), y, estimate, allowed)


def _coherency(counts: Array, y: Array, estimate: float | None, allowed: float) -> ThroughputInterval:
    grid = np.geomspace(1e-6, 1e6, _GRID) / counts.max() ** 2
    first = 1 + grid[:, None] * counts * (counts - 1)
    return _accepted(grid, np.stack([first, np.tile(counts - 1, (_GRID, 1))], axis=-1), y, estimate, allowed)


def _peak(counts: Array, y: Array, estimate: float | None, allowed: float) -> ThroughputInterval:
    """The interval of the peak M: with κ = (1 − σ)/M² the cost is 1/λ ((1 − σ) (1 + N (N − 1)/M²) + σ N)."""
    grid = np.geomspace(1, 100 * counts.max(), _GRID)
    first = 1 + counts * (counts - 1) / grid[:, None] ** 2
    return _accepted(grid, np.stack([first, np.tile(counts, (_GRID, 1))], axis=-1), y, estimate, allowed)


def _accepted(grid: Array, designs: Array, y: Array, estimate: float | None, allowed: float) -> ThroughputInterval:
    """The interval of the values of a grid with which the law still fits the points; open at the ends of the grid."""
    return ThroughputInterval(
        estimate, *accepted(grid, fit_terms(designs, np.tile(y, (len(grid), 1))).squares <= allowed)
    )


def _at_peak(first: float, second: float, third: float) -> float | None:
    """The peak √((1 − σ)/κ), at least 1; None if the throughput only grows."""
    if third <= 0:
        return None
    return float(max(np.sqrt(max(first - second, 0.0) / third), 1.0))
