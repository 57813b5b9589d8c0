"""The warnings of a row: when a row has each, its text, and what the user can do.

A warning does not contain its row: tables and reports show the row beside it. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.events.event import Event, Level
from hydra.events.value_formatting import counted, duration, number
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure import column_names
from hydra.measure.acceptance import STALLED_S
from hydra.measure.column import COUNT, REPEATS
from hydra.measure.connections import LOCAL, LOCAL_WHY, NEVER, NEVER_BACK, REFUSED, REFUSED_WHY, TIMED_OUT
from hydra.measure.disturbance import Disturbance, decode_disturbances
from hydra.measure.loss import BACKLOG_S
from hydra.measure.steadiness import Unsteadiness, decode_unsteadiness
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT, SERVER, causes_in
from hydra.measure.verdict import REQUESTED as NOT_LIMITED
from hydra.model import SHARED, SKIPPED_BY, USER, Figure, Scenario, value_of
from hydra.model import number as number_of
from hydra.model.acceptance import BY_SERVER, CONNECTION_LOST, QUOTA
from hydra.model.local_limits import LOCAL_LIMITS
from hydra.report.remedies import (
    FEWER,
    LET_IN,
    LOWER_RATE,
    NETWORK_OR_SERVER,
    OF_REFUSAL,
    QUIET,
    RowLimit,
    against,
)
from hydra.store.system_columns import columns_of, held_by, is_native, of_silent_groups
from hydra.sweep import Row, kind_of
from hydra.sweep.cleanness import gone_of, gone_text, unjudged
from hydra.sweep.host_trouble import others_of

_NAMED: Final = 4
"""The maximum number of columns that a warning about missing figures names."""

_MAIN_CAUSE: Final = 1 / 2
"""The least share of the used CPU at which other processes are the main cause of a busy host."""
_LARGE: Final = 1 / 4
"""The least share of the used CPU at which the first remedy of a busy host is to end other processes."""

LossesByRate = Mapping[tuple[Figure, ...], Sequence[tuple[float, float]]]
"""Rates (messages/s) with the losses (%) of the rows that differ in the rate only, by what these rows share."""


def losses_by_rate(scenario: Scenario, rows: Iterable[Row]) -> LossesByRate:
    """The rates and losses of all rows that have both."""
    found: dict[tuple[Figure, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        rate, lost = number_of(row.get(column_names.REQUESTED)), _lost_pct(row)
        if rate is not None and lost is not None:
            found[_beside_the_rate(scenario, row)].append((rate, lost))
    return found


def _beside_the_rate(scenario: Scenario, row: Row) -> tuple[Figure, ...]:
    names = (column_names.CLIENTS, column_names.PUBLISHERS, *scenario.sweep.varied)
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
        return str(self.row.get(column_names.REASON) or "")

    def number(self, name: str) -> float:
        """A figure of the row; 0 where it has none."""
        return number_of(self.row.get(name)) or 0.0

    @property
    def limited_by(self) -> str:
        """What limited the row; "" if that is unknown, or if nothing did. Repeats may differ in it."""
        verdicts = str(self.row.get(column_names.VERDICT) or "").split(" / ")
        return " / ".join(verdict for verdict in verdicts if verdict != NOT_LIMITED)

    @property
    def limit(self) -> RowLimit:
        """What limited the row, for its remedies."""
        causes = causes_in(str(self.row.get(column_names.VERDICT) or ""))
        reason, local = (str(self.row.get(n) or "") for n in (column_names.REFUSED_REASON, column_names.LOCAL_LIMIT))
        refused = reason if SERVER in causes and reason in BY_SERVER else ""
        others = others_of(self.row, self.disturbances)
        theirs = self.number(REFUSED) or self.number(TIMED_OUT)
        shut_out = "" if theirs else str(self.row.get(LOCAL_WHY) or "")
        return RowLimit(causes, refused, local.split(" / ")[0], others, shut_out)

    @property
    def sharing(self) -> str:
        """What divides the messages among subscribers: ``group`` or ``topics``; "": each receives all of them."""
        topics = "topics" if self.number(column_names.COPIES_EXPECTED) else ""
        return "group" if self.row.get(column_names.GROUP) else topics

    @property
    def unheard(self) -> str:
        """What a user checks if no member of a group received anything; "": one did, or this is unknown."""
        nothing = self.row.get(column_names.GROUP) and self.row.get("total_rx") == 0
        return of_silent_groups(self.scenario) if nothing else ""

    @property
    def disturbances(self) -> Sequence[Disturbance]:
        """What disturbed the row, for each host on which something did."""
        return decode_disturbances(str(self.row.get(column_names.DISTURBED) or ""))

    @property
    def unreported(self) -> tuple[str, bool]:
        """How many subscribers died or fell silent, "" if none; then whether other subscribers lost messages."""
        gone = gone_of(self.row)
        return gone, bool(gone) and self.number("failed_lossy") > 0

    @property
    def backlog(self) -> tuple[float, float]:
        """The messages late and undrained, as a share of the messages due and in seconds of traffic."""
        share = (self.number("late_pct") + self.number("undrained_pct")) / 100
        return share, share * self.scenario.sweep.length_s(str(self.row.get(column_names.POINT) or ""))

    @property
    def as_much_lost_at(self) -> float | None:
        """The next lower measured rate, or else the next higher one, if as much was lost at it; otherwise None.

        A lower rate loses less if its loss is a tenth lower, or if a tenth more arrives: far above a capacity the loss
        changes little.
        """
        own, lost = number_of(self.row.get(column_names.REQUESTED)), _lost_pct(self.row)
        if own is None or lost is None:
            return None
        known = self.losses.get(_beside_the_rate(self.scenario, self.row), ())
        below, above = [each for each in known if each[0] < own], [each for each in known if each[0] > own]
        if not below and not above:
            return None
        rate, there = max(below) if below else min(above)
        lower, higher = (there, lost) if below else (lost, there)
        falls = lower <= 0.9 * higher or 100 - lower >= 1.1 * (100 - higher)
        return None if falls else rate


def _lost_pct(row: Row) -> float | None:
    return number_of(row.get(column_names.LOSS_HIGH) if column_names.LOSS_HIGH in row else row.get(column_names.LOSS))


def warnings_of(row: Row, scenario: Scenario, rows: Sequence[Row] = ()) -> list[HydraWarning]:
    """The warnings of a row.

    Args:
        row: the row.
        scenario: the scenario of the run.
        rows: all rows of the run.
    """
    return _warnings(RowContext(row, scenario, losses_by_rate(scenario, rows)))


def warnings_of_rows(scenario: Scenario, rows: Sequence[Row]) -> list[list[HydraWarning]]:
    """The warnings of each row of a run."""
    losses = losses_by_rate(scenario, rows)
    return [_warnings(RowContext(row, scenario, losses)) for row in rows]


def _warnings(about: RowContext) -> list[HydraWarning]:
    kind = kind_of(about.scenario)
    return [*_found(about, StatusWarning), *kind.warnings(about.row), *_found(about, FigureWarning)]


def _found(about: RowContext, of: type[RowWarning]) -> list[HydraWarning]:
    """The warnings of one base class, in the order in which their classes are defined."""
    return [each for kind in Event.kinds.values() if issubclass(kind, of) for each in kind.found_in(about)]


class RowWarning(HydraWarning):
    """A warning of a row."""

    @classmethod
    def found_in(cls, _: RowContext) -> Iterable[HydraWarning]:
        """The warnings of this class that a row has."""
        return []


class StatusWarning(RowWarning):
    """Something is missing in a row."""


class FigureWarning(RowWarning):
    """Something limits what the figures of a row mean."""


# --- what is missing -------------------------------------------------------------------------------------------------


class RowSkipped(StatusWarning):
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
        if about.row.get(column_names.STATUS) == "skipped":
            yield cls(about.reason or _NO_REASON, about.row.get(SKIPPED_BY) == USER)


_NO_REASON: Final = "no reason was given"


class RowFailed(StatusWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    template = "FAILED: {reason}"
    remedy = f"{GO_ON}: Hydra measures the failed steps again"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(about.reason or _NO_REASON)] if about.row.get(column_names.STATUS) == "failed" else []


class RowPartial(StatusWarning):
    """A row with steps that were not measured."""

    level = Level.LOSS
    template = "not finished: the run ended before the last step of this row"
    remedy = GO_ON

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls()] if about.row.get(column_names.STATUS) == "partial" else []


class StepRetried(StatusWarning):
    """A row with a failed step that was measured again."""

    kind = "second_try"

    template = "{reason}"
    remedy = "--repeat measures the row several times and shows the spread"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STATUS) not in ("skipped", "failed", "partial") and about.reason:
            yield cls(about.reason)


class PartialRepeats(StatusWarning):
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


# --- lost and late messages ------------------------------------------------------------------------------------------


_HOW_ENDED: Final = "see in the table events of run.db how each subscriber ended"


def _less_loss(warning: LossInterval | MessagesLost) -> str:
    """The remedy of a loss; that of the rate only if subscribers with a report lost messages, too."""
    by_load = warning.unheard or against(warning.limit, _by_rate(warning.as_much_at_pps, warning.limited_by))
    if not warning.unreported:
        return by_load
    return f"{_HOW_ENDED}{f'; for the other subscribers, {by_load}' if warning.others_lost else ''}"


def _by_rate(as_much_at_pps: float | None, limited_by: str) -> str:
    """The remedy of a loss that is due to the load; not a lower rate if two rates lost equally much."""
    if as_much_at_pps is None:
        return f"{LOWER_RATE}; the row was limited by: {limited_by}" if limited_by else LOWER_RATE
    return (
        f"the rate is not the cause, because as much was lost at {number(as_much_at_pps)}/s: check the hosts, the "
        "network and the servers"
    )


def _of_unreported(unreported: str) -> str:
    """What a loss has from subscribers that sent no report; "" if all sent one."""
    return f", among them those of subscribers that sent no report ({unreported})" if unreported else ""


_UNLISTED: Final[Mapping[str, str]] = {
    "publisher": "a publisher could not list all its unacknowledged messages",
    "members": "members of the consumer group could not list all messages that they received",
}


class LossInterval(FigureWarning):
    """A loss (%) of which only limits are known.

    Attributes:
        low_pct, high_pct: the limits.
        unlisted: the clients that could not list messages, ``publisher`` or ``members`` of a group; several: one or
            both of them.
        as_much_at_pps, limited_by, unreported, others_lost, limit, unheard: as for :class:`MessagesLost`.
    """

    kind = "loss_between"

    level = Level.LOSS
    template = (
        "LOSS: {low_pct:number} to {high_pct:number} % of the messages{of_unreported}; the exact share is unknown, "
        "because {because}"
    )
    low_pct: float
    high_pct: float
    unlisted: Sequence[str] = ("publisher",)
    as_much_at_pps: float | None = None
    limited_by: str = ""
    unreported: str = ""
    others_lost: bool = False
    limit: RowLimit = RowLimit()
    unheard: str = ""

    @property
    def of_unreported(self) -> str:
        """What the loss has from subscribers that sent no report."""
        return _of_unreported(self.unreported)

    @property
    def because(self) -> str:
        """Which clients could not list which messages."""
        return ", or ".join(_UNLISTED[who] for who in self.unlisted)

    @property
    def remedy(self) -> str:
        remedies = {
            "members": "use shorter steps or a lower rate, so members have fewer messages to list",
            "publisher": _less_loss(self),
        }
        return "; ".join(remedy for who, remedy in remedies.items() if who in self.unlisted)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        said = str(row.get(column_names.LOSS_UNLISTED))
        low, high = about.number(column_names.LOSS_LOW), about.number(column_names.LOSS_HIGH)
        unlisted = [who for who in _UNLISTED if who in said]
        same, cause = about.as_much_lost_at, about.limited_by
        found = cls(low, high, unlisted, same, cause, *about.unreported, about.limit, about.unheard)
        return [found] if isinstance(row.get(column_names.LOSS_HIGH), float) else []


class MessagesLost(FigureWarning):
    """Messages that were lost.

    Attributes:
        pct: in % of the expected messages.
        as_much_at_pps: the neighbouring rate that lost as much; None: there is none.
        limited_by: what limited the row, its verdict; "": not known, or nothing.
        unreported: how many subscribers died or fell silent; "": none.
        others_lost: whether other subscribers lost messages, too.
        limit: the causes that decide the remedy.
        unheard: what to check if no member of a group received anything; "": one did.
    """

    kind = "loss"

    level = Level.LOSS
    pct: float
    as_much_at_pps: float | None = None
    limited_by: str = ""
    unreported: str = ""
    others_lost: bool = False
    limit: RowLimit = RowLimit()
    unheard: str = ""

    @property
    def text(self) -> str:
        return f"LOSS: {number(self.pct)} % of the messages were lost{_of_unreported(self.unreported)}"

    @property
    def remedy(self) -> str:
        return _less_loss(self)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if (pct := about.number(column_names.LOSS)) and not isinstance(about.row.get(column_names.LOSS_HIGH), float):
            yield cls(pct, about.as_much_lost_at, about.limited_by, *about.unreported, about.limit, about.unheard)


class Undrained(FigureWarning):
    """Messages that a server still kept for the subscribers when the drain ended."""

    level = Level.LOSS
    template = (
        "{messages:message was|messages were} still waiting in a server when the drain ended: counted as undrained, "
        "not as lost"
    )
    remedy = "raise drain_max_s; then subscribers also receive these messages"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("undrained")) else []


class OutcomeUnknown(FigureWarning):
    """Messages that may have been on their way when the drain reached its time limit."""

    kind = "fate_unknown"

    level = Level.LOSS
    template = (
        "{messages:message|messages} had not arrived when the drain reached its time limit: counted as unknown, "
        "because messages may be lost or still on their way"
    )
    remedy = "raise drain_max_s"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("unknown")) and not _had_by_gone(about.row) else []


class GroupOutcomeUnknown(FigureWarning):
    """Messages that no member of a group has reported; members without a report may have received them."""

    kind = "fate_of_gone"

    level = Level.LOSS
    template = (
        "{messages:message is|messages are} in no report of a member of the consumer group: counted as unknown, "
        "because members that died or never answered may have received them"
    )
    remedy = _HOW_ENDED
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("unknown")) and _had_by_gone(about.row) else []


def _had_by_gone(row: Row) -> bool:
    """Whether members of a group that died or fell silent may have received messages."""
    return bool(row.get(column_names.GROUP)) and bool(gone_of(row))


_FEWER_MESSAGES: Final[Mapping[str, str]] = {
    "group": "use a lower rate, or more members of the group",
    "topics": "use a lower rate, or fewer topics for each subscriber (topics_per_client)",
    "": LOWER_RATE,
}
"""What leaves fewer messages for a subscriber, by what divides them among subscribers; more subscribers do not, if each
receives all of them."""


class BacklogAtEnd(FigureWarning):
    """Messages that arrived after the window or still waited in a server; ``share`` of the messages due."""

    kind = "lagged"

    level = Level.LOSS
    messages: float
    share: float
    behind_s: float
    limit: RowLimit = RowLimit()
    sharing: str = ""

    @property
    def remedy(self) -> str:
        return against(self.limit, _FEWER_MESSAGES[self.sharing])

    @property
    def text(self) -> str:
        return (
            f"backlog: when the window ended, {counted(self.messages, 'message')} ({number(100 * self.share)} % of the "
            f"messages due, about {number(self.behind_s)} s of traffic) had not arrived yet"
        )

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        share, behind_s = about.backlog
        # The subscribers outside the cohort; a consumer group receives each message once.
        takers = (
            1 if row.get(column_names.GROUP) else about.number(column_names.CLIENTS) - about.number("cohort_clients")
        )
        expected = about.number(column_names.COPIES_EXPECTED)  # 0 with one topic, whose messages each of them takes
        each = expected / about.number(column_names.CLIENTS) if expected else about.number("total_tx")
        messages = share * each * takers
        return [cls(messages, share, behind_s, about.limit, about.sharing)] if behind_s > BACKLOG_S else []


class LateMessages(FigureWarning):
    """Late messages, ``pct`` of the messages expected, that fail a row, although its mean backlog is small."""

    level = Level.LOSS
    template = (
        "LATE: {pct:number} % of the messages arrived after the window, at some subscribers more than 100 ms of traffic"
    )
    pct: float
    limit: RowLimit = RowLimit()
    sharing: str = ""

    @property
    def remedy(self) -> str:
        return against(self.limit, _FEWER_MESSAGES[self.sharing])

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        pct, (_, behind_s) = about.number("late_pct"), about.backlog
        lost = number_of(about.row.get(column_names.LOSS))
        within = lost is not None and lost <= about.number(column_names.LOSS_TARGET)
        missing = about.number("undrained") or about.number("unknown") or about.number(column_names.UNACCEPTED)
        if about.row.get(column_names.PASSED) is False and pct and behind_s <= BACKLOG_S and within and not missing:
            yield cls(pct, about.limit, about.sharing)


_NAMED_SECONDS: Final = 3
"""A warning names this number of the largest differences: a row of an hour can have hundreds."""


class UnsteadyRow(FigureWarning):
    """A row whose seconds are not alike, so its figures are means of different loads or states.

    ``seconds`` holds how they differ; for a row with repeats, only whether the first repeat was slow.
    """

    kind = "not_steady"

    seconds: Sequence[Unsteadiness]

    @property
    def remedy(self) -> str:
        if any(each.kind == "stop" for each in self.seconds):
            return "find out what stopped the servers, the network or the hosts; the report plots the seconds"
        return "use longer steps, or a longer warm-up (warmup_max_s); the report plots the seconds"

    @property
    def text(self) -> str:
        how = f": {_largest(self.seconds)}" if self.seconds else " in at least one of its repeats"
        return f"not steady{how}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STEADY) is False:
            text = str(about.row.get(column_names.UNSTEADY) or "")
            if REPEATS in about.row:  # texts of repeats end with their count, but for the one about the first repeat
                text = text.split("; ")[0] if text.startswith("first ") else ""
            yield cls(decode_unsteadiness(text))


def _largest(seconds: Sequence[Unsteadiness]) -> str:
    """The largest differences in the order of time, and the number of the others."""
    most = sorted(seconds, key=lambda each: (each.for_s, abs(each.by)), reverse=True)[:_NAMED_SECONDS]
    left = len(seconds) - len(most)
    others = f", and {counted(left, 'other difference')}" if left else ""
    return ", ".join(_differs(each) for each in seconds if each in most) + others


def _differs(found: Unsteadiness) -> str:
    """How seconds of a row differ from the others."""
    by = f"{number(100 * abs(found.by))} % {'less' if found.by < 0 else 'more'} was received"
    if found.kind == "stop":
        return f"nothing was received for about {number(found.for_s)} s from second {found.at_s} on"
    if found.kind == "short":
        return f"{by} in second {found.at_s} than was due"
    if found.kind == "beginning":
        return f"{by} in the first {found.at_s} s than later"
    if found.kind == "first":
        return f"{by} in the first repeat than in the others"
    if found.kind == "change":
        return f"{by} from second {found.at_s} on than before"
    return f"{by} in second {found.at_s} than in the median second"


# --- clients and hosts -----------------------------------------------------------------------------------------------


class SubscribersWithoutReport(FigureWarning):
    """Subscribers that sent no report.

    Attributes:
        died, silent: number of subscribers; means of repeats.
        died_by: how the dead subscribers ended, as in the column of that name; "": not known.
    """

    kind = "subscribers_gone"

    level = Level.LOSS
    template = (
        "subscribers that sent no report: {gone}; what they received after their last progress message is unknown"
    )
    remedy = _HOW_ENDED
    died: float
    silent: float
    died_by: str = ""

    @property
    def gone(self) -> str:
        """How many died, how, and how many were silent: ``1 died (SIGKILL), 2 never answered``."""
        return gone_text(self.died, self.silent, self.died_by)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        died, silent = map(about.number, column_names.GONE)
        return [cls(died, silent, str(about.row.get(column_names.DIED_BY) or ""))] if died or silent else []


class NotLetIn(FigureWarning):
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
        own, theirs = LOCAL_LIMITS.get(self.limit), self.refused or self.timed_out
        return "; ".join(filter(None, (own and f"on that host, {own.remedy}", LET_IN if theirs or not own else "")))

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if never := about.number(NEVER):
            refused, timed_out, local = (about.number(name) for name in (REFUSED, TIMED_OUT, LOCAL))
            why, limit = (str(about.row.get(name) or "") for name in (REFUSED_WHY, LOCAL_WHY))
            yield cls(never, refused, timed_out, local, why, limit)


class NeverBack(FigureWarning):
    """Subscribers that were disconnected and never came back; a mean of repeats."""

    level = Level.LOSS
    template = "{subscribers:g} of the subscribers that were disconnected never came back"
    remedy = "see the server's log; a longer step leaves them more time"
    subscribers: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        never = about.number(NEVER_BACK)
        return [cls(never)] if never else []


class LostBySilence(FigureWarning):
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
        if lost := about.number(column_names.LOST_BY_SILENCE):
            yield cls(counted(math.ceil(lost), "connection"))


class RateMissed(FigureWarning):
    """A publisher that did not reach the requested rate.

    Attributes:
        requested_pps, reached_pps: messages/s; None: not known.
        repeats: their number; None for a single step.
        limit: the causes that decide the remedy.
    """

    level = Level.LOSS
    requested_pps: float
    reached_pps: float | None
    repeats: Figure = None
    limit: RowLimit = RowLimit()

    @property
    def remedy(self) -> str:
        return against(self.limit, "use a lower rate, or a faster publisher")

    @property
    def text(self) -> str:
        of = "" if self.repeats is None else f"in at least one of {self.repeats} repeats "
        over = "" if self.repeats is None else " over all repeats"
        mean = "" if self.reached_pps is None else f"; the mean rate{over} was {number(self.reached_pps)}/s"
        return f"{of}a publisher did not reach the requested rate of {number(self.requested_pps)}/s{mean}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        # If publishers sent in time, or lost their connection, another warning states what the system did.
        if row.get(column_names.PUBLISHERS_SLOW) == 0:
            return
        if row.get(column_names.RATE_SENT, row.get(column_names.RATE_HELD)) is False:
            reached = number_of(row.get(column_names.AVG_TX))
            yield cls(about.number(column_names.REQUESTED), reached, row.get(REPEATS), about.limit)


class BatchNotFilled(FigureWarning):
    """Publishers sent smaller batches than the setting asks for, although enough messages were there to fill them."""

    remedy = "use a longer linger, or a smaller batch; the row is one of the batch that was reached"
    asked: float
    reached: float
    name: str

    @property
    def text(self) -> str:
        asked = f"{self.name} asks for {number(self.asked)}"
        return f"a batch had {counted(self.reached, 'message')} on average, and {asked}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row, scenario = about.row, about.scenario
        column = next((c for c in columns_of(scenario).values() if c.reached), None)
        asked = column and number_of(row.get(column.name))
        reached = column and number_of(row.get(column.reached))
        if column is None or not asked or not reached or not _fills(about, asked):
            return []
        # A batch ends with the last message, and may have a limit of bytes.
        publishers = number_of(row.get(column_names.PUBLISHERS)) or scenario.publishers
        possible = min(asked, about.number("sent") / publishers)
        size = number_of(_setting(about, "message_size"))
        if size and (limit := number_of(row.get("batch_bytes"))):
            possible = min(possible, limit / size)
        return [cls(asked, reached, column.name)] if reached < _FILLED * possible else []


_FILLED: Final = 0.9
"""A batch of this share of the possible messages counts as full: the last one of a step is not."""


def _fills(about: RowContext, asked: float) -> bool:
    """Whether publishers had enough messages for full batches: at rate ``max``, or while a batch may wait."""
    rate = about.row.get(column_names.REQUESTED)
    if rate == "max":
        return True
    waits_s = (number_of(_setting(about, "linger_ms")) or 0.0) / 1000
    logs = number_of(_setting(about, "partitions")) or 1
    return (number_of(rate) or 0.0) * waits_s >= asked * logs


def _setting(about: RowContext, name: str) -> Figure:
    """A setting of the row; None if its system has none of this name."""
    if name in about.row:
        return about.row[name]
    settings = about.scenario.settings
    return value_of(settings, name) if name in (*SHARED, *settings.system) else None


class NotJudged(FigureWarning):
    """A row of which it is unknown whether it is clean."""

    level = Level.LOSS
    template = "{what}"
    remedy = "measure the row again; if its messages have no header, this stays unknown"
    what: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STATUS) != "ok" or column_names.LOSS_HIGH in about.row:
            return []
        return map(cls, unjudged(about.row))


class StoppedEarly(FigureWarning):
    """A publisher that stopped before the end of the window."""

    template = "a publisher stopped before the end of the window: {why}"
    remedy = "use a lower rate, or give its host more memory"
    why: Figure

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(why)] if (why := about.row.get("stopped_early")) else []


_BY_TEXT: Final = "see the text of the server, and its log"


class SendsRefused(FigureWarning):
    """Messages that were rejected when they were sent, or later.

    Attributes:
        messages: their number; a mean of repeats.
        sent: the messages that the libraries took.
        reason: the first reason in a word, as in the column `refused_reason`; "": not known. Of repeats it is that
            of the first repeat with one.
        said: the text of the server or the library.
    """

    messages: float
    sent: float = 0.0
    reason: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        of = f" of {number(self.sent)}" if self.sent else ""
        why = f": {self.reason.replace('_', ' ')}" if self.reason else ""
        said = f" ({self.said})" if self.said else ""
        what = counted(self.messages, "message was", "messages were") if not of else ""
        what = what or f"{number(self.messages)}{of} messages were"
        return f"{what} rejected by a server or the library{why}{said}"

    @property
    def remedy(self) -> str:
        return OF_REFUSAL.get(self.reason, _BY_TEXT)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        words = [str(row.get(name) or "") for name in (column_names.REFUSED_REASON, column_names.REFUSED_TEXT)]
        return [cls(messages, about.number("sent"), *words)] if (messages := about.number("tx_failed")) else []


class SendsUnanswered(FigureWarning):
    """Messages that the system neither accepted nor rejected before the publishers stopped waiting for answers."""

    level = Level.LOSS
    template = (
        "{messages:message was|messages were} never acknowledged: counted as not accepted, although some may have "
        "arrived"
    )
    remedy = "see the server's log: it may be full, overloaded or stopped, or the connection was lost"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number(column_names.UNANSWERED)) else []


class PublisherThrottled(FigureWarning):
    """A server that delayed a publisher because of a quota, without rejecting a message for it."""

    template = "{said}: the quota limits what the publishers can send"
    remedy = OF_REFUSAL[QUOTA]
    said: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        throttled = row.get(column_names.REFUSED_REASON) == QUOTA and not about.number("tx_failed")
        return [cls(str(row.get(column_names.REFUSED_TEXT)))] if throttled else []


class PublisherStalled(FigureWarning):
    """At rate `max`, a publisher of which the system accepted nothing for a large part of the window."""

    level = Level.LOSS
    template = (
        "the system accepted nothing of a publisher for {stalled_s:number} s, so Tx is a mean of sending and standing"
    )
    remedy = "see the server's log for that time: it may be full, overloaded or stopped, or the connection was lost"
    stalled_s: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        stalled_s = about.number(column_names.STALLED)
        progress = about.row.get(column_names.PROGRESS)
        return [cls(stalled_s)] if progress is False and stalled_s >= STALLED_S else []


class ConnectionsLost(FigureWarning):
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
        publishers = about.number(column_names.PUBLISHERS_LOST)
        subscribers = about.number(column_names.SUBSCRIBERS_LOST)
        row, of = about.row, column_names
        why, reason = row.get(of.LOST_WHY) or row.get(of.SUBSCRIBERS_LOST_WHY) or "", row.get(of.LOST_REASON) or ""
        return [cls(publishers, subscribers, str(why), str(reason))] if publishers or subscribers else []


class HostBusy(FigureWarning):
    """A host with no CPU time left: it limited the row.

    Attributes:
        mean_pct: the part of the CPU that was used.
        others_pct: the part that other processes used; None: unknown or small.
        named: whether another warning of the row names these processes and their CPU.
    """

    mean_pct: float
    others_pct: float | None = None
    named: bool = False

    @property
    def text(self) -> str:
        told = self.others_pct is not None and not self.named
        others = f", about {self.others_pct:.0f} % by other processes" if told else ""
        return f"a host had no CPU left: {self.mean_pct:.0f} % of the time of all cores was used{others}"

    @property
    def remedy(self) -> str:
        share = (self.others_pct or 0.0) / self.mean_pct
        if share < _LARGE:
            return FEWER
        if self.named:
            return f"if it stays busy without the other processes, {FEWER}"
        return QUIET if share >= _MAIN_CAUSE else f"{QUIET}; if it stays busy, {FEWER}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        others = others_of(about.row, about.disturbances)
        named = any(each.others_pct for each in about.disturbances)
        if (mean := about.number(column_names.HOST_CPU)) >= BUSY_HOST_PCT:
            yield cls(mean, others if others >= OTHERS_PCT else None, named)


class HostShared(FigureWarning):
    """A host with CPU time left, which other processes used as well."""

    template = "other processes used about {others_pct:.0f} % of a host's CPU"
    remedy = QUIET
    others_pct: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        others = about.number(column_names.HOST_OTHERS)
        shared = others >= OTHERS_PCT and about.number(column_names.HOST_CPU) < BUSY_HOST_PCT
        # The warning about a disturbed row names these processes.
        return [cls(others)] if shared and not any(each.others_pct for each in about.disturbances) else []


class RowDisturbed(FigureWarning):
    """A row in which others used the CPU of a host, memory was swapped out, the machine changed, or its clock jumped.

    ``hosts`` has an object for each host on which something did, with the fields of the column ``disturbed``; in a row
    with repeats, one for each repeat that differs.
    """

    hosts: Sequence[Disturbance]

    @property
    def text(self) -> str:
        return f"disturbed: {'; '.join(filter(None, map(_disturbed, _by_host(self.hosts))))}"

    @property
    def remedy(self) -> str:
        remedies = {
            QUIET: any(each.others_pct for each in self.hosts),
            "cool the CPU, or raise the CPU quota of the control group": any(each.throttled for each in self.hosts),
            "look at temperature and power limit, or switch boost off (hydra check)": any(
                each.frequencies_mhz for each in self.hosts
            ),
            "end what uses the memory of that host, or start fewer clients there": any(
                each.swapped_bytes for each in self.hosts
            ),
            "change the machine only between runs": any(each.changed for each in self.hosts),
            "measure when the host is not suspended, nor moved to other hardware": any(
                each.clock_jumps for each in self.hosts
            ),
        }
        return "; ".join(text for text, needed in remedies.items() if needed)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(found)] if (found := about.disturbances) else []


def _by_host(hosts: Sequence[Disturbance]) -> list[list[Disturbance]]:
    """The disturbances of each host, with the most CPU of others first."""
    found: dict[str, list[Disturbance]] = defaultdict(list)
    for each in hosts:
        found[each.host].append(each)
    return [sorted(its, key=lambda each: -each.others_pct) for its in found.values()]


def _disturbed(repeats: Sequence[Disturbance]) -> str:
    """What disturbed the repeats of a row on one host."""
    worst, parts = repeats[0], []
    most = " at most" if len(repeats) > 1 else ""
    if worst.others_pct:
        names = ", ".join(f"{name} {pct:.0f} %" for name, pct in worst.by if pct >= 1)
        parts.append(f"processes outside the run used{most} {worst.others_pct:.0f} % of the CPU ({names})")
    if throttled := max(each.throttled for each in repeats):
        parts.append(f"the CPU was slowed down{most} {counted(throttled, 'time')}")
    if falls := [each.frequencies_mhz for each in repeats if each.frequencies_mhz]:
        low, high = min(falls, key=lambda each: each[0] / each[1])
        parts.append(f"the frequency of the fastest core fell{most} from {high:.0f} to {low:.0f} MHz under load")
    if swapped := max(each.swapped_bytes for each in repeats):
        parts.append(f"the used swap space grew{most} by {swapped / 1e6:.1f} MB")
    changed = dict.fromkeys(change for each in repeats for change in each.changed)
    parts += [f"{change.fact} was {change.before} and is {change.after}" for change in changed]
    if jumps := max(each.clock_jumps for each in repeats):
        parts.append(f"the clock jumped{most} {counted(jumps, 'time')}")
    return f"on {worst.host}, {', '.join(parts)}"


class GeneratorLimited(FigureWarning):
    """A row that the clients limited.

    Attributes:
        searches: the searched rates that they limited; empty: no search.
        native: whether the clients are native.
    """

    searches: Sequence[str] = ()
    native: bool = False

    @property
    def remedy(self) -> str:
        if self.native:
            return "use fewer clients per host, or more hosts"
        return "use native clients, fewer clients per host, or more hosts"

    @property
    def text(self) -> str:
        which = f"{', '.join(self.searches)}: " if self.searches else ""
        return f"{which}generator-limited: the clients limited the measured rate, not the system"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        ends = f"_{column_names.GENERATOR_LIMITED}"
        limited = [f"_{column}" for column, value in about.row.items() if value is True]
        searches = [each.removesuffix(ends).removeprefix("_") for each in limited if each.endswith(ends)]
        return [cls(list(filter(None, searches)), is_native(about.scenario))] if searches else []


# --- of a search -----------------------------------------------------------------------------------------------------


class SlowClientsWithoutEffect(FigureWarning):
    """Slow subscribers that never delayed other clients, and the settings that would show an effect.

    Attributes:
        sent_pps, read_pps: messages/s that were sent to each slow subscriber, and that it read; None: unknown.
        duration_s: length of a step in seconds.
        queue: messages that the system's queues hold for one subscriber; None: not known, or there is no limit.
        queues: the settings with this limit.
        kernel: further messages that the kernel's buffers hold, at most.
    """

    kind = "slow_not_felt"

    sent_pps: float | None = None
    read_pps: float | None = None
    duration_s: float = 0.0
    queue: float | None = None
    queues: str = ""
    kernel: float = 0.0

    @property
    def text(self) -> str:
        text = (
            "slow: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the "
            "publisher nor other subscribers"
        )
        if not self._is_known:
            return text
        if self._behind_pps <= 0:
            read, sent = number(self.read_pps), number(self.sent_pps)
            return f"{text}: each slow subscriber reads {read}/s, and at most {sent}/s was sent to it"
        more = f", and the kernel's buffers up to {_about(self.kernel)} more" if self.kernel else ""
        hold = "" if self.queue is None else f"; {self.queues} hold {number(self.queue)} messages{more}"
        behind = _about(self._behind_pps * self.duration_s)
        return f"{text}: the backlog of each slow subscriber grows by {behind} messages in a step{hold}"

    @property
    def remedy(self) -> str:
        longer = "use longer steps, or a lower sweep.search.slow_share"
        if not self._is_known:
            return longer
        if self._behind_pps <= 0:
            return "lower sweep.search.slow_share"
        if self.queue is None:
            return f"set a limit: {self.queues}" if self.queues else longer
        held, left = self.queue + self.kernel, self._behind_pps * self.duration_s - self.kernel
        smaller = f", or {self.queues} of {_about(left)} messages in all" if 1 <= left < self.queue else ""
        return (
            f"to see an effect, use steps of at least {duration(held / self._behind_pps)}, a rate of at least "
            f"{_about(float(self.read_pps or 0) + held / self.duration_s)}/s{smaller}"
        )

    @property
    def _is_known(self) -> bool:
        return self.sent_pps is not None and self.read_pps is not None and self.duration_s > 0

    @property
    def _behind_pps(self) -> float:
        return float(self.sent_pps or 0) - float(self.read_pps or 0)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        rates = kind_of(about.scenario).slow_rates(about.row)
        if rates is None or about.row.get("slow_cohort_felt") is not False:
            return []
        held = held_by(about.scenario)
        found = cls(
            *rates,
            duration_s=about.scenario.sweep.duration_s,
            queue=held.queue if held else None,
            queues=held.queues if held else "",
            kernel=held.kernel if held else 0.0,
        )
        return [found]


def _about(messages: float) -> str:
    """A number of messages, rounded to two significant digits."""
    return number(float(f"{messages:.2g}"))
