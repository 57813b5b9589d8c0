"""The folder of an experiment: its record, its tables, and a run directory for each part."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from hydra.errors import RunDirectoryError
from hydra.events.value_formatting import MARK
from hydra.measure.column import TEXT, YES_NO, Column
from hydra.model import Figure, RunSetup, SettingValue, cell_of
from hydra.report.figure_texts import NOTED
from hydra.report.run_setup import setup_columns, setup_line, setup_object, setup_of_folders
from hydra.report.table import Document, PartedLine, Table, TableRow, without_empty_columns
from hydra.report.table import markdown as text_of
from hydra.report.tables import cell
from hydra.store.run_folders import RECORD, json_of, read_json, write_whole
from hydra.system.experiment import MARKING, TROUBLE, WHY
from hydra.system.experiment import ExperimentTable as ExperimentTable

T = TypeVar("T")

TABLE: Final = "table.json"
_TABLE: Final = "table"
"""The first column of ``table.csv``: the title of the row's table."""
_ROOM: Final = "free some space; every part keeps what it measured in its own folder"


@dataclass(frozen=True, slots=True)
class PartRecord:
    """One part: its folder's name, how its run ended, and the reason if there is no run ("" if there is one)."""

    name: str
    ended: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """The stored record of an experiment; it contains no secrets.

    Attributes:
        experiment, title, source: the experiment's name, its title, and its publication.
        scale, options: the scale factor and the values of the experiment's own flags.
        overrides: keys that the user replaced in every part.
        command_line, began: how and when the experiment was started.
        ended: ``finished``, ``interrupted`` or ``failed``; "" while the experiment is running.
        error: why the experiment failed.
        parts: the parts in order.
    """

    experiment: str
    title: str
    source: str
    scale: float
    options: dict[str, Any]
    overrides: dict[str, Any]
    command_line: str
    began: str
    ended: str = ""
    error: str = ""
    parts: list[PartRecord] = field(default_factory=list)

    @property
    def at_scale(self) -> str:
        """The scale of the experiment as text for its tables."""
        return "the original" if self.scale == 1 else f"scale {self.scale:g} of the original"


def read_record(folder: Path) -> ExperimentRecord:
    """Reads the record of the experiment in a folder.

    Raises:
        RunDirectoryError: the folder has no record, or the record cannot be read.
    """
    path = folder / RECORD
    if not path.is_file():
        what = f"{folder} holds no experiment: there is no {path.name}"
        raise RunDirectoryError(what, "name the folder of an experiment")
    return read_json(path, ExperimentRecord)


def read_views(folder: Path) -> list[ExperimentTable]:
    """The tables of the experiment in a folder, [] if there are none yet; raises what :func:`read_record` raises."""
    path = folder / TABLE
    return [*read_json(path, _Tables).tables] if path.is_file() else []


@dataclass(frozen=True, slots=True)
class _StoredTable(ExperimentTable):
    rows: Sequence[Mapping[str, SettingValue]]


@dataclass(frozen=True, slots=True)
class _Tables:
    experiment: str
    scale: float
    tables: list[_StoredTable]


def write_record(folder: Path, record: ExperimentRecord) -> None:
    """Writes ``experiment.json``.

    Raises:
        HydraError: the folder cannot be written.
    """
    write_whole(folder / RECORD, json_of(record), _ROOM)


def setup_of(folder: Path, record: ExperimentRecord) -> RunSetup:
    """What all parts of an experiment together measured."""
    return setup_of_folders(folder / part.name for part in record.parts)


def write_tables(folder: Path, record: ExperimentRecord, views: Sequence[ExperimentTable]) -> None:
    """Writes ``table.md``, ``table.csv`` and ``table.json``; raises the same exceptions as :func:`write_record`."""
    setup = setup_of(folder, record)
    texts = {
        "table.md": text_of(document(record, views, setup)),
        "table.csv": csv_text(views, setup),
        TABLE: json_text(record, views, setup),
    }
    for name, text in texts.items():
        write_whole(folder / name, text, _ROOM)


def document(record: ExperimentRecord, views: Sequence[ExperimentTable], setup: RunSetup) -> Document:
    """The content of ``table.md``: every table with its notes, and the reason for each missing part."""
    parts: list[str | PartedLine | Table] = [
        f"# {record.title}",
        f"{record.source}; measured at {record.at_scale}",
        setup_line(setup),
    ]
    for view in views:
        parts += [f"## {view.title}", table(view, cell), "\n".join(f"- {note}" for note in view.notes)]
    parts.append("\n".join(f"- **{part.name}** was not run: {part.reason}" for part in record.parts if part.reason))
    return [part for part in parts if part]


def table(view: ExperimentTable, text: Callable[[Column, Figure], str]) -> Table:
    """The table of a view, without columns that are empty in all rows; without the reasons of marks.

    Args:
        view: the view.
        text: formats a figure.
    """
    columns = shown_columns(view)
    rows = [
        TableRow(
            [text(column, row.get(column.name)) for column in columns],
            MARK if row.get(WHY.name) else NOTED if row.get(TROUBLE.name) else "",
            "; ".join(str(row[column.name]) for column in MARKING if row.get(column.name)),
        )
        for row in view.rows
    ]
    right = [column.unit != TEXT for column in columns]
    heads, hints = [column.title for column in columns], [column.help for column in columns]
    return without_empty_columns(Table(heads, rows, right, hints))


_MARKING: Final = frozenset(column.name for column in MARKING)


def shown_columns(view: ExperimentTable) -> list[Column]:
    """The columns of a view but the reasons of marks."""
    return [column for column in view.columns if column.name not in _MARKING]


def csv_text(views: Sequence[ExperimentTable], setup: RunSetup) -> str:
    """The content of ``table.csv``: the rows of all tables in full precision.

    The first column is the row's table, and the last columns have what all parts together measured.
    """
    measured = setup_columns(setup)
    names = dict.fromkeys(column.name for view in views for column in view.columns)
    out = io.StringIO()
    writer = csv.DictWriter(out, [_TABLE, *names, *measured], lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for view in views:
        writer.writerows({_TABLE: view.title, **row, **measured} for row in view.rows)
    return out.getvalue()


def _values(item: Any, kind: type | None = None) -> dict[str, Any]:
    """The fields of a dataclass by name; of a subclass those of ``kind``: a step's column has functions."""
    values = {f.name: getattr(item, f.name) for f in fields(kind or item)}
    return {
        name: value if name in ("columns", "rows") else msgspec.to_builtins(value) for name, value in values.items()
    }


def json_text(record: ExperimentRecord, views: Sequence[ExperimentTable], setup: RunSetup) -> str:
    """The content of ``table.json``: the tables and their column definitions; every row has all columns in order."""
    tables = [
        _values(view)
        | {
            "columns": [_values(column, Column) for column in view.columns],
            "rows": [{column.name: cell_of(row.get(column.name)) for column in view.columns} for row in view.rows],
        }
        for view in views
    ]
    content = {"experiment": record.experiment, "scale": record.scale, "setup": setup_object(setup), "tables": tables}
    return json_of(content)


def figures_of(views: Sequence[ExperimentTable]) -> dict[str, Column]:
    """All columns of numbers by name, which conditions can test."""
    return {column.name: column for view in views for column in view.columns if column.unit not in (TEXT, YES_NO)}


def rows_of(views: Sequence[ExperimentTable]) -> list[dict[str, Figure]]:
    """The rows of all tables."""
    return [dict(row) for view in views for row in view.rows]
