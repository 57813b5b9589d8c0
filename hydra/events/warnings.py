"""Everything that has to be known before the figures of a run are believed, each with what to do about it.

A warning of a row says nothing of which row it is: where it is shown, the row stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hydra.errors import EXIT_INCOMPLETE
from hydra.events.event import Event, Level
from hydra.events.words import describe
from hydra.model import StepPlan

_NAMED: Final = 4
"""Columns that a warning names, of those with fewer figures than repeats."""
_GO_ON: Final = "go on with --resume and the run's directory"


class HydraWarning(Event):
    """Something the user has to know. ``str(warning)`` is its text and its remedy."""

    __slots__ = ()

    kind = "warning"
    level = Level.NOTE
    summary = "what has to be known of the run"

    @property
    def remedy(self) -> str:
        """What to try; "" where nothing is to be done."""
        return ""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


# --- of a run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interrupted(HydraWarning):
    """The user ended the run; ``out`` is its directory."""

    out: str

    @property
    def text(self) -> str:
        return "interrupted: what was measured is kept"

    @property
    def remedy(self) -> str:
        return f"go on with --resume {self.out}"


@dataclass(frozen=True, slots=True)
class RunIncomplete(HydraWarning):
    """A run did not measure all that it was to measure; ``ahead`` is its next step in words."""

    level = Level.FAIL
    remedy = _GO_ON
    ended: str
    error: str
    ahead: str

    @property
    def text(self) -> str:
        ahead = f"the sweep would go on with {self.ahead}"
        return "; ".join(filter(None, (_how_it_ended(self.ended, self.error), ahead)))


@dataclass(frozen=True, slots=True)
class RunEndedBadly(HydraWarning):
    """A run measured every step, and could not conclude."""

    level = Level.FAIL
    remedy = _GO_ON
    ended: str
    error: str

    @property
    def text(self) -> str:
        return f"{_how_it_ended(self.ended, self.error)}, after its last step"


def _how_it_ended(ended: str, error: str) -> str:
    known = {
        "finished": "",
        "interrupted": "it was interrupted",
        "failed": f"it could not go on: {error}" if error else "it could not go on",
        "": "it was killed, or it still goes on",
    }
    return known.get(ended, f"it ended as {ended!r}")


@dataclass(frozen=True, slots=True)
class StepNotMeasured(HydraWarning):
    """A step failed or was skipped; ``number`` counts the steps of this command from 1."""

    number: int
    plan: StepPlan
    status: str
    reason: str

    @property
    def text(self) -> str:
        return f"step {self.number}: {describe(self.plan)}: {self.status.upper()}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SubscribersFailed(HydraWarning):
    """Subscribers died or fell silent that nobody planned to lose: (number, clients, what became of them) by row."""

    rows: Sequence[tuple[int, object, str]]

    @property
    def text(self) -> str:
        rows = "; ".join(f"row {number} ({clients} clients): {gone}" for number, clients, gone in self.rows)
        return f"subscribers failed by themselves, the exit code is {EXIT_INCOMPLETE}: {rows}"


@dataclass(frozen=True, slots=True)
class LeftBehind(HydraWarning):
    """Something of this run that could not be removed from servers that are not ours; ``removal`` says how to."""

    what: str
    where: str
    removal: str

    @property
    def text(self) -> str:
        return f"{self.what} may be left at {self.where}"

    @property
    def remedy(self) -> str:
        return self.removal


@dataclass(frozen=True, slots=True)
class LeftEarlier(HydraWarning):
    """Something that an earlier, killed part of this run had left behind, and what has become of it."""

    what: str
    outcome: str

    @property
    def text(self) -> str:
        return f"an earlier part of this run left {self.what} behind: {self.outcome}"


@dataclass(frozen=True, slots=True)
class BisectedRates(HydraWarning):
    """Rates that an earlier version found by bisection."""

    level = Level.LOSS
    remedy = "measure them again"

    @property
    def text(self) -> str:
        return (
            "an earlier Hydra searched for them by bisection of single steps. Whether a step passes is chance, so "
            "another run may have found rates several times as high or as low; no interval is known"
        )


@dataclass(frozen=True, slots=True)
class ForeignRates(HydraWarning):
    """Rates of a search that this version would have carried out otherwise."""

    level = Level.LOSS

    @property
    def text(self) -> str:
        return (
            "another version of Hydra searched for them, and this one would have asked for other steps: they are shown "
            "as that version stored them"
        )


# --- of a row: what is missing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowSkipped(HydraWarning):
    """A row that was not tried."""

    level = Level.FAIL
    reason: str

    @property
    def text(self) -> str:
        return f"SKIPPED: {self.reason or 'no reason was given'}"


@dataclass(frozen=True, slots=True)
class RowFailed(HydraWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    remedy = f"{_GO_ON}: its failed steps are measured again"
    reason: str

    @property
    def text(self) -> str:
        return f"FAILED: {self.reason or 'no reason was given'}"


@dataclass(frozen=True, slots=True)
class RowPartial(HydraWarning):
    """A row whose steps are not all there."""

    remedy = _GO_ON

    @property
    def text(self) -> str:
        return "not finished: the run ended before its last step"


@dataclass(frozen=True, slots=True)
class RowRemark(HydraWarning):
    """What the sweep says of a row that it has figures for."""

    reason: str

    @property
    def text(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class FewerFigures(HydraWarning):
    """Columns that only some of the repeats have a figure for."""

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

    @property
    def text(self) -> str:
        return (
            f"LOSS: {self.low_pct:.6g} to {self.high_pct:.6g} %, and what was received is not known better: a "
            "publisher had so many messages without an acknowledgement that it joined their ranges"
        )


@dataclass(frozen=True, slots=True)
class Loss(HydraWarning):
    """Messages that were lost; ``with_waiting``: an earlier version counted those that still waited among them."""

    level = Level.LOSS
    pct: float
    with_waiting: bool = False

    @property
    def text(self) -> str:
        waiting = " or were still waiting when the drain ended" if self.with_waiting else ""
        return f"LOSS: {self.pct:.6g} % of the messages never arrived{waiting}"


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

    messages: float
    share: float
    behind_s: float

    @property
    def text(self) -> str:
        return (
            f"consumers lagged: at the end of the window {self.messages:,.0f} messages ({100 * self.share:.3g} % of "
            f"what was due, about {self.behind_s:.2g} s) were still to come"
        )


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

    why: object

    @property
    def text(self) -> str:
        return f"the publisher stopped early: {self.why}"


@dataclass(frozen=True, slots=True)
class SendsRefused(HydraWarning):
    """Messages that were refused when they were sent."""

    messages: float

    @property
    def text(self) -> str:
        return f"{self.messages:g} messages were refused by a server or the library"


@dataclass(frozen=True, slots=True)
class HostBusy(HydraWarning):
    """A host without CPU time to spare: it was measured rather than the system."""

    remedy = "use fewer clients on this host, or more hosts"
    mean_pct: float

    @property
    def text(self) -> str:
        return f"a host had no CPU left ({self.mean_pct:.0f} % of all cores)"


@dataclass(frozen=True, slots=True)
class FewReceived(HydraWarning):
    """Subscribers that got too little to have a receive rate."""

    remedy = "measure for longer"
    clients: float

    @property
    def text(self) -> str:
        return f"the receive rate is of {self.clients:g} subscribers only: the others got fewer than two batches"


# --- of a search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchRemark(HydraWarning):
    """What a search says of its figure, or why it has none."""

    search: str
    remark: object

    @property
    def text(self) -> str:
        return f"{self.search}: {self.remark}"


@dataclass(frozen=True, slots=True)
class SlowNotFelt(HydraWarning):
    """Slow clients that never held anything up."""

    remedy = "measure for longer, or make them slower"

    @property
    def text(self) -> str:
        return "slow: the slow clients' buffers never filled, so they were not felt"
