"""Everything that has to be known before the figures of a row are believed: when a row has it, and what to do about it.

A warning says nothing of which row it is: where it is shown, the row stands beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.events.event import Event, Level
from hydra.events.formatting import duration, number
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure import column_names
from hydra.measure.column import COUNT, REPEATS
from hydra.measure.loss import BACKLOG_S
from hydra.measure.steadiness import Unsteadiness, decode_unsteadiness
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import SKIPPED_BY, USER, Figure, Scenario
from hydra.model import number as number_of
from hydra.store.system_columns import held_by
from hydra.sweep import Row, kind_of

_NAMED: Final = 4
"""Columns that a warning names, of those with fewer figures than repeats."""
_QUIET: Final = "end what else runs on that host, or measure while it is quiet"


@dataclass(frozen=True, slots=True)
class RowContext:
    """A row and what it is looked at beside: the scenario of its run, and all rows of it."""

    row: Row
    scenario: Scenario
    rows: Sequence[Row] = ()

    @property
    def reason(self) -> str:
        """Of its status."""
        return str(self.row.get(column_names.REASON) or "")

    def number(self, name: str) -> float:
        """A figure of the row; 0 where it has none."""
        return number_of(self.row.get(name)) or 0.0

    @property
    def as_much_lost_at(self) -> float | None:
        """The measured rate below this row's, or else the one above, if as much was lost at it; otherwise None.

        Less is lost where the loss is a tenth lower, or a tenth more arrives: far above a capacity the loss changes
        little.
        """
        alike = [
            name
            for name in (column_names.CLIENTS, column_names.PUBLISHERS, *self.scenario.sweep.varied)
            if name != "rate"
        ]
        known = [
            (rate, lost)
            for each in self.rows
            if (rate := number_of(each.get(column_names.REQUESTED))) is not None
            and (lost := _lost_pct(each)) is not None
            and all(each.get(name) == self.row.get(name) for name in alike)
        ]
        own, lost = number_of(self.row.get(column_names.REQUESTED)), _lost_pct(self.row)
        if own is None or lost is None:
            return None
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
    """The warnings of a row; empty when its figures can be taken as they are.

    Args:
        row: the one.
        scenario: of the run.
        rows: all rows of the run.
    """
    about = RowContext(row, scenario, rows)
    return [*_found(about, StatusWarning), *kind_of(scenario).warnings(row), *_found(about, FigureWarning)]


def _found(about: RowContext, of: type[RowWarning]) -> list[HydraWarning]:
    """In the order in which their classes are defined."""
    return [each for kind in Event.kinds.values() if issubclass(kind, of) for each in kind.found_in(about)]


class RowWarning(HydraWarning):
    """What has to be known of a row."""

    @classmethod
    def found_in(cls, _: RowContext) -> Iterable[HydraWarning]:
        """What a row has of it."""
        return []


class StatusWarning(RowWarning):
    """What is missing of a row."""


class FigureWarning(RowWarning):
    """What is wrong with the figures that a row has."""


# --- what is missing -------------------------------------------------------------------------------------------------


class RowSkipped(StatusWarning):
    """A row that was not tried; one that the user skipped in the middle of its repeats has figures, too."""

    level = Level.FAIL
    template = "SKIPPED: {reason}"
    reason: str
    by_user: bool = False

    @property
    def remedy(self) -> str:
        fewer = "take fewer clients or more agents; hydra check says what fits"
        return "measure it in another run" if self.by_user else fewer

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STATUS) == "skipped":
            yield cls(about.reason or _NO_REASON, about.row.get(SKIPPED_BY) == USER)


_NO_REASON: Final = "no reason was given"


class RowFailed(StatusWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    template = "FAILED: {reason}"
    remedy = f"{GO_ON}: its failed steps are measured again"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(about.reason or _NO_REASON)] if about.row.get(column_names.STATUS) == "failed" else []


class RowPartial(StatusWarning):
    """A row whose steps are not all there."""

    template = "not finished: the run ended before its last step"
    remedy = GO_ON

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls()] if about.row.get(column_names.STATUS) == "partial" else []


class StepRetried(StatusWarning):
    """A row that has figures, although a step of it had failed."""

    kind = "second_try"

    template = "{reason}"
    remedy = "--repeat measures it several times and shows the spread"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STATUS) not in ("skipped", "failed", "partial") and about.reason:
            yield cls(about.reason)


class PartialRepeats(StatusWarning):
    """Columns that only some of the repeats have a figure for."""

    kind = "fewer_figures"

    template = "only {count} of {repeats} repeats have a figure for {named}"
    remedy = "measure for longer, or repeat it more often"
    count: Figure
    repeats: Figure
    columns: Sequence[str]

    @property
    def named(self) -> str:
        """The first few of the columns."""
        others = f" and {len(self.columns) - _NAMED} other columns" if len(self.columns) > _NAMED else ""
        return ", ".join(self.columns[:_NAMED]) + others

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        columns: dict[Figure, list[str]] = {}
        for column, count in about.row.items():
            if REPEATS in about.row and column.endswith(COUNT) and column.removesuffix(COUNT) in about.row:
                columns.setdefault(count, []).append(column.removesuffix(COUNT))
        return [cls(count, about.row[REPEATS], its) for count, its in columns.items()]


# --- lost and late messages ------------------------------------------------------------------------------------------


def _less_loss(as_much_at_pps: float | None) -> str:
    """What to do about a loss: a lower rate is no advice where two rates have shown that it changes nothing."""
    if as_much_at_pps is None:
        return "ask for a lower rate; the column verdict says what limited it"
    return (
        f"the rate is not the reason, as much was lost at {number(as_much_at_pps)}/s: look at the way of the messages"
    )


_UNLISTED: Final[Mapping[str, str]] = {
    "publisher": "so many messages were not acknowledged that the publisher could not list them one by one",
    "members": "members of the group could not list one by one what they received",
}


class LossInterval(FigureWarning):
    """Loss (%) that is known as an interval only.

    Attributes:
        low_pct, high_pct: the interval.
        unlisted: who could not list messages, ``publisher`` or ``members`` of a group; several: one of them, or both.
        as_much_at_pps: as of :class:`MessagesLost`.
    """

    kind = "loss_between"

    level = Level.LOSS
    template = "LOSS: {low_pct:number} to {high_pct:number} %. It cannot be told more exactly: {because}"
    low_pct: float
    high_pct: float
    unlisted: Sequence[str] = ("publisher",)
    as_much_at_pps: float | None = None

    @property
    def because(self) -> str:
        """Who could not list what."""
        return ", or ".join(_UNLISTED[who] for who in self.unlisted)

    @property
    def remedy(self) -> str:
        remedies = {
            "members": "take shorter steps, or ask for a lower rate: then members have less to list",
            "publisher": _less_loss(self.as_much_at_pps),
        }
        return "; ".join(remedy for who, remedy in remedies.items() if who in self.unlisted)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        # Runs of earlier versions do not say who: of a group it may have been either.
        said = str(
            row.get(column_names.LOSS_UNLISTED)
            or ("publisher, members" if row.get(column_names.GROUP) else "publisher")
        )
        low, high = about.number(column_names.LOSS_LOW), about.number(column_names.LOSS_HIGH)
        found = cls(low, high, [who for who in _UNLISTED if who in said], about.as_much_lost_at)
        return [found] if isinstance(row.get(column_names.LOSS_HIGH), float) else []


class MessagesLost(FigureWarning):
    """Messages that were lost.

    Attributes:
        pct: of all that were to be expected.
        with_waiting: an earlier version counted those that still waited among them.
        as_much_at_pps: the next rate that was measured, where as much was lost; None: there is none.
    """

    kind = "loss"

    level = Level.LOSS
    pct: float
    with_waiting: bool = False
    as_much_at_pps: float | None = None

    @property
    def text(self) -> str:
        waiting = " or were still waiting when the drain ended" if self.with_waiting else ""
        return f"LOSS: {number(self.pct)} % of the messages never arrived{waiting}"

    @property
    def remedy(self) -> str:
        return _less_loss(self.as_much_at_pps)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if (pct := about.number(column_names.LOSS)) and not isinstance(about.row.get(column_names.LOSS_HIGH), float):
            yield cls(pct, bool(about.number("undrained")) and "lost" not in about.row, about.as_much_lost_at)


class Undrained(FigureWarning):
    """Messages that a server still kept for the subscribers when the drain ended."""

    template = "{messages:,.0f} messages were still waiting when the drain ended; they are not lost"
    remedy = "raise drain_max_s to receive them as well"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("undrained")) else []


class OutcomeUnknown(FigureWarning):
    """Messages that may have been on their way when the drain had to end."""

    kind = "fate_unknown"

    template = "nobody knows what became of {messages:,.0f} messages: they had not come when the drain had to end"
    remedy = "raise drain_max_s"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("unknown")) and not _had_by_gone(about.row) else []


class GroupOutcomeUnknown(FigureWarning):
    """Messages that no member of a group has reported; members without a report may have had them."""

    kind = "fate_of_gone"

    template = (
        "nobody knows what became of {messages:,.0f} messages of the group: members that died or never answered may "
        "have received them"
    )
    remedy = "how each member ended is among the events of run.db"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("unknown")) and _had_by_gone(about.row) else []


def _had_by_gone(row: Row) -> bool:
    """Whether members of a group are gone who may have had messages."""
    return bool(row.get(column_names.GROUP)) and bool(gone_of(row))


class BacklogAtEnd(FigureWarning):
    """Subscribers that received less than was sent, and yet lost nothing; ``share`` of what was due."""

    kind = "lagged"

    remedy = "ask for a lower rate, or divide the work among more subscribers"
    messages: float
    share: float
    behind_s: float

    @property
    def text(self) -> str:
        return (
            f"consumers lagged: at the end of the window {self.messages:,.0f} messages ({number(100 * self.share)} % "
            f"of what was due, about {number(self.behind_s)} s) were still to come"
        )

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        share = (about.number("late_pct") + about.number("undrained_pct")) / 100
        behind_s = share * about.scenario.sweep.length_s(str(row.get(column_names.POINT) or ""))
        # Those outside the cohort; a group takes each message once.
        takers = (
            1 if row.get(column_names.GROUP) else about.number(column_names.CLIENTS) - about.number("cohort_clients")
        )
        messages = share * about.number("total_tx") * takers
        return [cls(messages, share, behind_s)] if behind_s > BACKLOG_S else []


class UnsteadyRow(FigureWarning):
    """A row whose seconds are not alike, so that its figures are means of different things.

    ``seconds`` says how they differ; nothing where only some of its repeats are not steady. Of repeats it says whether
    the first one was slow.
    """

    kind = "not_steady"

    remedy = "measure for longer, or warm up for longer (warmup_max_s); the report shows the seconds"
    seconds: Sequence[Unsteadiness]

    @property
    def text(self) -> str:
        how = f": {', '.join(map(_differs, self.seconds))}" if self.seconds else " in at least one of its repeats"
        return f"not steady{how}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(column_names.STEADY) is False:
            text = str(about.row.get(column_names.UNSTEADY) or "")
            if REPEATS in about.row:  # of each it is said how many repeats it is of, but for what is said of the first
                text = text.split("; ")[0] if text.startswith("first ") else ""
            yield cls(decode_unsteadiness(text))


def _differs(found: Unsteadiness) -> str:
    """How seconds of a row differ from the others."""
    by = f"{number(100 * abs(found.by))} % {'less' if found.by < 0 else 'more'}"
    if found.kind == "beginning":
        return f"{by} was received in the first {found.at_s} s than later"
    if found.kind == "first":
        return f"{by} was received in the first repeat than in the others"
    if found.kind == "change":
        return f"{by} from second {found.at_s} on"
    return f"{by} than usual in second {found.at_s}"


# --- clients and hosts -----------------------------------------------------------------------------------------------


class SubscribersWithoutReport(FigureWarning):
    """Subscribers that told nothing of what they received.

    Attributes:
        died, silent: how many; means of repeats.
        died_by: how those who died did, as the column of that name has it; "": nobody knows.
    """

    kind = "subscribers_gone"

    template = "subscribers that failed without an account: {gone}"
    remedy = "how each of them ended is among the events of run.db"
    died: float
    silent: float
    died_by: str = ""

    @property
    def gone(self) -> str:
        """How many are gone, and how: ``1 died (SIGKILL), 2 never answered``."""
        how = f" ({self.died_by})" if self.died_by else ""
        counts = zip((self.died, self.silent), column_names.GONE.values(), (how, ""), strict=True)
        return ", ".join(f"{number(count)} {what}{by}" for count, what, by in counts if count)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        died, silent = map(about.number, column_names.GONE)
        return [cls(died, silent, str(about.row.get(column_names.DIED_BY) or ""))] if died or silent else []


def gone_of(row: Row) -> str:
    """How many subscribers died or fell silent in a row, "" if none did: ``1 died (SIGKILL), 2 never answered``."""
    died, silent = (number_of(row.get(column)) or 0.0 for column in column_names.GONE)
    return SubscribersWithoutReport(died, silent, str(row.get(column_names.DIED_BY) or "")).gone


class RateMissed(FigureWarning):
    """A publisher that sent less than it was asked to; ``repeats`` is None for a single step."""

    remedy = "ask for a lower rate, or measure with a faster publisher"
    requested_pps: float
    reached_pps: float | None
    repeats: Figure = None

    @property
    def text(self) -> str:
        reached = "" if self.reached_pps is None else f", it reached {self.reached_pps:,.0f}/s"
        missed = f"the publisher missed the requested rate of {self.requested_pps:,.0f}/s{reached}"
        return missed if self.repeats is None else f"in some of {self.repeats} repeats {missed} on average"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row = about.row
        if row.get(column_names.RATE_HELD) is False:
            yield cls(about.number(column_names.REQUESTED), number_of(row.get("avg_tx_rate_pps")), row.get(REPEATS))


class StoppedEarly(FigureWarning):
    """A publisher that could not go on until the end of the window."""

    template = "the publisher stopped early: {why}"
    remedy = "ask for a lower rate, or give its host more memory"
    why: Figure

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(why)] if (why := about.row.get("stopped_early")) else []


class SendsRefused(FigureWarning):
    """Messages that were refused when they were sent."""

    template = "{messages:number} messages were refused by a server or the library"
    remedy = "ask for a lower rate, or raise the limit that the server's log names"
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(messages)] if (messages := about.number("tx_failed")) else []


class HostBusy(FigureWarning):
    """A host without CPU time to spare: it was measured rather than the system.

    ``others_pct`` is what other processes used of it; None: nobody knows, or it was little.
    """

    mean_pct: float
    others_pct: float | None = None

    @property
    def text(self) -> str:
        others = "" if self.others_pct is None else f"; other processes used about {self.others_pct:.0f} %"
        return f"a host had no CPU left ({self.mean_pct:.0f} % of all cores{others})"

    @property
    def remedy(self) -> str:
        theirs = self.others_pct is not None and self.others_pct >= self.mean_pct / 2
        return _QUIET if theirs else "use fewer clients on this host, or more hosts"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        others = about.number(column_names.HOST_OTHERS)
        if (mean := about.number("host_cpu_mean_pct")) >= BUSY_HOST_PCT:
            yield cls(mean, others if others >= OTHERS_PCT else None)


class HostShared(FigureWarning):
    """A host with CPU to spare that others used as well."""

    template = "other processes used about {others_pct:.0f} % of a host's CPU"
    remedy = _QUIET
    others_pct: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        others = about.number(column_names.HOST_OTHERS)
        return [cls(others)] if others >= OTHERS_PCT and about.number("host_cpu_mean_pct") < BUSY_HOST_PCT else []


class GeneratorLimited(FigureWarning):
    """A row whose figures are those of the clients; ``search`` names the figure of a search that is."""

    remedy = "use native clients, fewer clients on a host, or more hosts; hydra ceiling says what they can do"
    search: str = ""

    @property
    def text(self) -> str:
        which = f"{self.search}: " if self.search else ""
        return f"{which}generator-limited: the clients were measured, the system can do more"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        ends = f"_{column_names.GENERATOR_LIMITED}"
        limited = [f"_{column}" for column, value in about.row.items() if value is True]
        return [cls(each.removesuffix(ends).removeprefix("_")) for each in limited if each.endswith(ends)]


# --- of a search -----------------------------------------------------------------------------------------------------


class SlowClientsWithoutEffect(FigureWarning):
    """Slow clients that never held anything up, and what it would have taken.

    Attributes:
        sent_pps, read_pps: messages/s that were sent to each of them, and that they read; None: not known.
        duration_s: the length of a step.
        queue: messages that the system's queues hold for one of them; None: not known, or there is no limit.
        queues: the settings that say so.
        kernel: messages that the kernel's buffers hold beside those at most.
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
        text = "slow: the slow clients' buffers never filled, so they were not felt"
        if not self._is_known:
            return text
        if self._behind_pps <= 0:
            return f"{text}: they read {number(self.read_pps)}/s, and no more than {number(self.sent_pps)}/s was sent"
        more = f", the kernel's buffers up to {_about(self.kernel)} more" if self.kernel else ""
        hold = "" if self.queue is None else f"; {self.queues} hold {number(self.queue)}{more}"
        return f"{text}: they fall behind by {_about(self._behind_pps * self.duration_s)} messages in a step{hold}"

    @property
    def remedy(self) -> str:
        if not self._is_known:
            return "measure for longer, or make them slower"
        if self._behind_pps <= 0:
            return "make them slower: lower sweep.search.slow_share"
        if self.queue is None:
            return f"set a limit: {self.queues}" if self.queues else "measure for longer, or make them slower"
        held, left = self.queue + self.kernel, self._behind_pps * self.duration_s - self.kernel
        smaller = f", or with {self.queues} of {_about(left)} in all" if 1 <= left < self.queue else ""
        return (
            f"they are felt at the latest in steps of {duration(held / self._behind_pps)}, or at "
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
    """A number of which no more than two digits mean anything."""
    return number(float(f"{messages:.2g}"))
