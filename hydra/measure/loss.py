"""The outcome of every expected message, over all subscribers of a step, dead and silent ones included. Pure.

An expected message was received in the window, was received late (in the drain), is known to wait in a server
(undrained), is lost, or is unknown: missing at a subscriber whose drain was cut while messages could still arrive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, NamedTuple

import numpy as np

from hydra.measure.acceptance import within
from hydra.model import DRAIN_ENDS, Histogram, PublisherReport, SequenceRange
from hydra.wire.arrays import Flags, Ints, publisher_of, sorted_ids, total
from hydra.wire.messages import ONE_TOPIC, Traffic
from hydra.wire.subscriber_table import SubscriberTable
from hydra.wire.traffic import client_topics, topic_counts


@dataclass(frozen=True, slots=True, eq=False)
class StepSubscribers:
    """The subscribers of a step.

    Attributes:
        ids: the ids of all subscribers, rising; the flags below are in this order.
        reports: the reports of those that reported, in this order as well.
        reported: the flags of those with a report.
        cohort: the flags of those in the step's cohort.
        dead: the flags of those whose process ended.
        silent: the flags of those that did not answer.
    """

    ids: Ints
    reports: SubscriberTable
    reported: Flags
    cohort: Flags
    dead: Flags
    silent: Flags

    @property
    def others(self) -> Flags:
        """The flags of those outside the cohort."""
        return ~self.cohort

    def reports_of(self, clients: Flags) -> SubscriberTable:
        """The reports of the flagged subscribers."""
        return self.reports.take(clients[self.reported])

    def last_words(self, words: Mapping[int, int]) -> Ints:
        """The messages that each subscriber without a report had counted in its last progress message."""
        unreported = self.ids[~self.reported].tolist()
        return np.fromiter((words.get(client, 0) for client in unreported), np.int64, len(unreported))


def step_subscribers(
    subscribers: Collection[int],
    reports: SubscriberTable,
    cohort: Collection[int] = (),
    dead: Collection[int] = (),
    silent: Collection[int] = (),
) -> StepSubscribers:
    """The subscribers of a step; reports and members of the other sets that are not among them are left out."""
    ids = sorted_ids(subscribers)
    flags = (np.isin(ids, sorted_ids(some)) if some else np.zeros(len(ids), bool) for some in (cohort, dead, silent))
    return StepSubscribers(ids, reports.take(np.isin(reports.ids, ids)), np.isin(ids, reports.ids), *flags)


BACKLOG_S: Final = 0.1
"""The backlog at the end of the window, in seconds of traffic, up to which a rate passes."""
DEADLINE: Final = DRAIN_ENDS.index("deadline")
"""The end of a drain that was cut at its time limit."""

Doubt = Literal["least", "most"]
"""Whether the least or the most possible number of the doubtful messages counts as received."""


@dataclass(frozen=True, slots=True)
class ExpectedMessages:
    """The messages that every subscriber should receive.

    Attributes:
        sent: by publisher, the exact number of messages that the servers (without servers: the libraries)
            acknowledged.
        joined: for each publisher whose unacknowledged ranges were joined, how many messages of these ranges were
            acknowledged, and how many were not. A subscriber counts all messages of them that it receives as extra.
        one_publisher: whether each subscriber subscribes to one publisher only; otherwise to all.
        traffic: the traffic of the step, if subscribers have a part of the topics; None: each has all.
        by_topic: by publisher, how many of these messages each topic got; only with ``traffic``.
    """

    sent: Mapping[int, int]
    joined: Mapping[int, tuple[int, int]]
    one_publisher: bool = False
    traffic: Traffic | None = None
    by_topic: Mapping[int, Ints] = field(default_factory=dict)

    def of(self, subscribers: Ints) -> Ints:
        """How many messages each of these subscribers should receive."""
        publishers = sorted(self.sent)
        if self.traffic is not None:
            return self._of_topics(self.traffic, subscribers, publishers)
        if not self.one_publisher or len(publishers) < 2:
            return np.full(len(subscribers), sum(self.sent.values()), np.int64)
        sent = np.array([self.sent[publisher] for publisher in publishers], np.int64)
        return sent[np.searchsorted(publishers, publisher_of(subscribers, publishers))]

    def _of_topics(self, traffic: Traffic, subscribers: Ints, publishers: list[int]) -> Ints:
        together = sum((self.by_topic[publisher] for publisher in publishers), np.zeros(traffic.topics, np.int64))
        counts = {p: self.by_topic[p] if self.one_publisher else together for p in publishers}
        own = publisher_of(subscribers, publishers)
        due = [
            counts[publisher][client_topics(traffic, client)].sum()
            for client, publisher in zip(subscribers.tolist(), own.tolist(), strict=True)
        ]
        return np.array(due, np.int64)

    def doubtful(self, reports: SubscriberTable, doubt: Doubt) -> Ints:
        """How many of each subscriber's extra messages were acknowledged, at least or at most."""
        found = np.zeros(len(reports.extra), np.int64)
        for publisher, (acknowledged, unacknowledged) in self.joined.items():
            own = reports.publisher == publisher
            extra = reports.extra[own]
            found[own] = np.minimum(extra if doubt == "most" else np.maximum(extra - unacknowledged, 0), acknowledged)
        return reports.of_clients(found)


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """The outcomes of the expected messages of one subscriber or several.

    The sum of all but ``in_time`` and ``expected`` is ``expected``.

    Attributes:
        expected: expected messages, summed over the subscribers.
        in_window: distinct ones received in the window.
        late: received in the drain.
        undrained: known to wait in a server when the drain ended.
        unknown: missing when the drain ended at its time limit; they may have been on their way.
        lost: missing although nothing could follow.
        in_time: ``in_window`` and the late ones within the allowed backlog.
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
        """The received messages, drain included."""
        return self.in_window + self.late

    def pct(self, messages: int) -> float | None:
        """A part of the expected messages in percent; None if none were expected."""
        return 100 * messages / self.expected if self.expected else None

    @property
    def loss_pct(self) -> float | None:
        """The share of lost messages in percent, the published "Client Loss[%]"."""
        return self.pct(self.lost)

    @property
    def loss_at_stop_pct(self) -> float | None:
        """The share not received by the end of the window in percent, as the original experiments printed it."""
        return self.pct(self.expected - self.in_window)

    def passes(self, target: float, unaccepted: float = 0.0) -> bool | None:
        """Whether the messages received in all, and in time, are at least (1 − target) of those sent; None: none.

        Undrained and unknown messages were not received: with too many of them a rate does not pass.

        Args:
            target: the share that may be lost.
            unaccepted: the share of the messages sent that the system did not accept: no one expects them, and they
                count as lost.
        """
        if not self.expected:
            return None if within(target, 1 - unaccepted) else False
        in_time = min(self.received, self.in_time) / self.expected
        return within(target, 1 - unaccepted, in_time)


@dataclass(frozen=True, slots=True, eq=False)
class MessageOutcomes:
    """The outcomes of the expected messages of many subscribers: arrays with the counts of :class:`MessageOutcome`."""

    expected: Ints
    in_window: Ints
    late: Ints
    undrained: Ints
    unknown: Ints
    lost: Ints
    in_time: Ints

    @property
    def received(self) -> Ints:
        """The received messages, drain included."""
        return self.in_window + self.late

    def total(self, clients: Flags | None = None) -> MessageOutcome:
        """The sum over the flagged subscribers, or over all."""
        columns = (getattr(self, each.name) for each in fields(self))
        return MessageOutcome(*(total(column if clients is None else column[clients]) for column in columns))


@dataclass(frozen=True, slots=True)
class FailedClients:
    """The numbers of subscribers that lost messages, that are dead, and that are silent; none is counted twice."""

    lossy: int
    dead: int
    silent: int

    @property
    def total(self) -> int:
        """The number of failed subscribers."""
        return self.lossy + self.dead + self.silent


def _size_below(ranges: Iterable[SequenceRange], limit: int) -> int:
    """The number of sequences below ``limit`` in any of the ranges."""
    size = 0
    behind = 0
    for low, high in sorted(ranges):
        first, last = max(low, behind), min(high, limit - 1)
        if first <= last:
            size += last - first + 1
            behind = last + 1
    return size


def expected(
    publishers: Mapping[int, PublisherReport], *, one_publisher: bool = False, traffic: Traffic = ONE_TOPIC
) -> ExpectedMessages:
    """The messages that every subscriber should receive, from the reports of all publishers."""
    if traffic.chosen < traffic.topics:
        # Of joined ranges it is unknown which topics their acknowledged messages had: no subscriber expects them.
        counts = {p: topic_counts(traffic, p, r.sent, r.unacknowledged) for p, r in publishers.items()}
        return ExpectedMessages({p: int(c.sum()) for p, c in counts.items()}, {}, one_publisher, traffic, counts)
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
    """The outcomes of the messages of each subscriber with a report.

    Args:
        reports: the reports of the subscribers.
        due: the messages that each should receive.
        window_s: the length of the step's window in seconds.
        doubt: which number of the doubtful messages counts as received.
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
    subscribers: StepSubscribers,
    due: ExpectedMessages,
    window_s: float,
    last_words: Mapping[int, int],
    doubt: Doubt = "most",
) -> MessageOutcomes:
    """The outcomes of all subscribers; one without a report has lost all messages after its last progress message."""
    each = due.of(subscribers.ids[~subscribers.reported])
    words = np.minimum(subscribers.last_words(last_words), each)
    nothing = np.zeros_like(words)
    unreported = MessageOutcomes(each, words, nothing, nothing, nothing, each - words, words)
    return placed(subscribers.reported, outcomes_of_reports(subscribers.reports, due, window_s, doubt), unreported)


