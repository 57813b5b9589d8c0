"""Published experiments: the runs that repeat one, and tables that compare measured and published figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hydra.measure.column import NOT_CLEAN_WHY, TEXT, Column
from hydra.model import Figure, Scenario, number

if TYPE_CHECKING:
    import click

Row = Mapping[str, Figure]

FEWEST_RECORDS: Final = 1000
"""The smallest number of records at any scale: fewer would measure only the start of a transfer."""
WHY: Final = Column(NOT_CLEAN_WHY, TEXT, "why the row is not clean; empty if it is")
TROUBLE: Final = Column(
    "host_trouble", TEXT, "what the hosts of the row lacked, or what disturbed them; empty if nothing"
)
MARKING: Final = (WHY, TROUBLE)
"""Columns of any table with measured rows: rows with a text have a mark, and a note of the table has the text."""
PUBLISHED: Final = "_published"
RATIO: Final = "_ratio"
"""Suffixes of the columns for the published figure, and for measured / published."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """The options of an experiment that the user chose.

    Attributes:
        scale: factor for the published numbers of records and durations; 1 is the original.
        options: values of the experiment's own flags (``Experiment.options``) by name; flags that were not given are
            absent.
        hosts: number of hosts of the cluster.
    """

    scale: float
    options: Mapping[str, Any] = field(default_factory=dict)
    hosts: int = 1

    def records(self, published: int) -> int:
        """The number of records at this scale, for a published number."""
        return max(round(published * self.scale), min(published, FEWEST_RECORDS))


@dataclass(frozen=True, slots=True)
class ExperimentPart:
    """One run of an experiment: its name, which its folder has, too, and its scenario as the content of a file."""

    name: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of a part.

    Attributes:
        part: the part as the experiment defines it.
        scenario: the scenario that was run, with the user's flags.
        rows: the rows of its table.
        publishers: for each row, figures of each publisher: those of ``store.client_rows.client_figures``, its
            ``agent``, and ``began_ns``, the time of its first data (ns since 1970).
        subscribers: for each row, the same figures of each subscriber.
        servers: for each row, figures of each server by name (``System.server_counters`` as rates).
        reason: why the part could not be run; "" if it was run.
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
    """A table of an experiment, with measured and published figures.

    ``x`` and ``y`` name the columns of its plot; ``marks`` has the positions of vertical lines in the plot by their
    text.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    x: str = ""
    y: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


Parts = Callable[[ExperimentOptions], Sequence[ExperimentPart]]
"""A function that returns all parts of an experiment, if they are known before anything is measured."""


def in_turn(parts: Parts) -> Callable[[ExperimentOptions, Sequence[PartResult]], ExperimentPart | None]:
    """Makes ``Experiment.next_part`` from parts that are known before: they are run in order."""

    def next_part(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
        finished = {each.part.name for each in done}
        return next((part for part in parts(order) if part.name not in finished), None)

    return next_part


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A published experiment.

    Attributes:
        name: the experiment's name on the command line.
        title: one line for lists.
        source: its authors and year.
        scale: the default scale, with which it takes less than three minutes on two cores.
        takes_s: approximate duration at this scale on two cores, in seconds.
        next_part: returns the part after those that are done, None after the last one. The function is pure, so an
            interrupted experiment continues with the same call. ``in_turn`` makes it from ``parts``.
        views: makes the tables from the parts that are done.
        parts: returns all parts, if they are known before anything is measured.
        options: the experiment's own flags (click options); ``ExperimentOptions.options`` has the given values.
        lines: makes the lines that are printed after the tables for scripts that parse them.
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


def with_published_columns(columns: Sequence[Column]) -> list[Column]:
    """The columns, each followed by the columns of its published figure and of the ratio."""
    return [
        each
        for column in columns
        for each in (
            column,
            Column(f"{column.name}{PUBLISHED}", column.unit, "the published figure", "published", column.digits),
            Column(f"{column.name}{RATIO}", "", "measured / published", "ratio"),
        )
    ]


def with_published(measured: Row, published: Row | None, figures: Sequence[str]) -> dict[str, Figure]:
    """A measured row, extended by the published figures and the ratios.

    Args:
        measured: figures by name.
        published: the published row with the same keys; None: there is none.
        figures: names of the published figures.
    """
    row = dict(measured)
    for name in figures:
        published_value = (published or {}).get(name)
        row[f"{name}{PUBLISHED}"] = published_value
        row[f"{name}{RATIO}"] = ratio(measured.get(name), published_value)
    return row


def ratio(measured: Figure, published: Figure) -> float | None:
    """Measured / published; None if one is unknown, or the published one is 0."""
    measured_value, published_value = number(measured), number(published)
    return measured_value / published_value if measured_value is not None and published_value else None
