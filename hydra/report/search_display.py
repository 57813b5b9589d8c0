"""How rates that were searched for are shown, and what the brackets beside figures are. Made from rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra.events.formatting import number
from hydra.model import Figure, Scenario
from hydra.report.loss_limits import loss_limits
from hydra.sweep import Row, kind_of

_LEAST_WHOLE: Final = 100.0
"""Rates (messages/s) of at least this are shown as whole numbers."""


def whole(rate: Figure, grouped: bool = False) -> str:
    """A rate that was searched for, in messages/s, without decimals: it is not known that exactly."""
    if not isinstance(rate, float):
        return str(rate)
    if rate < _LEAST_WHOLE:
        return number(rate)
    return f"{rate:,.0f}" if grouped else f"{rate:.0f}"


def legend(scenario: Scenario, rows: Sequence[Row]) -> str:
    """What the brackets are; "" where there are none."""
    of_losses = "In brackets: the 95 % interval of the loss as a mean over time, from when and by whom it was lost."
    return kind_of(scenario).legend(rows) or (of_losses if any(loss_limits(row, rows) for row in rows) else "")


def efforts(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    """What each row took, where that is chance."""
    return [text for row in rows if (text := kind_of(scenario).effort(row))]
