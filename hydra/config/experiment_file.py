"""The file of a published experiment: what each table and key of the TOML holds, and how the file is read.

Types distinguish expressions of ``hydra.experiments`` and texts with expressions from other texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from hydra.config.layers import read_toml
from hydra.config.validation import build, refusals_in
from hydra.errors import RefusedError
from hydra.measure.column import Digits

Expression = Annotated[str, "expression"]
Text = Annotated[str, "text"]
"""A text with expressions in braces."""
Values = Mapping[str, object]
"""Values by name; those that begin with ``=`` are expressions."""
Expressions = Mapping[str, Expression]

WARM_UP: Final = "warm-up"
"""The name of a part's warm-up row, which no table shows."""


def scenario_name(point: str) -> str:
    """The published scenario that a point belongs to: its name without the number of a run or a size."""
    return point.partition("/")[0]


@dataclass(frozen=True, slots=True)
class OptionEntry:
    """A flag of the experiment: a whole number, a number, or bytes, with the lowest and the highest value."""

    name: str
    metavar: str
    help: str
    kind: Literal["count", "number", "bytes"] = "count"
    least: int = 1
    most: int | None = None

    @property
    def flag(self) -> str:
        """The flag as users type it."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class SeriesEntry:
    """Points of a part, once for each combination of the values in ``each``, the last of which changes first."""

    points: tuple[Values, ...]
    each: Values = field(default_factory=dict)

    def belongs_to(self, scenarios: tuple[str, ...]) -> bool:
        """Whether the points are those of one of these published scenarios."""
        return any(scenario_name(str(point.get("name"))) in scenarios for point in self.points)


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One run, or one for each value in ``each``.

    Attributes:
        name: the part's name, a text.
        about: its description behind the experiment's source, a text.
        series: its points in order.
        each: lists of values by name.
        scenario: keys of its scenario, in addition to the experiment's; a table stands in place of the experiment's.
        settings: settings of all of its points, in addition to the experiment's.
        needs: an expression; while its value is unknown, the part is not known either.
    """

    name: Text
    about: Text
    series: tuple[SeriesEntry, ...]
    each: Values = field(default_factory=dict)
    scenario: Values = field(default_factory=dict)
    settings: Values = field(default_factory=dict)
    needs: Expression = ""


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A column: the definition of ``hydra.measure.column.Column``, and the expression of its figure.

    Without an expression, the figure is the value of the same name. ``name`` is the column's name if it is not that of
    the entry, because another table has a column of that name with another meaning.
    """

    unit: str = ""
    help: str = ""
    heading: str = ""
    digits: Digits = "two"
    axis: str = ""
    value: Expression = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """The published figures of a row.

    Attributes:
        file: the table in ``conf/reference``.
        where: of the row's line, an expression for each column that identifies it.
        lines: by name, the same for lines that the expressions of the table's columns read in place of measured rows.
        values: the figures themselves, of a document without a table.
        only_found: whether a row stands beside the documents only that have lines for it.
    """

    file: str = ""
    where: Expressions = field(default_factory=dict)
    lines: Mapping[str, Expressions] = field(default_factory=dict)
    values: Mapping[str, int | float] = field(default_factory=dict)
    only_found: bool = False


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A line below a table.

    Attributes:
        text: the line; ``{lines}`` in it stands for ``each`` of all rows.
        each: a text for each row; without ``text`` each is a line of its own.
        only: an expression: which rows have a text.
        of: the notes that Hydra writes: about marks and rows without figures, or about latencies below the clocks'
            bound.
        columns: further latencies for the latter.
    """

    text: Text = ""
    each: Text = ""
    only: Expression = ""
    of: Literal["", "rows", "clocks"] = ""
    columns: tuple[str, ...] = ()


