"""A run's throughput by its numbers of clients, fitted: the law of :mod:`hydra.analysis.models`, or a knee. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.analysis.constants import FARTHEST
from hydra.analysis.models import UNKNOWN_OF_LAW, Interval, knee_design, knees, law_design
from hydra.analysis.models import throughputs as throughputs_at
from hydra.analysis.nonnegative_fit import Array, accepted, agreeing, fitted, terms_within
from hydra.errors import UsageError

LEAST: Final = 6
"""Different client counts that a fit needs."""
LAW: Final = "universal scalability law"
KNEE: Final = "knee"

_GRID: Final = 240
"""Values of a parameter that are tried for its limits."""
_DRAWN: Final = 24
"""Points of the curve of a plot."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The throughput of ``clients``; ``beyond`` is how many times the largest measured count that is."""

    clients: int
    throughput: Interval
    beyond: float

    @property
    def extrapolated(self) -> bool:
        """Whether that is more than twice, and the models do not agree: there no figure is believed."""
        return self.beyond > FARTHEST and not self.throughput.usable


@dataclass(frozen=True, slots=True)
class Law:
    """A fit.

    Attributes:
        counts, throughputs: the points, ascending by count.
        rate: λ, messages/s of one client alone.
        contention: σ.
        coherency: κ.
        peak: the count with the highest throughput, √((1 − σ)/κ); no estimate where κ is 0.
        scatter: standard deviation of the points around the law, as a part of the throughput.
        better: the law that fits better: ``LAW`` or ``KNEE``.
        knee: where that one is; None: the law fits better.
        predictions: of the counts that were asked for.
        curve: of counts from the least to the largest of them all, for a plot.
        held_out: what the other points say of the largest measured count; None where they are too few for that.
        held_out_measured: the throughput that was measured there, the mean of the logarithms.
    """

    counts: tuple[int, ...]
    throughputs: tuple[float, ...]
    rate: Interval
    contention: Interval
    coherency: Interval
    peak: Interval
    scatter: float
    better: str
    knee: float | None
    predictions: tuple[Prediction, ...]
    curve: tuple[Prediction, ...]
    held_out: Prediction | None
    held_out_measured: float | None

    @property
    def largest(self) -> int:
        """The largest measured count: where the evidence ends."""
        return self.counts[-1]


def fit(points: Sequence[tuple[int, float]], asked: Sequence[int] = ()) -> Law:
    """The law of measured throughputs, and what it says of other counts.

    Args:
        points: (clients, messages/s of all together), a count as often as it was measured.
        asked: client counts to predict.

    Raises:
        UsageError: they are fewer than six different counts, or something was not above 0.
    """
    points = sorted(points)
    enough(len({clients for clients, _ in points}), "client counts")
    counts = np.array([clients for clients, _ in points], dtype=float)
    throughputs = np.array([throughput for _, throughput in points])
    different = sorted(set(counts.tolist()))
    if min(counts) < 1 or min(throughputs) <= 0:
        raise UsageError("a fit needs counts and rates above 0", "leave out the rows without any message")
    y, design = counts / throughputs, law_design(counts)
    found = fitted(design[None], y[None])
    freedom = len(y) - UNKNOWN_OF_LAW
    allowed = float(agreeing(found.squares, np.array([freedom]))[0])
    first, second, third = found.terms[0].tolist()
    most = [*asked, different[-1]]
    wide = np.unique(np.geomspace(different[0], max(most), _DRAWN).round()).astype(int)
    everything = _predictions(counts, y, [*asked, *wide.tolist()])
    tried = knees(counts)
    squares = fitted(np.stack([knee_design(counts, knee) for knee in tried]), np.tile(y, (len(tried), 1))).squares
    # The knee has one unknown more.
    bent = squares.min() / max(freedom - 1, 1) < found.squares[0] / freedom
    held_out, measured = _hold_out(counts, throughputs)
    return Law(
        counts=tuple(int(count) for count in counts),
        throughputs=tuple(float(x) for x in throughputs),
        rate=_rate(design, y, first, allowed),
        contention=_contention(counts, y, second / first if first > 0 else None, allowed),
        coherency=_coherency(counts, y, third / first if first > 0 else None, allowed),
        peak=_peak(counts, y, _at_peak(first, second, third), allowed),
        scatter=float(np.sqrt(found.squares[0] / freedom)),
        better=KNEE if bent else LAW,
        knee=float(tried[int(squares.argmin())]) if bent else None,
        predictions=everything[: len(asked)],
        curve=everything[len(asked) :],
        held_out=held_out,
        held_out_measured=measured,
    )


