"""What became of the messages of a step: of each subscriber, or of the group whose members share them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hydra.measure import loss
from hydra.measure.consumer_group import group_fate, united
from hydra.measure.step_subscribers import Asked
from hydra.model import PublisherReport
from hydra.wire.arrays import Flags, Ints, total
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, slots=True, eq=False)
class Accounts:
    """What became of every subscriber's messages, as it was asked: at most and at least received.

    They differ only where a publisher's unacknowledged ranges were joined, or where members of a group could not list
    what they received.

    Attributes:
        most, least: of each. A member of a group loses nothing: its account is what it received.
        group: the group's own account, at most and at least; None where everybody gets everything.
        together: the group as one subscriber.
        gone: whether members of the group have no report.
        joined: whether a publisher's unacknowledged ranges were joined.
    """

    most: loss.Fates
    least: loss.Fates
    group: Mapping[loss.Doubt, loss.Fate] | None = None
    together: SubscriberTable | None = None
    gone: bool = False
    joined: bool = False

    @property
    def exact(self) -> bool:
        """Whether there is nothing in doubt."""
        return self.most is self.least

    @property
    def unlisted(self) -> str:
        """Who could not list messages one by one: ``publisher``, ``members``, both of them, or nobody ("")."""
        return ", ".join([*(["publisher"] if self.joined else []), *(["members"] if self.truncated else [])])

    @property
    def truncated(self) -> bool:
        """Whether members of a group could not list what they received."""
        return self.together is not None and bool(self.together.truncated.any())

    def of(self, clients: Flags | None = None, doubt: loss.Doubt = "most") -> loss.Fate:
        """The account of several, or of everybody; of any members of a group, the group's."""
        if self.group is not None:
            return self.group[doubt]
        return (self.most if doubt == "most" else self.least).total(clients)

    def of_reporting(self, clients: Flags, doubt: loss.Doubt = "most") -> loss.Fate:
        """The same of subscribers that reported: what a group misses may be what those of it had that did not."""
        found = self.of(clients, doubt)
        if self.group is None or not self.gone:
            return found
        return replace(found, expected=found.expected - found.lost - found.unknown, lost=0, unknown=0)

    def received(self, clients: Flags) -> Ints:
        """What each of them received; one without a report, by its last word."""
        return self.most.received[clients]

    def ledgers(self, reports: SubscriberTable) -> SubscriberTable:
        """The ledgers of these subscribers, or of the group, in which what several members received is a duplicate."""
        return reports if self.together is None else self.together

    def evidence(self, reports: SubscriberTable) -> SubscriberTable:
        """The reports that tell when messages were lost: those of these subscribers, or the group's."""
        if self.group is None or self.together is None:
            return reports
        lost = self.group["most"].lost
        if lost == total(self.together.missing):
            return self.together
        # Which of the missing messages were lost is not known, only how many.
        shares = []
        for missing in self.together.missing.tolist():
            shares.append(min(lost, missing))
            lost -= shares[-1]
        nothing = np.zeros(0, np.int64)
        unlisted = np.zeros_like(self.together.range_counts)
        return replace(self.together, missing=np.array(shares, np.int64), range_counts=unlisted, ranges=nothing)


def accounts_of(
    asked: Asked,
    publishers: Mapping[int, PublisherReport],
    window_s: float,
    last_words: Mapping[int, int],
    *,
    group: bool,
    one_publisher: bool = False,
) -> Accounts:
    """The accounts of all these subscribers.

    Args:
        asked: those that were asked; one without a report is dead or silent.
        publishers: reports of every publisher.
        window_s: length of the window.
        last_words: messages that subscribers reported in their progress.
        group: whether they share the messages.
        one_publisher: whether each listens to one publisher only.
    """
    due = loss.expected(publishers, one_publisher=one_publisher)
    if not group:
        most = loss.fates_of(asked, due, window_s, last_words)
        at_least = loss.fates_of(asked, due, window_s, last_words, "least") if due.joined else most
        return Accounts(most, at_least, joined=bool(due.joined))
    words = asked.last_words(last_words)
    together = united(asked.reports, publishers)
    joined = bool(due.joined)
    doubtful = joined or bool(together.truncated.any())
    least = united(asked.reports, publishers, "least") if doubtful else together
    of_group: dict[loss.Doubt, loss.Fate] = {
        "most": group_fate(together, due, window_s, total(words)),
        "least": group_fate(least, due, window_s, total(words), "least"),
    }
    each = loss.placed(asked.reported, _shares(asked.reports), _last(words))
    return Accounts(each, replace(each) if doubtful else each, of_group, together, gone=len(words) > 0, joined=joined)


def _shares(reports: SubscriberTable) -> loss.Fates:
    """The accounts of members with a report."""
    received, in_window = reports.of_clients(reports.received), reports.of_clients(reports.in_window)
    nothing = np.zeros_like(received)
    return loss.Fates(received, in_window, received - in_window, nothing, nothing, nothing, received)


def _last(words: Ints) -> loss.Fates:
    """The accounts of members without one."""
    nothing = np.zeros_like(words)
    return loss.Fates(words, words, nothing, nothing, nothing, nothing, words)
