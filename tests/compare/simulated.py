"""Sides whose repeats are drawn: what differs between runs, and what repeats share when they take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from hydra.analysis.compared_runs import ComparedRow, ComparedRun, RowRepeat
from hydra.measure.column import Column
from hydra.measure.step_result import step_columns
from hydra.model import number

COLUMNS: Mapping[str, Column] = {column.name: column for column in step_columns()}
SEVERAL = ("avg_rx_rate_pps", "aggregate_pps", "latency_p50_us", "latency_p99_us", "latency_p999_us", "publisher_cores")
"""The first is the primary figure."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations of logarithms.

    Attributes:
        run: of a repeat by itself: its processes, their places, its minute.
        block: of what the repeats of a block share: the machine's day.
        shared: the share of a repeat's own variance that all of its figures have in common.
        day: of what all repeats of a run share where runs did not take turns.
        slower: the share of launches that are 30 % slower than the others, all repeats of one launch.
        heavy: whether a repeat by itself has Student's distribution with 2 degrees of freedom.
    """

    run: float = 0.05
    block: float = 0.1
    shared: float = 0.5
    day: float = 0.0
    slower: float = 0.0
    heavy: bool = False


def side(name: str, rows: Sequence[Sequence[Mapping[str, float | None]]]) -> ComparedRun:
    """A run with these figures: rows of repeats, for 10, 20, … clients."""
    its = [
        ComparedRow({"clients": 10 * (place + 1), "rate": "max"}, [RowRepeat(dict(figures)) for figures in repeats])
        for place, repeats in enumerate(rows)
    ]
    return ComparedRun(name, name, "some", its, COLUMNS, primary=("avg_rx_rate_pps",))


def drawn(
    rng: Generator, sides: int, repeats: int, noise: Noise, *,
    rows: int = 1, figures: Sequence[str] = SEVERAL[:1], factor: float = 1.0, turns: bool = True,
) -> list[ComparedRun]:  # fmt: skip
    """Runs of the same thing.

    Args:
        rng: draws.
        sides: how many runs.
        repeats: of each row.
        noise: what spreads.
        rows: of each run.
        figures: of each repeat.
        factor: by which all figures of every run but the first are higher.
        turns: whether repeats of a number share their block.
    """
    shape = (sides, rows, repeats, len(figures))
    common = noise.block * rng.standard_normal((1, rows, repeats, 1)) if turns else 0.0
    its_own = np.sqrt(noise.shared) * rng.standard_normal((sides, rows, repeats, 1))
    of_figures = np.sqrt(1 - noise.shared) * (rng.standard_t(2, shape) if noise.heavy else rng.standard_normal(shape))
    day = 0.0 if turns else noise.day * rng.standard_normal((sides, 1, 1, 1))
    slower = 0.3 * (rng.random((sides, rows, repeats, 1)) < noise.slower)
    values: NDArray[np.float64] = 1000 * np.exp(common + day - slower + noise.run * (its_own + of_figures))
    values[1:] *= factor
    named = [[[dict(zip(figures, map(float, each), strict=True)) for each in row] for row in its] for its in values]
    return [side(f"run-{place}", its) for place, its in enumerate(named)]


def failing(its: ComparedRun, share: float) -> ComparedRun:
    """The same run, but that every repeat fails whose figure is among the slowest that there can be.

    Args:
        its: a run of one row, drawn with no noise but ``run`` and ``block``.
        share: of repeats that fail, 0 to 1.
    """
    (row,) = its.rows
    limit = 1000 * np.exp(np.hypot(Noise.run, Noise.block) * ndtri(share))
    figures = [(repeat, number(repeat.figures["avg_rx_rate_pps"]) or 0.0) for repeat in row.repeats]
    repeats = [RowRepeat({}, problem="it was too slow") if rate < limit else repeat for repeat, rate in figures]
    return replace(its, rows=[replace(row, repeats=repeats)])
