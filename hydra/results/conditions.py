"""Conditions on rows, as ``--fail-if`` takes them: a column, a comparison, a number. Parsed, never evaluated."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from hydra.columns.column import TEXT
from hydra.columns.table import EARLIER
from hydra.errors import UsageError
from hydra.model import Scenario
from hydra.results.registered import columns_of
from hydra.sweep import Row

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FORM: Final = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(<=|>=|==|!=|<|>)\s*([-+0-9.eE]+)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """``column comparison number``."""

    column: str
    comparison: str
    number: float

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {self.number:g}"

    def holds(self, row: Row) -> bool:
        """Whether the row's figure fulfils it; a figure that is not known fulfils nothing."""
        value = row.get(self.column)
        if value is None or isinstance(value, str):
            return False
        return _OPERATORS[self.comparison](float(value), self.number)


def columns(scenario: Scenario) -> list[str]:
    """Every column of numbers, or of yes and no, that a row of this scenario can have, repeated or not."""
    known = columns_of(scenario).values()
    return [column.name for column in known if column.unit != TEXT and column not in EARLIER.values()]


def parse(text: str, columns: Sequence[str]) -> Condition:
    """The condition in a text like ``client_loss_pct > 0.5``.

    Raises:
        UsageError: it is not of that form, or no such column can come out; the text names the nearest.
    """
    form = _FORM.fullmatch(text)
    try:
        number = float(form[3]) if form else 0.0
    except ValueError:
        form = None
    if not form or not math.isfinite(number):
        raise UsageError(f"--fail-if {text!r} is no comparison", "write it like 'client_loss_pct > 0.5'")
    if form[1] not in columns:
        near = get_close_matches(form[1], columns, 1)
        remedy = f"did you mean {near[0]}?" if near else f"some that there are: {', '.join(columns[:8])}"
        raise UsageError(f"--fail-if {text!r}: this scenario's rows have no number called {form[1]}", remedy)
    return Condition(form[1], form[2], number)


def met(conditions: Sequence[Condition], rows: Sequence[Row]) -> list[str]:
    """What to tell of every row that fulfils a condition."""
    return [
        f"row {number} ({row.get('clients')} clients): {condition} holds, it is {row[condition.column]}"
        for number, row in enumerate(rows, 1)
        for condition in conditions
        if condition.holds(row)
    ]
