"""One line of the table: which figures are measured, how, and which goals they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

SECTIONS: Final = ("limits", "clients", "tools", "start", "memory", "growth")
"""The parts of the table, in their order: what the machine can do at all is measured first."""

Side = Callable[[], float | Sequence[float]]
"""One measurement: the values of the line's figures, in their order; a single value if the line has one figure."""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Goal:
    """The bound of a figure; of a line with two sides, the bound of the ratio of ours to bare."""

    bound: float
    is_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal(bound, is_least=True)


def at_most(bound: float) -> Goal:
    return Goal(bound, is_least=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a measurement.

    Attributes:
        unit: that of one side ("messages/s"), also if the goal is that of a ratio.
        goal: its bound.
        timed: whether other processes on the machine disturb it; counts and sizes are judged on a busy machine, too.
    """

    unit: str
    goal: Goal | None = None
    timed: bool = True


def nothing() -> str:
    return ""


def no_points() -> Points:
    return ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table.

    Attributes:
        section: its part of the table.
        name: what a reader sees.
        unit: unit of its first figure on one side ("messages/s", "s", "MB", "slope"); a ratio follows from ``bare``.
        goal: bound of the first figure.
        ours: one measurement of Hydra.
        bare: one measurement of the other side; None: the figure of ``ours`` itself is judged.
        how: how both sides are measured, in one sentence.
        also: further figures of the same measurements, in the order of the values behind the first.
        quick: whether ``--quick`` measures it: one line of each kind.
        pairs: pairs of measurements, twice as many if they do not decide; 3 above 480 clients.
        pair_s: how long one pair takes, for the expected time.
        lacks: what this machine lacks for it; "" if nothing.
        within: what runs as long as consecutive lines need it, such as a server.
        limit: the line that measures what the machine can do at all, in the unit of the first figure.
        points: (size, value) of the last measurement, for the plot of growth.
        timed: whether other processes disturb the first figure (:class:`Figure`).
    """

    section: str
    name: str
    unit: str
    goal: Goal | None
    ours: Side
    bare: Side | None
    how: str
    also: Sequence[Figure] = ()
    quick: bool = False
    pairs: int = 5
    pair_s: float = 8.0
    lacks: Callable[[], str] = nothing
    within: AbstractContextManager[object] = field(default_factory=nullcontext)
    limit: Line | None = None
    points: Callable[[], Points] = no_points
    timed: bool = True

    @property
    def figures(self) -> Sequence[Figure]:
        """All figures of a measurement."""
        return (Figure(self.unit, self.goal, self.timed), *self.also)
