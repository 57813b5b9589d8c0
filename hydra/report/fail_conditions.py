"""Conditions on rows, as ``--fail-if`` takes them: a column, a comparison, a number. Parsed, never evaluated.

Where runs are compared, the number may be a share of the base's figure: ``0.95 * base``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from hydra.errors import UsageError
from hydra.events.value_formatting import number
from hydra.measure.column import TEXT, Column
from hydra.measure.step_columns import EARLIER
from hydra.model import Scenario
from hydra.store.system_columns import columns_of
from hydra.sweep import Row

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_NUMBER: Final = r"[-+0-9.eE]+"
_FORM: Final = re.compile(
    rf"\s*([a-z][a-z0-9_]*)\s*(<=|>=|==|!=|<|>)\s*(?:({_NUMBER})|(?:({_NUMBER})\s*\*\s*)?(base)|(base)\s*\*\s*({_NUMBER}))\s*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """``column comparison number``, or with ``of_base`` ``column comparison number * base``."""

    column: str
    comparison: str
    number: float
    of_base: bool = False

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {number(self.number, 6)}{' * base' if self.of_base else ''}"

    def holds(self, row: Row) -> bool:
        """Whether the row's figure fulfils it; a figure that is not known fulfils nothing."""
        value = row.get(self.column)
        if value is None or isinstance(value, str):
            return False
        return self.holds_for(float(value))

    def holds_for(self, value: float, base: float = 1.0) -> bool:
        """Whether a figure fulfils it.

        Args:
            value: the figure.
            base: that of the base, where the condition is about a share of it.
        """
        return _OPERATORS[self.comparison](value, self.number * base if self.of_base else self.number)


def columns(scenario: Scenario) -> list[str]:
    """Every column of numbers, or of yes and no, that a row of this scenario can have, repeated or not."""
    return numbers(columns_of(scenario))


def numbers(columns: Mapping[str, Column]) -> list[str]:
    """Those of these columns, by name, that a condition can be about."""
    return [column.name for column in columns.values() if column.unit != TEXT and column not in EARLIER.values()]


def parse(text: str, columns: Sequence[str], of_base: Sequence[str] = ()) -> Condition:
    """The condition in a text like ``client_loss_pct > 0.5``, or ``avg_rx_rate_pps < 0.95 * base``.

    Args:
        text: of the user.
        columns: that rows can have.
        of_base: those of which a base has figures; none where nothing is compared.

    Raises:
        UsageError: it is not of that form, or no such column can come out; the text names the nearest.
    """
    form = _FORM.fullmatch(text)
    factor = (form[3] or form[4] or form[7] or "1") if form else ""
    is_of_base = bool(form and not form[3])
    try:
        number = float(factor)
    except ValueError:
        form = None
    if not form or not math.isfinite(number):
        raise UsageError(f"--fail-if {text!r} is no comparison", "write it like 'client_loss_pct > 0.5'")
    if is_of_base and not of_base:
        raise UsageError(f"--fail-if {text!r}: there is no base", "runs that are compared have one: hydra compare")
    columns = of_base if is_of_base else columns
    if form[1] not in columns:
        near = get_close_matches(form[1], columns, 1)
        remedy = f"did you mean {near[0]}?" if near else f"some that there are: {', '.join(columns[:8])}"
        raise UsageError(f"--fail-if {text!r}: this scenario's rows have no number called {form[1]}", remedy)
    return Condition(form[1], form[2], number, is_of_base)


def conditions_met(conditions: Sequence[Condition], rows: Sequence[Row]) -> list[str]:
    """One line for every row and every condition that it fulfils."""
    return [
        f"row {number} ({row.get('clients')} clients): {condition} holds, it is {row[condition.column]}"
        for number, row in enumerate(rows, 1)
        for condition in conditions
        if condition.holds(row)
    ]
