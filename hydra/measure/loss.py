"""What became of every expected message, over all subscribers that were asked, dead and silent ones included. Pure.

A message that a subscriber should get came in the window, came late (while it drained), is known to wait in a server
(undrained), is lost, or is unknown: missing at a subscriber that had to stop draining before nothing could follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

import numpy as np

from hydra.model import DRAIN_ENDS, PublisherReport, SequenceRange
from hydra.wire.arrays import Flags, Ints, publisher_of, sorted_ids, total
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, slots=True, eq=False)
class StepSubscribers:
    """The subscribers of a step.

    Attributes:
        ids: theirs, rising; the flags are in this order.
        reports: of those that reported, in this order as well.
        reported: which have a report.
        cohort: which belong to the step's cohort.
        dead: whose process ended.
        silent: which did not answer.
    """

    ids: Ints
    reports: SubscriberTable
    reported: Flags
    cohort: Flags
    dead: Flags
    silent: Flags

    @property
    def others(self) -> Flags:
        """Which do not belong to the cohort."""
        return ~self.cohort

    def reports_of(self, clients: Flags) -> SubscriberTable:
        """The reports of some of them."""
        return self.reports.take(clients[self.reported])

    def last_words(self, words: Mapping[int, int]) -> Ints:
        """What each of those without a report had counted when it last said so."""
        gone = self.ids[~self.reported].tolist()
        return np.fromiter((words.get(client, 0) for client in gone), np.int64, len(gone))


def asked_of(
    subscribers: Collection[int],
    reports: SubscriberTable,
    cohort: Collection[int] = (),
    dead: Collection[int] = (),
    silent: Collection[int] = (),
) -> StepSubscribers:
    """Those who were asked; a report of anybody else is left out, and so is whoever else belongs to the other sets."""
    ids = sorted_ids(subscribers)
    flags = (np.isin(ids, sorted_ids(some)) if some else np.zeros(len(ids), bool) for some in (cohort, dead, silent))
    return StepSubscribers(ids, reports.take(np.isin(reports.ids, ids)), np.isin(ids, reports.ids), *flags)


BACKLOG_S: Final = 0.1
"""Backlog at the end of the window that does not speak against a rate."""
DEADLINE: Final = DRAIN_ENDS.index("deadline")
"""How a drain ended that had to end."""

Doubt = Literal["least", "most"]
"""How many of the messages that may have been received are taken to be: as few or as many as can be."""


@dataclass(frozen=True, slots=True)
class ExpectedMessages:
    """What every subscriber should get.

    Attributes:
        sent: by publisher, the messages that the servers, or where there are none the libraries, acknowledged; exact.
        joined: by publisher whose unacknowledged ranges were joined, how many messages of these ranges were
            acknowledged, and how many were not. A subscriber counts all that it gets of them as extra.
        one_publisher: whether each listens to one publisher only; otherwise to all.
    """

    sent: Mapping[int, int]
    joined: Mapping[int, tuple[int, int]]
    one_publisher: bool = False

    def of(self, subscribers: Ints) -> Ints:
        """How many messages each of these should get."""
        publishers = sorted(self.sent)
        if not self.one_publisher or len(publishers) < 2:
            return np.full(len(subscribers), sum(self.sent.values()), np.int64)
        sent = np.array([self.sent[publisher] for publisher in publishers], np.int64)
        return sent[np.searchsorted(publishers, publisher_of(subscribers, publishers))]

    def doubtful(self, reports: SubscriberTable, doubt: Doubt) -> Ints:
        """How many of each subscriber's extra messages were acknowledged ones, at least or at most."""
        found = np.zeros(len(reports.extra), np.int64)
        for publisher, (acknowledged, unacknowledged) in self.joined.items():
            of_it = reports.publisher == publisher
            extra = reports.extra[of_it]
            found[of_it] = np.minimum(extra if doubt == "most" else np.maximum(extra - unacknowledged, 0), acknowledged)
        return reports.of_clients(found)


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """What became of the expected messages of one subscriber or several; all but ``in_time`` add up to ``expected``.

    Attributes:
        expected: messages, summed over all asked.
        in_window: of those, distinct ones received by the end of the step.
        late: received while draining.
        undrained: known to wait in a server when the drain ended.
        unknown: missing where the drain ended at its deadline: they may have been on their way.
        lost: never arrived.
        in_time: ``in_window`` and what came late within the backlog that is allowed.
    """

    expected: int = 0
    in_window: int = 0
    late: int = 0
    undrained: int = 0
    unknown: int = 0
    lost: int = 0
    in_time: int = 0

    @property
    def received(self) -> int:
        """Drain included."""
        return self.in_window + self.late

    def pct(self, messages: int) -> float | None:
        """A part of the expected messages in per cent; None when nothing was expected."""
        return 100 * messages / self.expected if self.expected else None

    @property
    def loss_pct(self) -> float | None:
        """Client Loss[%]."""
        return self.pct(self.lost)

    @property
    def loss_at_stop_pct(self) -> float | None:
        """What the original printed: everything not received when the step stopped."""
        return self.pct(self.expected - self.in_window)

    def passes(self, target: float) -> bool | None:
        """Whether received, and received in time, are at least (1 − target) · expected; None when that is 0.

        What is undrained or unknown was not received: it fails a rate, though it is no loss.
        """
        if not self.expected:
            return None
        enough = (1 - target) * self.expected
        return self.received >= enough and self.in_time >= enough


