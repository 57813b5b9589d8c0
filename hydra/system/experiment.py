"""A published experiment: which runs repeat it, and how their figures stand beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from hydra.measure.column import Column
from hydra.model import Figure, Scenario, number

Row = Mapping[str, Figure]

FEWEST_RECORDS: Final = 1000
"""Below which no scale brings a published number of records: fewer measure nothing but the beginning."""
PUBLISHED: Final = "_published"
RATIO: Final = "_ratio"
"""Suffixes of the columns beside a measured one: the published figure, and measured over published."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """What the user asked for.

    Attributes:
        scale: multiplies the published numbers of records and lengths; 1 is the original.
        options: the experiment's own (``Experiment.options``) by name; those that were not given are absent.
        hosts: how many hosts the cluster has.
    """

    scale: float
    options: Mapping[str, Any] = field(default_factory=dict)
    hosts: int = 1

    def records(self, published: int) -> int:
        """A published number of records at this scale."""
        return max(round(published * self.scale), min(published, FEWEST_RECORDS))


@dataclass(frozen=True, slots=True)
class ExperimentPart:
    """One run of an experiment: its name, which is that of its folder, and its scenario as a file would have it."""

    name: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PartResult:
    """A part that was run.

    Attributes:
        part: what was asked for.
        scenario: what was run: with the user's flags.
        rows: its table.
        publishers: of each row, what each of its publishers did: the figures of
            ``store.client_rows.client_figures``, its ``agent``, and ``began_ns``, when its data began (ns since 1970).
        subscribers: of each row, what each of its subscribers did, likewise.
        servers: of each row, what each server did: figures by name (``System.server_counters`` as rates).
        reason: why it could not be run; "": it was.
    """

    part: ExperimentPart
    scenario: Scenario
    rows: Sequence[Row]
    publishers: Sequence[Sequence[Row]] = ()
    subscribers: Sequence[Sequence[Row]] = ()
    servers: Sequence[Mapping[str, Row]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentTable:
    """A table of an experiment: measured beside published.

    ``x`` and ``y`` name the columns of its picture, ``marks`` the vertical lines in it by their text.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    x: str = ""
    y: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


Parts = Callable[[ExperimentOptions], Sequence[ExperimentPart]]
"""All parts of an experiment, where they are known before anything is measured."""


def in_turn(parts: Parts) -> Callable[[ExperimentOptions, Sequence[PartResult]], ExperimentPart | None]:
    """``Experiment.next_part`` of an experiment whose parts are known before: each in its turn."""

    def next_part(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
        finished = {each.part.name for each in done}
        return next((part for part in parts(order) if part.name not in finished), None)

    return next_part


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """An experiment as it was published.

    Attributes:
        name: by which it is called.
        title: one line for lists.
        source: who published it, and when.
        scale: the scale unless the user says otherwise: it takes less than three minutes on two cores.
        takes_s: about how long that is, on two cores.
        next_part: the run after those that are done, None when there is none. Pure and repeatable: an experiment that
            was interrupted goes on by asking again. ``in_turn`` makes it of ``parts``.
        views: its tables, from what has been done so far.
        parts: all of them, where they are known before anything is measured.
        options: flags of its own (click options): an order has the values of those that were given.
        lines: what is printed after the tables for scripts that parse it, line by line.
    """

    name: str
    title: str
    source: str
    scale: float
    takes_s: float
    next_part: Callable[[ExperimentOptions, Sequence[PartResult]], ExperimentPart | None]
    views: Callable[[ExperimentOptions, Sequence[PartResult]], Sequence[ExperimentTable]]
    parts: Parts | None = None
    options: Sequence[click.Option] = ()
    lines: Callable[[Sequence[PartResult]], Sequence[str]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings for one design goal: values by dotted key of the scenario, each with the reason."""

    about: str
    values: Mapping[str, tuple[Figure, str]]


def beside(columns: Sequence[Column]) -> list[Column]:
    """The columns of figures, each with its published one and the ratio behind it."""
    return [
        each
        for column in columns
        for each in (
            column,
            Column(f"{column.name}{PUBLISHED}", column.unit, "as it was published", "published", column.digits),
            Column(f"{column.name}{RATIO}", "", "measured / published", "ratio"),
        )
    ]


def with_published(measured: Row, published: Row | None, figures: Sequence[str]) -> dict[str, Figure]:
    """A measured row with the published figures and the ratios behind them.

    Args:
        measured: figures by name.
        published: those of the published row with the same keys; None: there is none.
        figures: which of them were published at all.
    """
    row = dict(measured)
    for name in figures:
        theirs = (published or {}).get(name)
        row[f"{name}{PUBLISHED}"] = theirs
        row[f"{name}{RATIO}"] = ratio(measured.get(name), theirs)
    return row


def ratio(measured: Figure, published: Figure) -> float | None:
    """Measured over published; None where either is unknown or the published one is 0."""
    ours, theirs = number(measured), number(published)
    return ours / theirs if ours is not None and theirs else None