def enough(count: int, of: str) -> None:
    """Refuses what is too little for a fit.

    Raises:
        UsageError: there are fewer than six.
    """
    if count < LEAST:
        raise UsageError(
            f"{count} different {of} are too few for a fit, which has three unknowns and says how wrong it may be",
            f"measure at least {LEAST}",
        )


def _predictions(counts: Array, y: Array, asked: Sequence[int]) -> tuple[Prediction, ...]:
    """All of them at once."""
    found = throughputs_at(counts, np.tile(y, (len(asked), 1)), np.array(asked, dtype=float))
    beyond = [clients / float(max(counts)) for clients in asked]
    return tuple(Prediction(*each) for each in zip(map(int, asked), found, beyond, strict=True))


def _hold_out(counts: Array, throughputs: Array) -> tuple[Prediction | None, float | None]:
    largest = counts.max()
    others = counts < largest
    if len(set(counts[others])) < LEAST:
        return None, None
    (prediction,) = _predictions(counts[others], (counts / throughputs)[others], [int(largest)])
    return prediction, float(np.exp(np.log(throughputs[~others]).mean()))


def _rate(design: Array, y: Array, first: float, allowed: float) -> Interval:
    """λ is one over the first term."""
    low, high = terms_within(design, y, 0, allowed)
    return Interval(1 / first if first > 0 else None, 0.0 if high is None else 1 / high, 1 / low if low > 0 else None)


def _contention(counts: Array, y: Array, estimate: float | None, allowed: float) -> Interval:
    grid = np.geomspace(1e-7, 1e3, _GRID)
    first = 1 + grid[:, None] * (counts - 1)
    return _accepted(grid, np.stack([first, np.tile(counts * (counts - 1), (_GRID, 1))], axis=-1), y, estimate, allowed)


def _coherency(counts: Array, y: Array, estimate: float | None, allowed: float) -> Interval:
    grid = np.geomspace(1e-6, 1e6, _GRID) / counts.max() ** 2
    first = 1 + grid[:, None] * counts * (counts - 1)
    return _accepted(grid, np.stack([first, np.tile(counts - 1, (_GRID, 1))], axis=-1), y, estimate, allowed)


def _peak(counts: Array, y: Array, estimate: float | None, allowed: float) -> Interval:
    """With κ = (1 − σ)/M² the cost is 1/λ ((1 − σ) (1 + N (N − 1)/M²) + σ N)."""
    grid = np.geomspace(1, 100 * counts.max(), _GRID)
    first = 1 + counts * (counts - 1) / grid[:, None] ** 2
    return _accepted(grid, np.stack([first, np.tile(counts, (_GRID, 1))], axis=-1), y, estimate, allowed)


def _accepted(grid: Array, designs: Array, y: Array, estimate: float | None, allowed: float) -> Interval:
    """The values of a grid at which the rest of the law still fits the points; beyond its ends it is open."""
    return Interval(estimate, *accepted(grid, fitted(designs, np.tile(y, (len(grid), 1))).squares <= allowed))


def _at_peak(first: float, second: float, third: float) -> float | None:
    """√((1 − σ)/κ), at least 1; None where the throughput only grows."""
    if third <= 0:
        return None
    return float(max(np.sqrt(max(first - second, 0.0) / third), 1.0))
