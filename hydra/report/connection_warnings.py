"""Warnings of a row about steps and clients that are missing, and about connections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure.column import COUNT, LOST_BY_SILENCE, REPEATS, STATUS
from hydra.measure.loss_columns import Loss
from hydra.model import SKIPPED_BY, USER, Figure
from hydra.model import number as number_of
from hydra.model.machine import LOCAL_LIMITS
from hydra.model.system_reports import CONNECTION_LOST
from hydra.report.row_context import HOW_ENDED, LET_IN, NETWORK_OR_SERVER, OF_REFUSAL, RowContext, RowWarning
from hydra.sweep.cleanness import unreported_in

_NAMED: Final = 4
"""The maximum number of columns that a warning about missing figures names."""


class RowSkipped(RowWarning):
    """A row that was skipped; if the user skipped it during its repeats, it has figures."""

    level = Level.FAIL
    template = "SKIPPED: {reason}"
    reason: str
    by_user: bool = False

    @property
    def remedy(self) -> str:
        fewer = "use fewer clients or more agents; hydra check reports what fits"
        return "measure the row in another run" if self.by_user else fewer

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) == "skipped":
            yield cls(about.reason or _NO_REASON, about.row.get(SKIPPED_BY) == USER)


_NO_REASON: Final = "no reason was given"


class RowFailed(RowWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    template = "FAILED: {reason}"
    remedy = f"{GO_ON}: Hydra measures the failed steps again"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(about.reason or _NO_REASON)] if about.row.get(STATUS) == "failed" else []


class RowPartial(RowWarning):
    """A row with steps that were not measured."""

    level = Level.LOSS
    template = "not finished: the run ended before the last step of this row"
    remedy = GO_ON

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls()] if about.row.get(STATUS) == "partial" else []


class StepRetried(RowWarning):
    """A row with a failed step that was measured again."""

    kind = "second_try"

    template = "{reason}"
    remedy = "--repeat measures the row several times and shows the spread"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) not in ("skipped", "failed", "partial") and about.reason:
            yield cls(about.reason)


class PartialRepeats(RowWarning):
    """Columns without a figure in some of the repeats: the number of repeats with a figure, and its columns."""

    kind = "fewer_figures"

    remedy = "use longer steps or more repeats"
    repeats: Figure
    columns: Sequence[tuple[Figure, Sequence[str]]]

    @property
    def text(self) -> str:
        of = counted(self.repeats, "repeat")
        found = [f"{count} of {of} have a figure for {_some(names)}" for count, names in self.columns]
        return f"only {'; '.join(found)}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        columns: dict[Figure, list[str]] = {}
        for column, count in about.row.items():
            if REPEATS in about.row and column.endswith(COUNT) and column.removesuffix(COUNT) in about.row:
                columns.setdefault(count, []).append(column.removesuffix(COUNT))
        return [cls(about.row[REPEATS], list(columns.items()))] if columns else []


def _some(columns: Sequence[str]) -> str:
    """The first columns, and the number of the others."""
    others = f" and {counted(len(columns) - _NAMED, 'other column')}" if len(columns) > _NAMED else ""
    return ", ".join(columns[:_NAMED]) + others


class SubscribersWithoutReport(RowWarning):
    """Subscribers that sent no report.

    Attributes:
        died, silent: number of subscribers; means of repeats.
        died_by: how the dead subscribers ended, as in the column of that name; "": not known.
    """

    kind = "subscribers_gone"

    level = Level.LOSS
    template = (
        "subscribers that sent no report: {counts}; what they received after their last progress message is unknown"
    )
    remedy = HOW_ENDED
    died: float
    silent: float
    died_by: str = ""

    @property
    def counts(self) -> str:
        """How many died, how, and how many were silent: ``1 died (SIGKILL), 2 never answered``."""
        return unreported_in(Loss(failed_dead=self.died, failed_silent=self.silent, died_by=self.died_by))

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        loss = about.figures.loss
        if loss.without_report:
            yield cls(loss.failed_dead or 0.0, loss.failed_silent or 0.0, str(loss.died_by or ""))


class NotLetIn(RowWarning):
    """Subscribers that were not let in before the window; they lost all its messages.

    Attributes:
        subscribers: their number; a mean of repeats.
        refused, timed_out, local: attempts of all subscribers that failed; means of repeats.
        why: why the first attempt was refused, as the server states it; "": none was.
        limit: the limit of the subscribers' host at which the local ones failed, as in ``connect_local_why``; "": none.
    """

    level = Level.LOSS
    subscribers: float
    refused: float
    timed_out: float
    local: float = 0.0
    why: str = ""
    limit: str = ""

    @property
    def text(self) -> str:
        who = counted(self.subscribers, "subscriber was", "subscribers were")
        why = f" ({self.why})" if self.why else ""
        parts = [f"{self.refused:g} attempts were refused{why}", f"{self.timed_out:g} timed out"]
        if own := LOCAL_LIMITS.get(self.limit):
            parts.append(f"{self.local:g} failed because the subscribers' host had {own.what} ({self.limit})")
        return f"{who} not let in before the window: {', '.join(parts)}"

    @property
    def remedy(self) -> str:
        own, by_server = LOCAL_LIMITS.get(self.limit), self.refused or self.timed_out
        return "; ".join(filter(None, (own and f"on that host, {own.remedy}", LET_IN if by_server or not own else "")))

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        found = about.figures.connecting
        if never := found.never_connected:
            counts = (found.connect_refused or 0.0, found.connect_timed_out or 0.0, found.connect_local or 0.0)
            yield cls(never, *counts, found.connect_refused_why or "", found.connect_local_why or "")


class NeverBack(RowWarning):
    """Subscribers that were disconnected and never came back; a mean of repeats."""

    level = Level.LOSS
    template = "{subscribers:g} of the subscribers that were disconnected never came back"
    remedy = "see the server's log; a longer step leaves them more time"
    subscribers: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(never)] if (never := about.figures.coming_back.never_back) else []


class LostBySilence(RowWarning):
    """A row in which servers ended the connections of subscribers that did not ping, or answer pings, in time.

    Attributes:
        lost: these connections.
    """

    level = Level.LOSS
    template = (
        "keep-alive: {lost} of subscribers ended, because the subscribers sent nothing for longer than the server "
        "waits: their processes did not run in time"
    )
    remedy = (
        "use more hosts or fewer clients on each, or let the server wait longer (its ping interval, or the setting "
        "keepalive)"
    )
    lost: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if lost := number_of(about.figures.reported.get(LOST_BY_SILENCE)):
            yield cls(counted(math.ceil(lost), "connection"))


class ConnectionsLost(RowWarning):
    """Clients that lost their connection to a server, although no event, cohort or connect rate asked for it.

    Attributes:
        publishers, subscribers: their numbers; the highest of repeats.
        why: the reason of the first publisher, otherwise of the first subscriber; "": not known.
        reason: the first reason for which messages of this publisher were rejected, as in the column
            `disconnected_reason`; "": none was.
    """

    level = Level.LOSS
    publishers: float
    subscribers: float
    why: str = ""
    reason: str = ""

    @property
    def remedy(self) -> str:
        if self.reason == CONNECTION_LOST:
            return NETWORK_OR_SERVER
        return OF_REFUSAL.get(self.reason, NETWORK_OR_SERVER)

    @property
    def text(self) -> str:
        who = [
            counted(count, role)
            for count, role in ((self.publishers, "publisher"), (self.subscribers, "subscriber"))
            if count
        ]
        return f"{' and '.join(who)} lost the connection to a server{f': {self.why}' if self.why else ''}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        found = about.figures.accepted
        publishers, subscribers = found.publishers_disconnected or 0.0, found.subscribers_disconnected or 0.0
        why = found.disconnected_why or found.subscribers_disconnected_why or ""
        return [cls(publishers, subscribers, why, found.disconnected_reason or "")] if publishers or subscribers else []
