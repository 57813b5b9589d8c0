"""What the system accepted of the messages of a step, and whether the requested rate was held by it. Pure.

A rate is held if the system accepted and carried it. A message counts as *accepted* if a server acknowledged it (or, if
only the growth of its log shows that, if the log grew by it), and without acknowledgements if the publisher's library
took it. Whether enough was accepted and carried is decided by :func:`within`, of rows, searches, ``hydra slo``,
comparisons and verdicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from hydra.model import PublisherReport, Rate
from hydra.model.system_reports import ACCEPTANCE, LOST_COUNTS, AcceptanceReport
from hydra.model.system_reports import LOST_WHY as REPORTED_WHY

SENT_SHARE: Final = 0.99
"""A publisher sent at its rate if its library took at least this share of the messages due."""
STALLED_S: Final = 1.0
STALLED_SHARE: Final = 0.1
"""A publisher made no progress if nothing was accepted for this time, and for this share of the window."""
_US: Final = 1_000_000


_ROUNDING: Final = 1e-9


def within(target: float, accepted: float, arrived: float = 1.0) -> bool:
    """Whether the messages that the system did not accept, and those that it lost, are within the loss target.

    Args:
        target: the share of the messages sent that may be missing.
        accepted: the share of the messages sent that the system accepted.
        arrived: the share of the accepted messages that arrived; 1: only the acceptance is asked for.
    """
    return 1 - accepted * arrived <= target + _ROUNDING


def least_sent(due: float, publishers: int = 1) -> float:
    """The least number of messages of publishers that send at their rates; the last one of each may be at the edge."""
    return max(SENT_SHARE * due - publishers, 0.0)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What the system accepted of the messages of all publishers.

    Attributes:
        sent: messages that the libraries took.
        accepted: of those, messages that the system accepted.
        failed: of those, messages that a server or a library rejected.
        due: messages that were due; None at rate ``max``.
        rate_sent: whether each publisher ran to the end of the window and its library took the messages due; None at
            ``max``.
        held: whether, besides, the system accepted them within the loss target; None at ``max``.
        reason, text: the first reason for which messages were rejected, of the publisher with most of them; "": none.
        stalled_s: the longest time in which a publisher had nothing accepted; None at a numeric rate, or not known.
        slow: publishers that did not send the messages due although they kept their connection.
        lost: publishers whose connection was lost.
        lost_why: why the first of them lost it, as its library or the server states it.
        lost_reason: the reason of the first of them for which a message was rejected; "": none was.
    """

    sent: int
    accepted: int
    failed: int
    due: float | None
    rate_sent: bool | None
    held: bool | None
    reason: str = ""
    text: str = ""
    stalled_s: float | None = None
    slow: int = 0
    lost: int = 0
    lost_why: str = ""
    lost_reason: str = ""

    @property
    def unaccepted(self) -> int:
        """Messages that the libraries took and the system did not accept: rejected, or never answered."""
        return max(self.sent - self.accepted, 0)

    @property
    def unanswered(self) -> int:
        """Messages that had no answer when the publishers had waited for the last ones."""
        return max(self.unaccepted - self.failed, 0)

    @property
    def unaccepted_share(self) -> float:
        """The share (0 to 1) of the messages sent that was not accepted."""
        return self.unaccepted / self.sent if self.sent else 0.0

    def is_accepted(self, target: float) -> bool:
        """Whether the messages that the system did not accept are within the loss target."""
        return within(target, 1 - self.unaccepted_share)

    @property
    def unsent_share(self) -> float:
        """The share of the messages due that the publishers never sent; 0 if they sent at their rate."""
        return 0.0 if self.rate_sent or not self.due else max(1 - self.sent / self.due, 0.0)

    @property
    def unaccepted_of_due(self) -> float:
        """The unaccepted messages as a share of the messages due."""
        return self.unaccepted / self.due if self.due else 0.0

    def progressed(self, window_s: float) -> bool | None:
        """Whether at ``max`` every publisher had messages accepted all the time, and answered; None: another rate.

        Args:
            window_s: the length of the window in seconds.
        """
        if self.due is not None:
            return None
        stalled_s = self.stalled_s or 0.0
        return not (self.unanswered or (stalled_s >= STALLED_S and stalled_s >= STALLED_SHARE * window_s))


def acceptance(reports: Collection[PublisherReport], rate: Rate, length_s: float, target: float = 0.0) -> Acceptance:
    """What the system accepted, and whether the rate was held.

    Args:
        reports: those of all publishers of the step.
        rate: the requested rate of each publisher.
        length_s: the planned length of the window in seconds: a step that was stopped early did not hold its rate.
        target: the loss target, a fraction.
    """
    due = None if rate == "max" else rate * length_s
    accounts = [_report(p.system) for p in reports]
    late = [due is not None and (p.sent < least_sent(due) or bool(p.stopped_early)) for p in reports]
    first = max(accounts, key=lambda each: (bool(each.reason), each.messages), default=AcceptanceReport())
    lost = [each for each in accounts if each.lost_connections]
    cut_off = next((each for each in lost if each.lost_why), lost[0] if lost else AcceptanceReport())
    found = Acceptance(
        sent=sum(p.sent for p in reports),
        accepted=sum(p.acknowledged for p in reports),
        failed=sum(p.failed for p in reports),
        due=None if due is None else due * len(reports),
        rate_sent=None if due is None else not any(late),
        held=None,
        reason=first.reason,
        text=first.text,
        stalled_s=max((each.stalled_us for each in accounts), default=0) / _US if due is None else None,
        slow=sum(is_late and not each.lost_connections for is_late, each in zip(late, accounts, strict=True)),
        lost=len(lost),
        lost_why=cut_off.lost_why,
        lost_reason=cut_off.reason,
    )
    return found if due is None else replace(found, held=found.rate_sent is True and found.is_accepted(target))


def _report(system: Mapping[str, Any] | None) -> AcceptanceReport:
    """A publisher's report; an invalid one of another client counts as none."""
    try:
        return msgspec.convert((system or {}).get(ACCEPTANCE, {}), AcceptanceReport)
    except msgspec.ValidationError:
        return AcceptanceReport()


def subscribers_lost(systems: Iterable[Mapping[str, Any] | None]) -> tuple[int, str]:
    """The subscribers that report a lost connection, and why the first of them lost it; "": none knows it."""
    lost = [system for system in systems if system is not None and any(system.get(key) for key in LOST_COUNTS)]
    return len(lost), next((why for system in lost if isinstance(why := system.get(REPORTED_WHY), str) and why), "")
