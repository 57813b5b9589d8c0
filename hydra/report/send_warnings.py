"""The warnings of what publishers could not send, and of what the system did not accept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted, number
from hydra.events.warnings import HydraWarning
from hydra.measure.acceptance import STALLED_S
from hydra.measure.column import REPEATS
from hydra.model import PUBLISHERS, Figure, value_of
from hydra.model import number as number_of
from hydra.model.system_reports import QUOTA
from hydra.report.row_context import OF_REFUSAL, RowContext, RowLimit, RowWarning, against
from hydra.store.stored_scenario import added_by


class RateMissed(RowWarning):
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
        figures = about.figures
        # If publishers sent in time, or lost their connection, another warning states what the system did.
        if figures.accepted.publishers_slow == 0:
            return
        if figures.held.rate_sent is False:
            requested = number_of(figures.shares.requested_rate) or 0.0
            yield cls(requested, figures.totals.avg_tx_rate_pps, about.row.get(REPEATS), about.limit)


class BatchNotFilled(RowWarning):
    """Publishers sent smaller batches than the setting asks for, although enough messages were there to fill them."""

    remedy = "use a longer linger, or a smaller batch; the row is one of the batch that was reached"
    asked: float
    reached: float
    name: str

    @property
    def text(self) -> str:
        setting = f"{self.name} asks for {number(self.asked)}"
        return f"a batch had {counted(self.reached, 'message')} on average, and {setting}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        row, scenario = about.row, about.scenario
        batch = added_by(scenario).batch
        wanted, reached = number_of(row.get(batch.name)), number_of(row.get(batch.reached))
        if not wanted or not reached or not _fills(about, wanted):
            return []
        # A batch ends with the last message, and may have a limit of bytes.
        publishers = number_of(row.get(PUBLISHERS)) or scenario.publishers
        possible = min(wanted, (about.figures.accepted.sent or 0) / publishers)
        size = number_of(_setting(about, "message_size"))
        if size and (limit := number_of(row.get("batch_bytes"))):
            possible = min(possible, limit / size)
        return [cls(wanted, reached, batch.name)] if reached < _FILLED * possible else []


_FILLED: Final = 0.9
"""A batch of this share of the possible messages counts as full: the last one of a step is not."""


def _fills(about: RowContext, wanted: float) -> bool:
    """Whether publishers had enough messages for full batches: at rate ``max``, or while a batch may wait."""
    rate = about.figures.shares.requested_rate
    if rate == "max":
        return True
    waits_s = (number_of(_setting(about, "linger_ms")) or 0.0) / 1000
    logs = number_of(_setting(about, "partitions")) or 1
    return (number_of(rate) or 0.0) * waits_s >= wanted * logs


def _setting(about: RowContext, name: str) -> Figure:
    """A setting of the row; None if its system has none of this name."""
    if name in about.row:
        return about.row[name]
    return value_of(about.scenario.settings, name)


class StoppedEarly(RowWarning):
    """A publisher that stopped before the end of the window."""

    template = "a publisher stopped before the end of the window: {why}"
    remedy = "use a lower rate, or give its host more memory"
    why: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(why)] if (why := about.figures.accepted.stopped_early) else []


_BY_TEXT: Final = "see the text of the server, and its log"


class SendsRefused(RowWarning):
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
        reply = f" ({self.said})" if self.said else ""
        what = counted(self.messages, "message was", "messages were") if not of else ""
        what = what or f"{number(self.messages)}{of} messages were"
        return f"{what} rejected by a server or the library{why}{reply}"

    @property
    def remedy(self) -> str:
        return OF_REFUSAL.get(self.reason, _BY_TEXT)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        found = about.figures.accepted
        if found.tx_failed:
            yield cls(found.tx_failed, found.sent or 0.0, found.refused_reason or "", found.refused_text or "")


class SendsUnanswered(RowWarning):
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
        return [cls(messages)] if (messages := about.figures.accepted.tx_unanswered) else []


class PublisherThrottled(RowWarning):
    """A server that delayed a publisher because of a quota, without rejecting a message for it."""

    template = "{said}: the quota limits what the publishers can send"
    remedy = OF_REFUSAL[QUOTA]
    said: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        found = about.figures.accepted
        throttled = found.refused_reason == QUOTA and not found.tx_failed
        return [cls(str(found.refused_text))] if throttled else []


class PublisherStalled(RowWarning):
    """At rate `max`, a publisher of which the system accepted nothing for a large part of the window."""

    level = Level.LOSS
    template = (
        "the system accepted nothing of a publisher for {stalled_s:number} s, so Tx is a mean of sending and standing"
    )
    remedy = "see the server's log for that time: it may be full, overloaded or stopped, or the connection was lost"
    stalled_s: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        found, stalled_s = about.figures.accepted, about.figures.accepted.tx_stalled_s or 0.0
        return [cls(stalled_s)] if found.tx_progress is False and stalled_s >= STALLED_S else []
