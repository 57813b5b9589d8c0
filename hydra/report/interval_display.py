"""How losses and rates that were searched for are shown: with their interval, and what they took. From rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra.events.value_formatting import number
from hydra.measure.column_names import CLIENTS, GONE, LOSS, LOSS_CI_HIGH, LOSS_CI_LOW, LOSS_EVIDENCE
from hydra.measure.loss_interval import ConfidenceInterval, LossEvidence, around, decode_evidence
from hydra.model import Figure, Scenario
from hydra.model import number as number_of
from hydra.sweep import Row, kind_of


def loss_limits(row: Row, rows: Sequence[Row] = ()) -> ConfidenceInterval | None:
    """The limits of the 95 % interval of a row's loss (%); None where nothing tells.

    A row without a burst says how rare they are, and not what one would cost: that is told by the row of as many
    clients that lost least.

    Args:
        row: the row.
        rows: all rows of its table.
    """
    low, high = number_of(row.get(LOSS_CI_LOW)), number_of(row.get(LOSS_CI_HIGH))
    if low is not None and high is not None:
        return ConfidenceInterval(low, high)
    evidence = _evidence(row)
    if (
        evidence is None
        or evidence.total
        or number_of(row.get(LOSS)) != 0.0
        or any(number_of(row.get(c)) for c in GONE)
    ):
        return None
    alike = [e for other in rows if other.get(CLIENTS) == row.get(CLIENTS) and (e := _evidence(other)) and e.total]
    least = min(alike, key=lambda e: e.total / e.length_s, default=None)
    return around(0.0, [evidence], least.total / least.count) if least else None


def _evidence(row: Row) -> LossEvidence | None:
    text = row.get(LOSS_EVIDENCE)
    return None if text is None else decode_evidence(str(text))


_LEAST_WHOLE: Final = 100.0
"""Rates (messages/s) of at least this are shown as whole numbers."""


def whole_rate(rate: Figure, grouped: bool = False) -> str:
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
