"""How rates that were searched for are shown: with their interval, and what they took. Made from rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra.events.formatting import number
from hydra.measure.column import REPEATS
from hydra.measure.column_names import CLIENTS, FAILED_STEPS, STEP_S
from hydra.measure.search_columns import ANSWER, FLOOR, HIGH_PPS, LOW_PPS, prefixes, rates
from hydra.model import Figure, Scenario
from hydra.report.loss_limits import loss_limits
from hydra.sweep import Row

_LEAST_WHOLE: Final = 100.0
"""Rates (messages/s) of at least this are shown as whole numbers."""


def interval_of(row: Row, column: str, scenario: Scenario) -> tuple[float, float] | None:
    """The limits of the 95 % interval (messages/s) that the search itself found; None for every other figure.

    The interval of a row that was repeated is that of its repeats.
    """
    search = scenario.sweep.search
    name = prefixes(search).get(column) if search else None
    if name is None or REPEATS in row or row.get(column) is None:
        return None
    low, high = row.get(name + LOW_PPS), row.get(name + HIGH_PPS)
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def without_figure(row: Row, column: str, scenario: Scenario) -> str:
    """What stands in place of a figure that a search has not found; "" for every other one."""
    search = scenario.sweep.search
    name = prefixes(search).get(column) if search else None
    if name is None or row.get(column) is not None or row.get(name + ANSWER) is None:
        return ""
    lost = row.get(name + FLOOR[0])
    return f"{row[name + ANSWER]}: loses {number(lost)} %" if lost is not None else str(row[name + ANSWER])


def whole(rate: Figure, grouped: bool = False) -> str:
    """A rate that was searched for, in messages/s, without decimals: it is not known that exactly."""
    if not isinstance(rate, float):
        return str(rate)
    if rate < _LEAST_WHOLE:
        return number(rate)
    return f"{rate:,.0f}" if grouped else f"{rate:.0f}"


def legend(scenario: Scenario, rows: Sequence[Row]) -> str:
    """What the brackets are; "" where there are none."""
    search = scenario.sweep.search
    if not search and any(loss_limits(row, rows) for row in rows):
        return "In brackets: the 95 % interval of the loss as a mean over time, from when and by whom it was lost."
    if not search or not any(interval_of(row, c, scenario) for row in rows for c in rates(search).values()):
        return ""
    target = 100 * search.target
    return (
        "In brackets: the 95 % interval of a rate that was searched for, the highest at which on average over time at "
        f"most {target:g} % of the messages are lost or pile up."
    )


def efforts(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    """How many steps each row of a search took; nothing for rows of versions that did not store it."""
    return [text for row in rows if (text := _effort(scenario, row))]


def _effort(scenario: Scenario, row: Row) -> str:
    search = scenario.sweep.search
    names = rates(search) if search else ()
    steps = [
        f"{name} {number(row[f'{name}_steps'])}" for name in names if isinstance(row.get(f"{name}_steps"), int | float)
    ]
    if not steps or row.get(STEP_S) is None:
        return ""
    repeats = f", on average of {row[REPEATS]} repeats" if REPEATS in row else ""
    text = f"{row.get(CLIENTS)} clients: steps of {number(row[STEP_S])} s{repeats}: {', '.join(steps)}"
    failed = row.get(FAILED_STEPS)
    return (
        f"{text}; failed and measured again: {number(failed)}" if isinstance(failed, int | float) and failed else text
    )
