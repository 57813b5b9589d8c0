"""Sides whose repeats are drawn: what differs between runs, and what repeats share when they take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hydra.columns import Column
from hydra.columns.step import step_columns
from hydra.compare.sides import Repeat, Side, SideRow

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
    """

    run: float = 0.05
    block: float = 0.1
    shared: float = 0.5


def side(name: str, rows: Sequence[Sequence[Mapping[str, float | None]]]) -> Side:
    """A run with these figures: rows of repeats, for 10, 20, … clients."""
    its = [
        SideRow({"clients": 10 * (number + 1), "rate": "max"}, [Repeat(dict(figures)) for figures in repeats])
        for number, repeats in enumerate(rows)
    ]
    return Side(name, name, "some", its, COLUMNS, primary=("avg_rx_rate_pps",))


def drawn(
    rng: Generator, sides: int, repeats: int, noise: Noise, *,
    rows: int = 1, figures: Sequence[str] = SEVERAL[:1], factor: float = 1.0, turns: bool = True,
) -> list[Side]:  # fmt: skip
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
    of_figures = np.sqrt(1 - noise.shared) * rng.standard_normal(shape)
    values: NDArray[np.float64] = 1000 * np.exp(common + noise.run * (its_own + of_figures))
    values[1:] *= factor
    named = [[[dict(zip(figures, map(float, each), strict=True)) for each in row] for row in its] for its in values]
    return [side(f"run-{number}", its) for number, its in enumerate(named)]
