"""Shows losses and searched rates with their intervals, and the effort of a search. Computed from rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import number
from hydra.measure.column import LossEvidence
from hydra.measure.loss_columns import Loss
from hydra.measure.loss_interval import ConfidenceInterval, around
from hydra.measure.traffic_columns import CLIENTS, Totals
from hydra.model import Figure, Scenario
from hydra.sweep import Row, texts_of

LeastLosses = Mapping[Figure, LossEvidence]
"""For each client count with a row that lost messages, the evidence of the row that lost least."""


def least_losses(rows: Iterable[Row]) -> LeastLosses:
    """The least losses of the rows of a table."""
    least: dict[Figure, LossEvidence] = {}
    for row in rows:
        evidence, clients = Loss.of_row(row).loss_evidence, row.get(CLIENTS)
        if evidence is None or not evidence.total:
            continue
        if clients not in least or evidence.total / evidence.length_s < least[clients].total / least[clients].length_s:
            least[clients] = evidence
    return least


def loss_limits(row: Row, least: LeastLosses) -> ConfidenceInterval | None:
    """The limits of the 95 % interval of a row's loss (%); None if they cannot be computed.

    A row without a loss burst shows how rare bursts are, but not how large one is: the size is taken from the row with
    the same number of clients that lost least.

    Args:
        row: the row.
        least: the least losses of its table.
    """
    loss = Loss.of_row(row)
    low, high = loss.client_loss_ci_low_pct, loss.client_loss_ci_high_pct
    if low is not None and high is not None:
        return ConfidenceInterval(low, high)
    evidence = loss.loss_evidence
    lost = Totals.of_row(row).client_loss_pct != 0.0
    if evidence is None or evidence.total or lost or loss.without_report:
        return None
    other = least.get(row.get(CLIENTS))
    return around(0.0, [evidence], other.total / other.count) if other else None


_LEAST_WHOLE: Final = 100.0
"""Rates from this value on, in messages/s, are shown as whole numbers."""


def whole_rate(rate: Figure, grouped: bool = False) -> str:
    """A searched rate in messages/s, without decimals, because it is not known that exactly."""
    if not isinstance(rate, float):
        return str(rate)
    if rate < _LEAST_WHOLE:
        return number(rate)
    return f"{rate:,.0f}" if grouped else f"{rate:.0f}"


def legend(scenario: Scenario, rows: Sequence[Row]) -> str:
    """The explanation of the brackets in a table; "" if there are none."""
    of_losses = (
        "In brackets: the 95 % confidence interval of the mean loss, from the times and subscribers of the losses."
    )
    least = least_losses(rows)
    return texts_of(scenario).legend(rows) or (of_losses if any(loss_limits(row, least) for row in rows) else "")


def efforts(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    """A line about the effort of each row, if chance decides it."""
    return [text for row in rows if (text := texts_of(scenario).effort(row))]
