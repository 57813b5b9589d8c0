"""The rows of a scenario: the base of the second of a kind's objects. Pure.

The methods here suit kinds whose rows are single steps at given settings; other kinds override them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from hydra.events.value_formatting import counted
from hydra.events.value_formatting import number as text_of
from hydra.measure.column import REPEATS, Column, SystemColumns
from hydra.measure.connection_columns import IN_TABLE, PRIMARY, Connecting
from hydra.measure.latency_columns import DUE, SENT
from hydra.measure.step_part import columns_of
from hydra.measure.step_result import step_columns
from hydra.measure.traffic_columns import AGGREGATE, AVG_RX, AVG_TX, CLIENTS, published
from hydra.model import IMPAIRMENTS
from hydra.sweep.interface import Row, ScenarioPart

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning


class SweepRows(ScenarioPart):
    """The rows of a scenario: their columns, names and figures."""

    across: ClassVar[str] = CLIENTS
    """The column on the horizontal axis of plots."""

    def published(self, system: SystemColumns) -> tuple[Column, ...]:
        """The columns of its table."""
        if self._scenario.table == "connections":
            return tuple(
                c for c in (*published(system), *columns_of(Connecting)) if c.name == CLIENTS or c.name in IN_TABLE
            )
        return tuple(c for c in published(system) if self._scenario.table == "batch" or c is not system.batch)

    def columns(self, system: SystemColumns) -> Sequence[Column]:
        """All columns that its rows can have, except those that every row has."""
        # A recorded load has a rate although the setting is `max`.
        paced = {1.0} if self._scenario.load.shape != "constant" else set()
        rates = {self._scenario.settings.rate, *self._scenario.values_of("rate"), *paced}
        since = [*([DUE] if rates - {"max"} else []), *([SENT] if "max" in rates else [])]
        connecting = self._scenario.values_of("connect_rate") != (None,)
        cohort = any(event.kind in IMPAIRMENTS for event in self._scenario.events)
        return step_columns(since, cohort=cohort, system=system, connecting=connecting)

    @property
    def primary(self) -> tuple[str, ...]:
        """The columns by which runs of a scenario are usually compared: the first one with a figure counts.

        A scenario of connections is compared by the time until its subscribers are ready.

        If the scenario sets the rate of every row, the rate is no result, and the 99th percentile of latency comes
        first. Otherwise it is the rate that a subscriber received.
        """
        if self._scenario.table == "connections":
            return PRIMARY
        paced = "max" not in self._scenario.values_of("rate")
        return (f"{DUE}_p99_us", AVG_RX) if paced else (AVG_RX,)

    def name_of(self, row: Row, title: Callable[[str], str]) -> str:
        """The name that distinguishes a row from the others: ``60 subscribers, Batch 200``.

        Args:
            row: the row.
            title: gives the heading of a column by its name.
        """
        varied = [f"{title(name)} {text_of(row.get(name))}" for name in self._sweep.crossed]
        return ", ".join([counted(row.get(CLIENTS), "subscriber"), *varied])

    def limits(self, column: str) -> tuple[str, str] | None:
        """The columns of the limits of a rate's interval that the sweep itself found; None for every other column."""
        return None

    def interval(self, row: Row, column: str) -> tuple[float, float] | None:
        """The limits of the 95 % confidence interval (messages/s) that the sweep itself found; None: it found none.

        A repeated row has the interval over its repeats instead.
        """
        names = self.limits(column)
        if names is None or REPEATS in row or row.get(column) is None:
            return None
        low, high = (row.get(name) for name in names)
        return (low, high) if isinstance(low, float) and isinstance(high, float) else None

    def in_place(self, row: Row, column: str) -> str:
        """The text in place of a figure that was not found; "" for every other figure."""
        return ""

    def warnings(self, row: Row) -> list[HydraWarning]:
        """The warnings of the figures that the sweep itself found."""
        return []

    def slow_rates(self, row: Row) -> tuple[float | None, float | None] | None:
        """Messages/s sent to the slow clients of a row, and read by each of them; None if it has no slow clients."""
        return None

    @property
    def rates(self) -> tuple[Sequence[str], str]:
        """The columns of the rates of one client, and the column of the rate of all clients together."""
        return (AVG_TX, AVG_RX), AGGREGATE
