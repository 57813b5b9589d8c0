"""The columns that the rows of a scenario can have, known before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hydra.measure.column import (
    CLEAN,
    NOT_CLEAN_WHY,
    PER_SECOND,
    PUBLISHERS,
    REASON,
    REPEATS,
    STATUS,
    TEXT,
    Column,
    SystemColumns,
    of_repeats,
    yes_no_column,
)
from hydra.model import SKIPPED_BY, Scenario
from hydra.sweep.kind import rows_of

_LAST: Final = (
    Column(REPEATS, "", "how often the row was measured, with `--repeat`"),
    Column(STATUS, TEXT, "`ok`, `partial` (the run ended before its last step), `failed`, or `skipped`"),
    Column(REASON, TEXT, "why the row failed or was skipped, or why it was measured a second time"),
    Column(
        SKIPPED_BY, TEXT, "`user` if the user skipped the row with the key s, although Hydra could have measured it"
    ),
    yes_no_column(CLEAN, "whether the row is clean, see *Clean rows*"),
    Column(NOT_CLEAN_WHY, TEXT, "why the row is not clean; empty for a clean row"),
)


_UNITS: Final = {"publishers": PUBLISHERS, "rate": PER_SECOND, "message_size": "bytes", "message_size_min": "bytes"}
"""Of settings that a sweep can vary, if their names do not have the unit."""


def published_columns(scenario: Scenario, system: SystemColumns) -> tuple[Column, ...]:
    """The columns of the published table of this scenario's experiment."""
    return rows_of(scenario).published(system)


def columns_of(scenario: Scenario, system: SystemColumns) -> dict[str, Column]:
    """Every column that a row of this scenario can have, by name, in the order of the table.

    The order: the published columns; varied settings; all others, each followed by those that repeats add; the status.
    """
    first, row = published_columns(scenario, system), rows_of(scenario).columns(system)
    known = {column.name: column for column in row}
    # A varied setting is chosen, not measured: repeats share it.
    varied = {name: replace(known.get(name) or _setting(name), repeats="common") for name in scenario.sweep.varied}
    others = [each for column in (*varied.values(), *row) for each in (column, *of_repeats(column))]
    columns = (*first, *others, *_LAST)
    return {column.name: varied.get(column.name, column) for column in columns}


def _setting(name: str) -> Column:
    """The column of a varied setting."""
    unit = _UNITS.get(name, "")
    return Column(name, unit, axis=f"{name}, {unit}" if unit else "")


def in_order(scenario: Scenario, system: SystemColumns, rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """The published columns and all others that the rows have, in the order of the table."""
    known = columns_of(scenario, system)
    last = (STATUS, REASON, *(name for name in (CLEAN, NOT_CLEAN_WHY) if any(name in row for row in rows)))
    there = dict.fromkeys(
        [c.name for c in published_columns(scenario, system)] + [name for row in rows for name in row]
    )
    measured = [column for name, column in known.items() if name in there and name not in last]
    return [*measured, *(known[n] for n in last)]
