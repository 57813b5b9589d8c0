"""Which columns the rows of a scenario can have, known before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from hydra.columns import searched
from hydra.columns.column import REPEATS, TEXT, Column, of_repeats
from hydra.columns.names import REASON, STATUS
from hydra.columns.step import DUE, PUBLISHED, SENT, step_columns
from hydra.model import Scenario

_LAST: Final = (
    Column(REPEATS, "", "how often the row was measured, with `--repeat`"),
    Column(STATUS, TEXT, "`ok`, `partial` (the run ended before its last step), `failed`, or `skipped`"),
    Column(REASON, TEXT, "why it failed or was skipped, or why there was a second try"),
)


def published_columns(scenario: Scenario) -> tuple[Column, ...]:
    """The columns of the table that this scenario's experiment was published with."""
    if scenario.sweep.search is not None:
        return searched.published(scenario.sweep.search)
    return PUBLISHED if scenario.table == "batch" else tuple(c for c in PUBLISHED if c.name != "msg_batch")


def columns_of(scenario: Scenario) -> dict[str, Column]:
    """Every column that a row of this scenario can have, by name, in the order of the table.

    The published ones; what varies; all others, each followed by what repeats add to it; and last, what the row is.
    """
    published = published_columns(scenario)
    search = scenario.sweep.search
    row = searched.search_columns(search) if search else _step_columns(scenario)
    known = {column.name: column for column in row}
    # A setting that varies was asked for, not measured.
    varied = {name: replace(known.get(name, Column(name)), repeats="common") for name in scenario.sweep.vary}
    others = [each for column in (*varied.values(), *row) for each in (column, *of_repeats(column))]
    columns = (*published, *others, *_LAST)
    return {column.name: varied.get(column.name, column) for column in columns}


def _step_columns(scenario: Scenario) -> tuple[Column, ...]:
    rates = {scenario.settings.rate, *scenario.sweep.vary.get("rate", ())}
    since = [DUE] if rates - {"max"} else []
    return step_columns([*since, *([SENT] if "max" in rates else [])], cohort=False)


def in_order(scenario: Scenario, rows: Iterable[Mapping[str, object]]) -> list[Column]:
    """The published columns and whatever else rows have, in the order of the table.

    Columns that only earlier versions knew stand before the status.
    """
    known = columns_of(scenario)
    last = (STATUS, REASON)
    there = dict.fromkeys([c.name for c in published_columns(scenario)] + [name for row in rows for name in row])
    measured = [column for name, column in known.items() if name in there and name not in last]
    return [*measured, *(Column(n) for n in there if n not in known), *(known[n] for n in last)]
