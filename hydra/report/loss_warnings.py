"""The warnings of lost, undrained, unknown and late messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted, number
from hydra.events.warnings import HydraWarning
from hydra.measure.column import UnlistedMessages, values_of
from hydra.measure.loss import BACKLOG_S
from hydra.measure.step_result import StepFigures
from hydra.report.row_context import HOW_ENDED, LOWER_RATE, RowContext, RowLimit, RowWarning, against


def _less_loss(warning: LossInterval | MessagesLost) -> str:
    """The remedy of a loss; it is about the load only if subscribers that sent a report lost messages, too."""
    by_load = warning.unheard or against(warning.limit, _by_rate(warning.as_much_at_pps, warning.limited_by))
    if not warning.unreported:
        return by_load
    return f"{HOW_ENDED}{f'; for the other subscribers, {by_load}' if warning.others_lost else ''}"


def _by_rate(as_much_at_pps: float | None, limited_by: str) -> str:
    """The remedy of a loss that the load causes: a lower rate, unless as much was lost at another rate."""
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


class LossInterval(RowWarning):
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
        loss = about.figures.loss
        if loss.client_loss_high_pct is None:
            return
        repeats = [each for each in values_of(loss.client_loss_unlisted) if isinstance(each, UnlistedMessages)]
        unlisted = [who for who in _UNLISTED if any(who in each.by for each in repeats)]
        low, same, cause = loss.client_loss_low_pct or 0.0, about.as_much_lost_at, about.limited_by
        rest = (*about.unreported, about.limit, about.unheard)
        yield cls(low, loss.client_loss_high_pct, unlisted, same, cause, *rest)


class MessagesLost(RowWarning):
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
        if (pct := about.figures.totals.client_loss_pct) and about.figures.loss.client_loss_high_pct is None:
            yield cls(pct, about.as_much_lost_at, about.limited_by, *about.unreported, about.limit, about.unheard)


class Undrained(RowWarning):
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
        return [cls(messages)] if (messages := about.figures.outcomes.undrained) else []


class OutcomeUnknown(RowWarning):
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
        messages = about.figures.outcomes.unknown
        return [cls(messages)] if messages and not _with_members_without_report(about.figures) else []


class GroupOutcomeUnknown(RowWarning):
    """Messages that no member of a group has reported; members without a report may have received them."""

    kind = "fate_of_gone"

    level = Level.LOSS
    template = (
        "{messages:message is|messages are} in no report of a member of the consumer group: counted as unknown, "
        "because members that died or never answered may have received them"
    )
    remedy = HOW_ENDED
    messages: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        messages = about.figures.outcomes.unknown
        return [cls(messages)] if messages and _with_members_without_report(about.figures) else []


def _with_members_without_report(figures: StepFigures) -> bool:
    """Whether members of a group that died or fell silent may have received messages."""
    return bool(figures.passing.group and figures.loss.without_report)


_FEWER_MESSAGES: Final[Mapping[str, str]] = {
    "group": "use a lower rate, or more members of the group",
    "topics": "use a lower rate, or fewer topics for each subscriber (topics_per_client)",
    "": LOWER_RATE,
}
"""What leaves fewer messages for a subscriber, by what divides them among subscribers; more subscribers do not, if each
receives all of them."""


class BacklogAtEnd(RowWarning):
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
        totals, (share, behind_s) = about.figures.totals, about.backlog
        clients = totals.clients or 0
        # The subscribers outside the cohort; a consumer group receives each message once.
        takers = 1 if about.figures.passing.group else clients - (about.figures.cohort.cohort_clients or 0)
        expected = about.figures.topics.copies_expected  # none with one topic, whose messages each of them takes
        messages = share * (expected / clients if expected else totals.total_tx or 0) * takers
        return [cls(messages, share, behind_s, about.limit, about.sharing)] if behind_s > BACKLOG_S else []


class LateMessages(RowWarning):
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
        figures, (_, behind_s) = about.figures, about.backlog
        pct, lost, passing = figures.loss.late_pct, figures.totals.client_loss_pct, figures.passing
        within = lost is not None and lost <= (passing.loss_target_pct or 0.0)
        missing = figures.outcomes.undrained or figures.outcomes.unknown or figures.accepted.unaccepted_pct
        if passing.passed is False and pct and behind_s <= BACKLOG_S and within and not missing:
            yield cls(pct, about.limit, about.sharing)
