"""How well the loss of a row is known, as tables and plots show it. Made from rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.measure.column_names import CLIENTS, GONE, LOSS, LOSS_CI_HIGH, LOSS_CI_LOW, LOSS_EVIDENCE
from hydra.measure.confidence import Limits
from hydra.measure.loss_interval import LossEvidence, around, read
from hydra.model import number
from hydra.sweep import Row


def loss_limits(row: Row, rows: Sequence[Row] = ()) -> Limits | None:
    """The limits of the 95 % interval of a row's loss (%); None where nothing tells.

    A row without a burst says how rare they are, and not what one would cost: that is told by the row of as many
    clients that lost least.

    Args:
        row: the row.
        rows: all rows of its table.
    """
    low, high = number(row.get(LOSS_CI_LOW)), number(row.get(LOSS_CI_HIGH))
    if low is not None and high is not None:
        return Limits(low, high)
    evidence = _evidence(row)
    if evidence is None or evidence.total or number(row.get(LOSS)) != 0.0 or any(number(row.get(c)) for c in GONE):
        return None
    alike = [e for other in rows if other.get(CLIENTS) == row.get(CLIENTS) and (e := _evidence(other)) and e.total]
    least = min(alike, key=lambda e: e.total / e.length_s, default=None)
    return around(0.0, [evidence], least.total / least.count) if least else None


def _evidence(row: Row) -> LossEvidence | None:
    text = row.get(LOSS_EVIDENCE)
    return None if text is None else read(str(text))
