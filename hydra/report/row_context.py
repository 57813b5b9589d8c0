"""What warnings of rows are made from: a row, its scenario, and the losses of the other rows. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hydra.events.warnings import HydraWarning
from hydra.measure.column import POINT, REASON, values_of
from hydra.measure.disturbance import Disturbance
from hydra.measure.step_result import StepFigures
from hydra.measure.traffic_columns import CLIENTS
from hydra.measure.verdict import (
    EVENTS,
    HOST,
    LOST_CONNECTIONS,
    NOT_LET_IN,
    NOT_LIMITED,
    OTHERS_PCT,
    OTHERS_SHARE,
    PUBLISHER,
    READ_LIMIT,
    SERVER,
    limiting,
)
from hydra.model import PUBLISHERS, Figure, Scenario
from hydra.model import number as number_of
from hydra.model.machine import LOCAL_LIMITS
from hydra.model.system_reports import (
    BY_SERVER,
    CONNECTION_LOST,
    FULL,
    NO_DESTINATION,
    NO_REPLICAS,
    NO_SPACE,
    NOT_AUTHORIZED,
    QUOTA,
    TIMEOUT,
    TOO_LARGE,
)
from hydra.store.stored_scenario import of_silent_groups
from hydra.sweep import Row
from hydra.sweep.cleanness import disturbances_of, others_of, unreported_in

QUIET: Final = "end the other processes on that host, or measure when they do not run"
FEWER: Final = "use fewer clients on this host, or more hosts"
LOWER_RATE: Final = "use a lower rate"
HOW_ENDED: Final = "see in the table events of run.db how each subscriber ended"

OF_REFUSAL: Final[Mapping[str, str]] = {
    TOO_LARGE: "send smaller messages or batches, or raise the server's limit of a message's size",
    QUOTA: "raise the quota of this user or client at the server, or remove the quota",
    NOT_AUTHORIZED: "allow the user to write there, or use another user",
    NO_SPACE: "make space on the server's disk, or give the server another one",
    FULL: "raise the limit of the stream's messages or bytes, or let it discard old messages",
    NO_REPLICAS: "start the missing servers, or demand fewer replicas in sync",
    NO_DESTINATION: "create the topic or the stream again, and look who removed it",
    TIMEOUT: "use a lower rate, or allow more time for an answer; see the server's log",
    CONNECTION_LOST: "see in the server's log why it ended the connection",
}
"""What the user can do about messages that were rejected for a reason; of others the server's text shows it."""

NETWORK_OR_SERVER: Final = (
    "see in the server's log why it ended the connections; check the network between clients and servers"
)
LET_IN: Final = (
    "raise the server's limits of connections and of open files, lower --connect-rate, or raise --connect-within"
)
PLANNED: Final[Mapping[str, str]] = {
    EVENTS: "the events of the scenario caused this: measure a row without events to see what the system carries",
    READ_LIMIT: "the setting receive_rate limits the subscribers: raise it, or leave it out",
    NOT_LET_IN: LET_IN,
    LOST_CONNECTIONS: NETWORK_OR_SERVER,
}
"""The causes that are no stage on the messages' way, which a lower rate does not change."""


@dataclass(frozen=True, slots=True)
class RowLimit:
    """What is known to have limited a row, for its remedies.

    Attributes:
        causes: those of its verdict.
        refused: the reason for which the limiting server did not accept messages; "": it accepted them, or gave none.
        local: the cause at the hosts of the run; "": none is known.
        shut_out: the limit of their own host that alone kept subscribers from connecting, as in ``connect_local_why``.
        others_pct: the CPU of a host that processes outside the run used, in %.
    """

    causes: Sequence[str] = ()
    refused: str = ""
    local: str = ""
    others_pct: float = 0.0
    shut_out: str = ""


def against(limit: RowLimit, otherwise: str) -> str:
    """The remedy against what limited a row: first what the server and the run itself did, then the hosts of the run.

    Args:
        limit: what limited the row.
        otherwise: the remedy if none of these did.
    """
    if remedy := OF_REFUSAL.get(limit.refused, ""):
        return remedy
    if own := LOCAL_LIMITS.get(limit.shut_out):
        return f"on the subscribers' host, {own.remedy}"
    if planned := [PLANNED[cause] for cause in limit.causes if cause in PLANNED]:
        return "; ".join(planned)
    if not limit.local:
        return otherwise
    return f"limited or delayed by {limit.local}: {at_hosts(limit)}"


