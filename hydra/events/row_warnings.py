"""Everything that has to be known before the figures of a row are believed, each with what to do about it.

A warning says nothing of which row it is: where it is shown, the row stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hydra.events.event import Level
from hydra.events.formatting import duration, number
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.model import PASSED_OVER

_NAMED: Final = 4
"""Columns that a warning names, of those with fewer figures than repeats."""

_QUIET: Final = "end what else runs on that host, or measure while it is quiet"

# --- of a row: what is missing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowSkipped(HydraWarning):
    """A row that was not tried."""

    level = Level.FAIL
    reason: str

    @property
    def text(self) -> str:
        return f"SKIPPED: {self.reason or 'no reason was given'}"

    @property
    def remedy(self) -> str:
        by_hand = self.reason == PASSED_OVER
        return (
            "measure it in another run" if by_hand else "take fewer clients or more agents; hydra check says what fits"
        )


@dataclass(frozen=True, slots=True)
class RowFailed(HydraWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    remedy = f"{GO_ON}: its failed steps are measured again"
    reason: str

    @property
    def text(self) -> str:
        return f"FAILED: {self.reason or 'no reason was given'}"


@dataclass(frozen=True, slots=True)
class RowPartial(HydraWarning):
    """A row whose steps are not all there."""

    remedy = GO_ON

    @property
    def text(self) -> str:
        return "not finished: the run ended before its last step"


@dataclass(frozen=True, slots=True)
class RowRemark(HydraWarning):
    """What the sweep says of a row that it has figures for."""

    remedy = "--repeat measures it several times and shows the spread"
    reason: str

    @property
    def text(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class FewerFigures(HydraWarning):
    """Columns that only some of the repeats have a figure for."""

    remedy = "measure for longer, or repeat it more often"
    count: object
    repeats: object
    columns: Sequence[str]

    @property
    def text(self) -> str:
        others = f" and {len(self.columns) - _NAMED} other columns" if len(self.columns) > _NAMED else ""
        names = ", ".join(self.columns[:_NAMED])
        return f"only {self.count} of {self.repeats} repeats have a figure for {names}{others}"


# --- of a row: lost and late messages --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LossBetween(HydraWarning):
    """Loss (%) that is known as an interval only."""

    level = Level.LOSS
    low_pct: float
    high_pct: float
    as_much_at_pps: float | None = None

    @property
    def remedy(self) -> str:
        return _less_loss(self.as_much_at_pps)

    @property
    def text(self) -> str:
        return (
            f"LOSS: {number(self.low_pct)} to {number(self.high_pct)} %. It cannot be told more exactly: so many "
            "messages were not acknowledged that the publisher could not list them one by one"
        )


@dataclass(frozen=True, slots=True)
class Loss(HydraWarning):
    """Messages that were lost.

    Attributes:
        pct: of all that were to be expected.
        with_waiting: an earlier version counted those that still waited among them.
        as_much_at_pps: the next rate that was measured, where as much was lost; None: there is none.
    """

    level = Level.LOSS
    pct: float
    with_waiting: bool = False
    as_much_at_pps: float | None = None

    @property
    def remedy(self) -> str:
        return _less_loss(self.as_much_at_pps)

    @property
    def text(self) -> str:
        waiting = " or were still waiting when the drain ended" if self.with_waiting else ""
        return f"LOSS: {number(self.pct)} % of the messages never arrived{waiting}"


def _less_loss(as_much_at_pps: float | None) -> str:
    """What to do about a loss: a lower rate is no advice where two rates have shown that it changes nothing."""
    verdict = "the column verdict says what limited it"
    if as_much_at_pps is None:
        return f"ask for a lower rate; {verdict}"
    return (
        f"the rate is not the reason, as much was lost at {number(as_much_at_pps)}/s: look at the way of the messages"
    )


@dataclass(frozen=True, slots=True)
class Undrained(HydraWarning):
    """Messages that a server still kept for the subscribers when the drain ended."""

    remedy = "raise drain_max_s to receive them as well"
    messages: float

    @property
    def text(self) -> str:
        return f"{self.messages:,.0f} messages were still waiting when the drain ended; they are not lost"


@dataclass(frozen=True, slots=True)
class FateUnknown(HydraWarning):
    """Messages that may have been on their way when the drain had to end."""

    remedy = "raise drain_max_s"
    messages: float

    @property
    def text(self) -> str:
        return f"nobody knows what became of {self.messages:,.0f} messages: they had not come when the drain had to end"


@dataclass(frozen=True, slots=True)
class FateOfGone(HydraWarning):
    """Messages that no member of a group has reported; members without a report may have had them."""

    remedy = "how each member ended is among the events of run.db"
    messages: float

    @property
    def text(self) -> str:
        return (
            f"nobody knows what became of {self.messages:,.0f} messages of the group: members that died or never "
            "answered may have received them"
        )


@dataclass(frozen=True, slots=True)
class Lagged(HydraWarning):
    """Subscribers that received less than was sent, and yet lost nothing; ``share`` of what was due."""

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


@dataclass(frozen=True, slots=True)
class NotSteady(HydraWarning):
    """A row whose seconds are not alike, so that its figures are means of different things; ``what`` says how."""

    remedy = "measure for longer, or warm up for longer (warmup_max_s); the report shows the seconds"
    what: Sequence[str]

    @property
    def text(self) -> str:
        return f"not steady: {', '.join(self.what)}" if self.what else "not steady in at least one of its repeats"


# --- of a row: clients and hosts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubscribersGone(HydraWarning):
    """Subscribers that told nothing of what they received."""

    remedy = "how each of them ended is among the events of run.db"
    gone: str

    @property
    def text(self) -> str:
        return f"subscribers that failed without an account: {self.gone}"


@dataclass(frozen=True, slots=True)
class RateMissed(HydraWarning):
    """A publisher that sent less than it was asked to; ``repeats`` is None for a single step."""

    remedy = "ask for a lower rate, or measure with a faster publisher"
    requested_pps: float
    reached_pps: float | None
    repeats: object = None

    @property
    def text(self) -> str:
        reached = "" if self.reached_pps is None else f", it reached {self.reached_pps:,.0f}/s"
        missed = f"the publisher missed the requested rate of {self.requested_pps:,.0f}/s{reached}"
        return missed if self.repeats is None else f"in some of {self.repeats} repeats {missed} on average"


@dataclass(frozen=True, slots=True)
class StoppedEarly(HydraWarning):
    """A publisher that could not go on until the end of the window."""

    remedy = "ask for a lower rate, or give its host more memory"
    why: object

    @property
    def text(self) -> str:
        return f"the publisher stopped early: {self.why}"


@dataclass(frozen=True, slots=True)
class SendsRefused(HydraWarning):
    """Messages that were refused when they were sent."""

    remedy = "ask for a lower rate, or raise the limit that the server's log names"
    messages: float

    @property
    def text(self) -> str:
        return f"{number(self.messages)} messages were refused by a server or the library"


@dataclass(frozen=True, slots=True)
class HostBusy(HydraWarning):
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


@dataclass(frozen=True, slots=True)
class HostShared(HydraWarning):
    """A host with CPU to spare that others used as well."""

    remedy = _QUIET
    others_pct: float

    @property
    def text(self) -> str:
        return f"other processes used about {self.others_pct:.0f} % of a host's CPU"


@dataclass(frozen=True, slots=True)
class GeneratorLimited(HydraWarning):
    """A row whose figures are those of the clients; ``search`` names the figure of a search that is."""

    remedy = "use native clients, fewer clients on a host, or more hosts; hydra ceiling says what they can do"
    search: str = ""

    @property
    def text(self) -> str:
        which = f"{self.search}: " if self.search else ""
        return f"{which}generator-limited: the clients were measured, the system can do more"


# --- of a search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlowNotFelt(HydraWarning):
    """Slow clients that never held anything up, and what it would have taken.

    Attributes:
        sent_pps, read_pps: messages/s that were sent to each of them, and that they read; None: not known.
        duration_s: the length of a step.
        queue: messages that the system's queues hold for one of them; None: not known, or there is no limit.
        queues: the settings that say so.
        kernel: messages that the kernel's buffers hold beside those at most.
    """

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


def _about(messages: float) -> str:
    """A number of which no more than two digits mean anything."""
    return number(float(f"{messages:.2g}"))