Kind = Literal["points", "means", "publishers", "servers", "parts", "listed"]
"""What a table has a row for: a measured row; the runs of a scenario; each publisher or each server of a measured row;
a part; each combination of the values in ``each``."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table.

    Attributes:
        title: its title.
        columns: the names of its columns; ``*quality`` and ``*marks`` are those of ``hydra.experiments``.
        rows: see :data:`Kind`.
        points: the names of the points that it shows, with the values in them in braces; (): those of all points.
        each: of a listed table, lists of values by name.
        listed: of a listed table, the expressions of each row; that of ``runs`` names the published scenario whose runs
            the row is about; (): one row.
        let: expressions by name for those of the columns.
        only: an expression: which rows are shown.
        when: an expression: when the table is shown.
        values: expressions by column, in place of those of the columns.
        sets: of a table of means, the runs of another scenario by name.
        optional: columns that are shown only if any row has a figure in another column.
        compared: the columns with published figures.
        published: where these are.
        documents: whether there is a row for each of the experiment's documents.
        notes: the lines below it.
        x, y, marks: its plot: the columns, and expressions of the positions of vertical lines by text.
    """

    title: str
    columns: tuple[str, ...]
    rows: Kind = "points"
    points: tuple[str, ...] = ()
    each: Values = field(default_factory=dict)
    listed: tuple[Expressions, ...] = ()
    let: Expressions = field(default_factory=dict)
    only: Expression = ""
    when: Expression = ""
    values: Expressions = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    compared: tuple[str, ...] = ()
    published: PublishedEntry | None = None
    documents: bool = False
    notes: tuple[NoteEntry, ...] = ()
    x: str = ""
    y: tuple[str, ...] = ()
    marks: Expressions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AloneEntry:
    """One of the experiment's published scenarios as an experiment of its own, with some of the experiment's flags."""

    title: str
    takes_s: float
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """A published experiment.

    Attributes:
        name: its name on the command line, which its file has.
        path: the file.
        place: its place in lists.
        system: the system that it measures.
        title, source: one line for lists; the authors and the year.
        scale: the default scale, with which it takes less than three minutes on two cores.
        takes_s: approximate duration at this scale on two cores, in seconds.
        functions: functions of Python packages by name, as ``module:function``, for its expressions.
        lines: the function that makes the lines of a row's publishers and subscribers, which are printed below the
            tables for scripts; "": there are none.
        options: its own flags.
        let: values and expressions by name, in order.
        scenario: keys of the scenarios of all parts.
        settings: settings of all points.
        parts: the runs.
        documents: values by name of each document with published figures.
        columns: columns by name, in addition to those of ``hydra.experiments``.
        tables: the tables.
        alone: the published scenarios that are experiments of their own by name.
    """

    name: str
    path: Path
    place: int
    system: str
    title: str
    source: str
    scale: float
    takes_s: float
    parts: tuple[PartEntry, ...]
    tables: tuple[TableEntry, ...]
    functions: Mapping[str, str] = field(default_factory=dict)
    lines: str = ""
    options: tuple[OptionEntry, ...] = ()
    let: Values = field(default_factory=dict)
    scenario: Values = field(default_factory=dict)
    settings: Values = field(default_factory=dict)
    documents: tuple[Mapping[str, object], ...] = ()
    columns: Mapping[str, ColumnEntry] = field(default_factory=dict)
    alone: Mapping[str, AloneEntry] = field(default_factory=dict)

    def only(self, name: str) -> ExperimentFile:
        """One of the published scenarios alone: its points behind the warm-up, and the tables that show them."""
        entry, shown = self.alone[name], (WARM_UP, name)
        parts = (
            dataclasses.replace(part, series=tuple(each for each in part.series if each.belongs_to(shown)))
            for part in self.parts
        )
        return dataclasses.replace(
            self,
            name=name,
            title=entry.title,
            takes_s=entry.takes_s,
            options=tuple(each for each in self.options if each.name in entry.options),
            parts=tuple(parts),
            tables=tuple(each for each in self.tables if name in map(scenario_name, each.points)),
            alone={},
        )


def read_experiment(path: Path) -> list[ExperimentFile]:
    """The experiment of a file, and its published scenarios alone.

    Raises:
        RefusedKeyError: a key of the file is unknown, missing or has a wrong value.
        ConfigError: the file cannot be read, or is not TOML.
    """
    data = read_toml(path, lambda: "reinstall the package that brings this file")
    with refusals_in(path):
        whole = build(ExperimentFile, _with_notes(data), made={"name": path.stem, "path": path})
        return [whole, *map(whole.only, whole.alone)]


def _with_notes(data: dict[str, object]) -> dict[str, object]:
    """The file with every note as a table: a note that is a text is the table's key ``text``."""
    tables = data.get("tables")
    for table in tables if isinstance(tables, list) else ():
        notes = table.get("notes") if isinstance(table, dict) else None
        if isinstance(notes, list):
            table["notes"] = [{"text": note} if isinstance(note, str) else note for note in notes]
    return data


@cache
def experiments_in(folder: Path) -> tuple[ExperimentFile, ...]:
    """The experiments of all files in a folder, in their places; raises what :func:`read_experiment` raises."""
    found = [each for path in sorted(folder.glob("*.toml")) for each in read_experiment(path)]
    names = [each.name for each in found]
    for each in found:
        if names.count(each.name) > 1:
            with refusals_in(folder):
                raise RefusedError((each.name,), "is the name of two experiments", "rename one of them")
    return tuple(sorted(found, key=lambda each: each.place))