def at_hosts(limit: RowLimit, *, same_rate: bool = False) -> str:
    """The remedy against a limit at the hosts of the run; with ``same_rate`` not another rate."""
    if limit.local == PUBLISHER:
        faster = "a faster publisher (native clients, a host with faster cores)"
        return f"use {faster}" if same_rate else f"{LOWER_RATE}, or {faster}"
    if limit.local != HOST:
        return FEWER
    if limit.others_pct >= OTHERS_SHARE:
        return QUIET
    fewer = f"{FEWER}, or a host of its own for the server"
    return f"{QUIET}; otherwise {fewer}" if limit.others_pct >= OTHERS_PCT else fewer


LossesByRate = Mapping[tuple[Figure, ...], Sequence[tuple[float, float]]]
"""Rates (messages/s) with the losses (%) of the rows that differ in the rate only, by what these rows share."""


def losses_by_rate(scenario: Scenario, rows: Iterable[Row]) -> LossesByRate:
    """The rates and losses of all rows that have both."""
    found: dict[tuple[Figure, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        figures = StepFigures.of(row)
        rate, lost = number_of(figures.shares.requested_rate), _lost_pct(figures)
        if rate is not None and lost is not None:
            found[_other_values(scenario, row)].append((rate, lost))
    return found


def _other_values(scenario: Scenario, row: Row) -> tuple[Figure, ...]:
    names = (CLIENTS, PUBLISHERS, *scenario.sweep.varied)
    return tuple(row.get(name) for name in names if name != "rate")


@dataclass(frozen=True)
class RowContext:
    """A row, the scenario of its run, and the losses of all rows of the run."""

    row: Row
    scenario: Scenario
    losses: LossesByRate

    @property
    def reason(self) -> str:
        """The reason of the row's status."""
        return str(self.row.get(REASON) or "")

    @cached_property
    def figures(self) -> StepFigures:
        """The figures of the row in parts; numbers are floats, as the means of repeats are."""
        return StepFigures.of({name: float(value) if type(value) is int else value for name, value in self.row.items()})

    @property
    def limited_by(self) -> str:
        """What limited the row; "" if that is unknown, or if nothing did. Repeats may differ in it."""
        verdicts = values_of(self.figures.limit.verdict)
        return " / ".join(str(verdict) for verdict in verdicts if verdict != NOT_LIMITED)

    @property
    def limit(self) -> RowLimit:
        """What limited the row, for its remedies."""
        limit, reason = self.figures.limit, self.figures.accepted.refused_reason or ""
        causes = limiting(values_of(limit.verdict))
        refused = reason if SERVER in causes and reason in BY_SERVER else ""
        return RowLimit(
            causes, refused, limit.local_limit or "", others_of(self.figures.hosts), self.figures.connecting.shut_out_by
        )

    @property
    def sharing(self) -> str:
        """What divides the messages among subscribers: ``group`` or ``topics``; "": each receives all of them."""
        topics = "topics" if self.figures.topics.copies_expected else ""
        return "group" if self.figures.passing.group else topics

    @property
    def unheard(self) -> str:
        """What a user checks if no member of a group received anything; "": one did, or this is unknown."""
        nothing = self.figures.passing.group and self.figures.totals.total_rx == 0
        return of_silent_groups(self.scenario) if nothing else ""

    @property
    def disturbances(self) -> Sequence[Disturbance]:
        """What disturbed the row, for each host on which something did."""
        return disturbances_of(self.figures.hosts)

    @property
    def unreported(self) -> tuple[str, bool]:
        """How many subscribers died or fell silent, "" if none; then whether other subscribers lost messages."""
        loss = self.figures.loss
        return unreported_in(loss), bool(loss.without_report) and (loss.failed_lossy or 0) > 0

    @property
    def backlog(self) -> tuple[float, float]:
        """The messages late and undrained, as a share of the messages due and in seconds of traffic."""
        loss = self.figures.loss
        share = ((loss.late_pct or 0.0) + (loss.undrained_pct or 0.0)) / 100
        return share, share * self.scenario.sweep.length_s(str(self.row.get(POINT) or ""))

    @property
    def as_much_lost_at(self) -> float | None:
        """The next lower measured rate, or else the next higher one, if as much was lost at it; otherwise None.

        A lower rate loses less if its loss is a tenth lower, or if a tenth more arrives: far above a capacity the loss
        changes little.
        """
        own, lost = number_of(self.figures.shares.requested_rate), _lost_pct(self.figures)
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


def _lost_pct(figures: StepFigures) -> float | None:
    high = figures.loss.client_loss_high_pct
    return figures.totals.client_loss_pct if high is None else high


class RowWarning(HydraWarning):
    """A warning of a row."""

    @classmethod
    def found_in(cls, _: RowContext) -> Iterable[HydraWarning]:
        """The warnings of this class that a row has."""
        return []
