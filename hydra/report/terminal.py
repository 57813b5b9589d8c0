"""A run's table for a person at a terminal: as wide as that is, headings wrapped, figures grouped by thousands.

What files and pipes get, with the published headings in one line each, is in ``tables.py``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hydra.events.formatting import number
from hydra.measure.column import COUNT, INTERVAL, REPEATS, Column
from hydra.measure.column_names import LOSS
from hydra.model import Scenario
from hydra.report.latency_bound import beside, shown
from hydra.report.loss_limits import loss_limits
from hydra.report.row_warnings import warnings_of
from hydra.report.search_display import efforts, interval_of, legend, without_figure
from hydra.report.tables import clients_line, name_of, table_columns
from hydra.report.warnings import MARK, told_once
from hydra.sweep import Row


def terminal(
    scenario: Scenario, rows: Sequence[Row], clients: Sequence[Mapping[str, Any]], width: int, *, colours: bool = False
) -> str:
    """The table and what has to be known about it.

    Args:
        scenario: what was asked for.
        rows: the table.
        clients: the run's fact of that name: what its clients said that they are.
        width: columns of the terminal.
        colours: whether it shows them.
    """
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colours, highlight=False, markup=False)
    columns = table_columns(scenario)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right", overflow="fold")
    notes = [warnings_of(row, scenario, rows) for row in rows]
    for row, about in zip(rows, notes, strict=True):
        first, *others = (_cell(column, row, scenario, rows) for column in columns)
        table.add_row(f"{first} {MARK}" if about else first, *others, style="yellow" if about else "")
    console.print(scenario.description)
    console.print(table)
    console.print(clients_line(scenario, clients))
    if text := legend(scenario, rows):
        console.print(text)
    for names, said in told_once([(name_of(scenario, row), its) for row, its in zip(rows, notes, strict=True)]):
        _bullet(console, MARK, f"{names}: {said}")
    for effort in efforts(scenario, rows):
        _bullet(console, "·", effort)
    return stream.getvalue()


def _bullet(console: Console, mark: str, text: str) -> None:
    """A line with a hanging indent."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(mark, Text(text))
    console.print(grid)


def _cell(column: Column, row: Row, scenario: Scenario, rows: Sequence[Row]) -> str:
    """A figure, with its interval or its repeats below it."""
    value = shown(row, column.name)
    text = value if isinstance(value, str) else number(value) + beside(row, column.name)
    if limits := interval_of(row, column.name, scenario):
        return f"{text}\n{number(limits[0])} – {number(limits[1])}"
    if column.name == LOSS and (known := loss_limits(row, rows)):
        text = f"{text}\n{number(known.low)} – {number(known.high)}"
    if answer := without_figure(row, column.name, scenario):
        return answer
    interval, count = row.get(column.name + INTERVAL), row.get(column.name + COUNT)
    if interval is not None:
        text = f"{text}\n± {number(interval)}"
    return text if count is None else f"{text}\n({count} of {row.get(REPEATS)})"