def placed(reported: Flags, of_reported: MessageOutcomes, of_others: MessageOutcomes) -> MessageOutcomes:
    """The outcomes of subscribers with and without a report as one table, in the order of ``reported``."""
    if bool(reported.all()):
        return of_reported
    columns: list[Ints] = []
    for each in fields(MessageOutcomes):
        column = np.empty(len(reported), np.int64)
        column[reported], column[~reported] = getattr(of_reported, each.name), getattr(of_others, each.name)
        columns.append(column)
    return MessageOutcomes(*columns)


def failed_clients(subscribers: StepSubscribers, clients: Flags, found: MessageOutcomes | None) -> FailedClients:
    """The numbers of failed subscribers, each counted as dead, otherwise silent (without a report), otherwise lossy.

    Args:
        subscribers: the subscribers of the step.
        clients: the flags of those that count.
        found: the outcomes of all subscribers; None: the number of expected messages is unknown.
    """
    dead = clients & subscribers.dead
    mute = clients & ~dead & (subscribers.silent | ~subscribers.reported)
    lossy = 0 if found is None else np.count_nonzero(clients & ~dead & ~mute & (found.lost > 0))
    return FailedClients(int(lossy), int(np.count_nonzero(dead)), int(np.count_nonzero(mute)))


class TopicLosses(NamedTuple):
    """The losses (%) of the hot topics and of the others; None if it is not known whether missing messages are lost."""

    hot_pct: float | None = None
    other_pct: float | None = None

    @classmethod
    def of(cls, reports: SubscriberTable) -> TopicLosses:
        """The losses in these reports."""
        missing = reports.of_clients(reports.missing)
        expected = reports.of_clients(reports.received + reports.missing)
        if bool(((missing > 0) & ((reports.drain == DEADLINE) | (reports.undrained > 0))).any()):
            return cls()
        parts = (
            (total(reports.hot_missing), total(reports.hot_expected)),
            (total(missing - reports.hot_missing), total(expected - reports.hot_expected)),
        )
        return cls(*(100 * lost / due if due else None for lost, due in parts))


def without(whole: Histogram, part: Histogram) -> Histogram:
    """The values of a histogram that are not in a part of it; its extremes are those of the whole."""
    left = dict(zip(whole.counts[0::2], whole.counts[1::2], strict=True))
    for index, count in zip(part.counts[0::2], part.counts[1::2], strict=True):
        left[index] = left.get(index, 0) - count
    counts = np.array([(index, count) for index, count in sorted(left.items()) if count > 0], np.int64)
    return Histogram(counts.ravel().tolist(), whole.min_us, whole.max_us) if len(counts) else Histogram()
