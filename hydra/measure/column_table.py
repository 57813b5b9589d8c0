"""Which columns the rows of a scenario can have, known before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from hydra.measure import search_columns
from hydra.measure.column import MESSAGES, REPEATS, TEXT, Column, of_repeats, text_column
from hydra.measure.column_names import BLOCKED, BURST, POINT, PUBLISHERS, REASON, STATUS
from hydra.measure.step_columns import DUE, SENT, SystemColumns, published, step_columns
from hydra.model import SKIPPED_BY, Scenario

_LAST: Final = (
    Column(REPEATS, "", "how often the row was measured, with `--repeat`"),
    Column(STATUS, TEXT, "`ok`, `partial` (the run ended before its last step), `failed`, or `skipped`"),
    Column(REASON, TEXT, "why it failed or was skipped, or why there was a second try"),
    Column(SKIPPED_BY, TEXT, "`user` where it was skipped with the key s, and nothing kept it from being measured"),
)

_NAMED: Final = text_column(POINT, "name of the row, where a sweep lists its rows", "Point")
_SENDERS: Final = Column(
    PUBLISHERS, "publishers", "publishers that sent, where a sweep lists its rows", "Publishers", repeats="common"
)

EARLIER: Final[Mapping[str, Column]] = {
    BURST: Column("msg_batch", MESSAGES, "`burst`, in runs of earlier versions", "Batch", repeats="common"),
    BLOCKED: Column("batch_bytes", "bytes", "nothing, in runs of earlier versions", repeats="common"),
}
"""Columns that runs of earlier versions have for every system, by the column after which they stand."""


def published_columns(scenario: Scenario, system: SystemColumns) -> tuple[Column, ...]:
    """The columns of the table that this scenario's experiment was published with."""
    if scenario.sweep.search is not None:
        return search_columns.published(scenario.sweep.search)
    clients, *others = (c for c in published(system) if scenario.table == "batch" or c is not system.batch)
    listed = scenario.sweep.points
    return (*((_NAMED,) if listed else ()), clients, *((_SENDERS,) if listed else ()), *others)


def columns_of(scenario: Scenario, system: SystemColumns) -> dict[str, Column]:
    """Every column that a row of this scenario can have, by name, in the order of the table.

    The published ones; what varies; all others, each followed by what repeats add to it; and last, what the row is.
    """
    first = published_columns(scenario, system)
    search = scenario.sweep.search
    row = search_columns.search_columns(search) if search else _step_columns(scenario, system)
    known = {column.name: column for column in row}
    # A setting that varies was asked for, not measured.
    varied = {name: replace(known.get(name, Column(name)), repeats="common") for name in scenario.sweep.varied}
    others = [each for column in (*varied.values(), *row) for each in (column, *of_repeats(column))]
    columns = (*first, *others, *_LAST)
    return {column.name: varied.get(column.name, column) for column in columns}


def _step_columns(scenario: Scenario, system: SystemColumns) -> list[Column]:
    rates = {scenario.settings.rate, *scenario.values_of("rate")}
    since = [DUE] if rates - {"max"} else []
    columns = step_columns([*since, *([SENT] if "max" in rates else [])], cohort=False, system=system)
    return [each for column in columns for each in (column, EARLIER.get(column.name)) if each is not None]


def in_order(scenario: Scenario, system: SystemColumns, rows: Iterable[Mapping[str, object]]) -> list[Column]:
    """The published columns and whatever else rows have, in the order of the table.

    Columns that only earlier versions knew stand before the status.
    """
    known = columns_of(scenario, system)
    last = (STATUS, REASON)
    there = dict.fromkeys(
        [c.name for c in published_columns(scenario, system)] + [name for row in rows for name in row]
    )
    measured = [column for name, column in known.items() if name in there and name not in last]
    return [*measured, *(Column(n) for n in there if n not in known), *(known[n] for n in last)]