@dataclass(frozen=True, slots=True, eq=False)
class MessageOutcomes:
    """What became of the expected messages of many subscribers: arrays with the counts of a :class:`MessageOutcome`."""

    expected: Ints
    in_window: Ints
    late: Ints
    undrained: Ints
    unknown: Ints
    lost: Ints
    in_time: Ints

    @property
    def received(self) -> Ints:
        """Drain included."""
        return self.in_window + self.late

    def total(self, clients: Flags | None = None) -> MessageOutcome:
        """The sum over these, or over all."""
        columns = (getattr(self, field.name) for field in fields(self))
        return MessageOutcome(*(total(column if clients is None else column[clients]) for column in columns))


@dataclass(frozen=True, slots=True)
class FailedClients:
    """Subscribers with loss, those that died, those that never answered; nobody is counted twice."""

    lossy: int
    dead: int
    silent: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.lossy + self.dead + self.silent


def _size_below(ranges: Iterable[SequenceRange], limit: int) -> int:
    """How many sequences below ``limit`` are in any of the ranges."""
    size = 0
    behind = 0
    for low, high in sorted(ranges):
        first, last = max(low, behind), min(high, limit - 1)
        if first <= last:
            size += last - first + 1
            behind = last + 1
    return size


def expected(publishers: Mapping[int, PublisherReport], *, one_publisher: bool = False) -> ExpectedMessages:
    """What every subscriber should get, from the reports of all publishers; see :class:`ExpectedMessages`."""
    joined = {}
    for publisher, report in publishers.items():
        if report.unacknowledged_joined:
            in_ranges = _size_below(report.unacknowledged, report.sent)
            unacknowledged = min(report.sent - report.acknowledged, in_ranges)
            joined[publisher] = (in_ranges - unacknowledged, unacknowledged)
    return ExpectedMessages({p: report.acknowledged for p, report in publishers.items()}, joined, one_publisher)


def outcomes_of_reports(
    reports: SubscriberTable, due: ExpectedMessages, window_s: float, doubt: Doubt = "most"
) -> MessageOutcomes:
    """What became of the messages that each subscriber with a report should get.

    Args:
        reports: theirs.
        due: what each should get.
        window_s: length of the step's window.
        doubt: what is assumed of messages that may have been received.
    """
    more = due.doubtful(reports, doubt)
    in_window = reports.of_clients(reports.in_window) + (more if doubt == "most" else 0)
    late = reports.of_clients(reports.received) + more - in_window
    each = due.of(reports.ids)
    missing = np.maximum(each - in_window - late, 0)
    undrained = np.minimum(reports.undrained, missing)
    rest = missing - undrained
    allowed = (each * min(BACKLOG_S / window_s, 1.0)).astype(np.int64)
    cut_off = reports.drain == DEADLINE
    return MessageOutcomes(
        expected=each,
        in_window=in_window,
        late=late,
        undrained=undrained,
        unknown=np.where(cut_off, rest, 0),
        lost=np.where(cut_off, 0, rest),
        in_time=in_window + np.minimum(late, allowed),
    )


def outcomes_of_all(
    asked: StepSubscribers, due: ExpectedMessages, window_s: float, last_words: Mapping[int, int], doubt: Doubt = "most"
) -> MessageOutcomes:
    """The same of all who were asked; one without a report has lost all after its last word."""
    each = due.of(asked.ids[~asked.reported])
    words = np.minimum(asked.last_words(last_words), each)
    nothing = np.zeros_like(words)
    gone = MessageOutcomes(each, words, nothing, nothing, nothing, each - words, words)
    return placed(asked.reported, outcomes_of_reports(asked.reports, due, window_s, doubt), gone)


def placed(reported: Flags, theirs: MessageOutcomes, gone: MessageOutcomes) -> MessageOutcomes:
    """The fates of those who reported and of those who did not, in the order in which they were asked."""
    if bool(reported.all()):
        return theirs
    columns: list[Ints] = []
    for field in fields(MessageOutcomes):
        column = np.empty(len(reported), np.int64)
        column[reported], column[~reported] = getattr(theirs, field.name), getattr(gone, field.name)
        columns.append(column)
    return MessageOutcomes(*columns)


def failed_clients(asked: StepSubscribers, clients: Flags, found: MessageOutcomes | None) -> FailedClients:
    """Who of these failed, each under the gravest of the three; one without a report that did not die is silent.

    Args:
        asked: everybody who was asked.
        clients: those of them that count.
        found: everybody's fate; None where nobody knows what was to be expected.
    """
    gone = clients & asked.dead
    mute = clients & ~gone & (asked.silent | ~asked.reported)
    lossy = 0 if found is None else np.count_nonzero(clients & ~gone & ~mute & (found.lost > 0))
    return FailedClients(int(lossy), int(np.count_nonzero(gone)), int(np.count_nonzero(mute)))
