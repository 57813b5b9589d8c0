"""Conditions on rows for ``--fail-if``: a column, a comparison, a number. The text is parsed, never evaluated as code.

If runs are compared, the number may be a share of the base's figure: ``0.95 * base``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.errors import UsageError
from hydra.events.value_formatting import counted, number
from hydra.measure.column import TEXT, Column, columns_meant
from hydra.model import Scenario
from hydra.store.stored_scenario import columns_of
from hydra.sweep import Row
from hydra.sweep.cleanness import judged, why_not_clean

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_NUMBER: Final = r"[-+0-9.eE]+"
_FORM: Final = re.compile(
    rf"\s*([a-z][a-z0-9_]*)\s*(<=|>=|==|!=|<|>)\s*(?:({_NUMBER})|(?:({_NUMBER})\s*\*\s*)?(base)|(base)\s*\*\s*({_NUMBER}))\s*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition ``column comparison number``; with ``of_base``, ``column comparison number * base``."""

    column: str
    comparison: str
    number: float
    of_base: bool = False

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {number(self.number, 6)}{' * base' if self.of_base else ''}"

    def holds(self, row: Row) -> bool:
        """Whether the row's figure fulfils the condition; an unknown figure does not."""
        value = row.get(self.column)
        return isinstance(value, int | float) and self.holds_for(float(value))

    def holds_for(self, value: float, base: float = 1.0) -> bool:
        """Whether a figure fulfils the condition.

        Args:
            value: the figure.
            base: the base's figure, if the condition has ``of_base``.
        """
        return _OPERATORS[self.comparison](value, self.number * base if self.of_base else self.number)


def columns(scenario: Scenario) -> dict[str, Column]:
    """All columns of numbers, or of yes and no, that a row of this scenario can have, by name."""
    return numbers(columns_of(scenario))


def numbers(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns that a condition can test, by name."""
    return {name: each for name, each in columns.items() if each.unit != TEXT}


def parse(text: str, columns: Mapping[str, Column], of_base: Sequence[str] = ()) -> Condition:
    """The condition in a text like ``client_loss_pct > 0.5``, or ``avg_rx_rate_pps < 0.95 * base``.

    Args:
        text: the user's text.
        columns: the columns that rows can have, by name.
        of_base: names of the columns that a base has figures for; empty if nothing is compared.

    Raises:
        UsageError: the text is not a condition, or rows have no such column; the remedy names what may be meant.
    """
    form = _FORM.fullmatch(text)
    factor = (form[3] or form[4] or form[7] or "1") if form else ""
    is_of_base = bool(form and not form[3])
    try:
        number = float(factor)
    except ValueError:
        form = None
    if not form or not math.isfinite(number):
        name = re.split(r"[<>=!]", text)[0].strip()
        meant = columns_meant(name, columns)
        of_column = f", with the column {meant[0]}" if meant and name not in columns else ""
        raise UsageError(f"--fail-if {text!r} is no comparison", f"write it like 'client_loss_pct > 0.5'{of_column}")
    if is_of_base and not of_base:
        raise UsageError(f"--fail-if {text!r}: there is no base", "use base with hydra compare, which compares runs")
    columns = {name: each for name, each in columns.items() if name in of_base} if is_of_base else columns
    if form[1] not in columns:
        meant = columns_meant(form[1], columns)
        remedy = f"did you mean {' or '.join(meant)}?" if meant else f"some known columns: {', '.join([*columns][:8])}"
        raise UsageError(f"--fail-if {text!r}: this scenario's rows have no number called {form[1]}", remedy)
    return Condition(form[1], form[2], number, is_of_base)


def conditions_met(conditions: Sequence[Condition], rows: Sequence[Row]) -> list[str]:
    """A line for every condition that a row fulfils."""
    return [
        f"row {number} ({counted(row.get('clients'), 'subscriber')}): {condition} holds, it is {row[condition.column]}"
        for number, row in enumerate(map(judged, rows), 1)
        for condition in conditions
        if condition.holds(row)
    ]


def not_clean_lines(rows: Sequence[Row]) -> list[str]:
    """One line for every row that is not clean."""
    return [
        f"row {number} ({counted(row.get('clients'), 'subscriber')}) is not clean: {why}"
        for number, row in enumerate(rows, 1)
        if (why := why_not_clean(row))
    ]
