"""What warnings of rows are made from: a row, its scenario, and the losses of the other rows. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hydra.events.warnings import HydraWarning
from hydra.measure.acceptance_columns import REFUSED_REASON
from hydra.measure.column import POINT, REASON, values_of
from hydra.measure.connection_columns import shut_out_by
from hydra.measure.disturbance import Disturbance
from hydra.measure.host_columns import LOCAL_LIMIT, VERDICT
from hydra.measure.loss_columns import LOSS_HIGH
from hydra.measure.passing_columns import GROUP
from hydra.measure.published_columns import CLIENTS, LOSS
from hydra.measure.topic_columns import COPIES_EXPECTED
from hydra.measure.traffic_columns import REQUESTED
from hydra.measure.verdict import REQUESTED as NOT_LIMITED
from hydra.measure.verdict import SERVER, causes_in
from hydra.model import PUBLISHERS, Figure, Scenario
from hydra.model import number as number_of
from hydra.model.acceptance import BY_SERVER
from hydra.report.remedies import RowLimit
from hydra.store.system_columns import of_silent_groups
from hydra.sweep import Row
from hydra.sweep.cleanness import unreported_in
from hydra.sweep.host_trouble import disturbances_of, others_of

LossesByRate = Mapping[tuple[Figure, ...], Sequence[tuple[float, float]]]
"""Rates (messages/s) with the losses (%) of the rows that differ in the rate only, by what these rows share."""


def losses_by_rate(scenario: Scenario, rows: Iterable[Row]) -> LossesByRate:
    """The rates and losses of all rows that have both."""
    found: dict[tuple[Figure, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        rate, lost = number_of(row.get(REQUESTED)), _lost_pct(row)
        if rate is not None and lost is not None:
            found[_other_values(scenario, row)].append((rate, lost))
    return found


def _other_values(scenario: Scenario, row: Row) -> tuple[Figure, ...]:
    names = (CLIENTS, PUBLISHERS, *scenario.sweep.varied)
    return tuple(row.get(name) for name in names if name != "rate")


@dataclass(frozen=True, slots=True)
class RowContext:
    """A row, the scenario of its run, and the losses of all rows of the run."""

    row: Row
    scenario: Scenario
    losses: LossesByRate

    @property
    def reason(self) -> str:
        """The reason of the row's status."""
        return str(self.row.get(REASON) or "")

    def number(self, name: str) -> float:
        """A figure of the row; 0 where it has none."""
        return number_of(self.row.get(name)) or 0.0

    @property
    def limited_by(self) -> str:
        """What limited the row; "" if that is unknown, or if nothing did. Repeats may differ in it."""
        return " / ".join(str(verdict) for verdict in values_of(self.row.get(VERDICT)) if verdict != NOT_LIMITED)

    @property
    def limit(self) -> RowLimit:
        """What limited the row, for its remedies."""
        causes = causes_in(values_of(self.row.get(VERDICT)))
        reason, local = (str(self.row.get(n) or "") for n in (REFUSED_REASON, LOCAL_LIMIT))
        refused = reason if SERVER in causes and reason in BY_SERVER else ""
        others = others_of(self.row)
        return RowLimit(causes, refused, local, others, shut_out_by(self.row))

    @property
    def sharing(self) -> str:
        """What divides the messages among subscribers: ``group`` or ``topics``; "": each receives all of them."""
        topics = "topics" if self.number(COPIES_EXPECTED) else ""
        return "group" if self.row.get(GROUP) else topics

    @property
    def unheard(self) -> str:
        """What a user checks if no member of a group received anything; "": one did, or this is unknown."""
        nothing = self.row.get(GROUP) and self.row.get("total_rx") == 0
        return of_silent_groups(self.scenario) if nothing else ""

    @property
    def disturbances(self) -> Sequence[Disturbance]:
        """What disturbed the row, for each host on which something did."""
        return disturbances_of(self.row)

    @property
    def unreported(self) -> tuple[str, bool]:
        """How many subscribers died or fell silent, "" if none; then whether other subscribers lost messages."""
        absences = unreported_in(self.row)
        return absences, bool(absences) and self.number("failed_lossy") > 0

    @property
    def backlog(self) -> tuple[float, float]:
        """The messages late and undrained, as a share of the messages due and in seconds of traffic."""
        share = (self.number("late_pct") + self.number("undrained_pct")) / 100
        return share, share * self.scenario.sweep.length_s(str(self.row.get(POINT) or ""))

    @property
    def as_much_lost_at(self) -> float | None:
        """The next lower measured rate, or else the next higher one, if as much was lost at it; otherwise None.

        A lower rate loses less if its loss is a tenth lower, or if a tenth more arrives: far above a capacity the loss
        changes little.
        """
        own, lost = number_of(self.row.get(REQUESTED)), _lost_pct(self.row)
        if own is None or lost is None:
            return None
        known = self.losses.get(_other_values(self.scenario, self.row), ())
        below, above = [each for each in known if each[0] < own], [each for each in known if each[0] > own]
        if not below and not above:
            return None
        rate, there = max(below) if below else min(above)
        lower, higher = (there, lost) if below else (lost, there)
        falls = lower <= 0.9 * higher or 100 - lower >= 1.1 * (100 - higher)
        return None if falls else rate


def _lost_pct(row: Row) -> float | None:
    return number_of(row.get(LOSS_HIGH) if LOSS_HIGH in row else row.get(LOSS))


class RowWarning(HydraWarning):
    """A warning of a row."""

    @classmethod
    def found_in(cls, _: RowContext) -> Iterable[HydraWarning]:
        """The warnings of this class that a row has."""
        return []
