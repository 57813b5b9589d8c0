"""What became of the messages of a step: of each subscriber, of a group whose members share them, of the log. Pure.

What reached any member of a consumer group was received. The members' reports become the report of one subscriber, the
group, so that whatever is known of a subscriber is known of a group in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hydra.measure import loss
from hydra.measure.loss import DEADLINE, Doubt, ExpectedMessages, MessageOutcome, StepSubscribers, outcomes_of_reports
from hydra.model import (
    BATCH_COLUMNS,
    DRAIN_ENDS,
    Histogram,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    SubscriberReport,
)
from hydra.wire.arrays import Flags, Ints, total
from hydra.wire.subscriber_table import SubscriberTable, table_of


@dataclass(frozen=True, slots=True, eq=False)
class MessageAccounts:
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

    most: loss.MessageOutcomes
    least: loss.MessageOutcomes
    group: Mapping[loss.Doubt, loss.MessageOutcome] | None = None
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

    def of(self, clients: Flags | None = None, doubt: loss.Doubt = "most") -> loss.MessageOutcome:
        """The account of several, or of everybody; of any members of a group, the group's."""
        if self.group is not None:
            return self.group[doubt]
        return (self.most if doubt == "most" else self.least).total(clients)

    def of_reporting(self, clients: Flags, doubt: loss.Doubt = "most") -> loss.MessageOutcome:
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
    asked: StepSubscribers,
    publishers: Mapping[int, PublisherReport],
    window_s: float,
    last_words: Mapping[int, int],
    *,
    group: bool,
    one_publisher: bool = False,
) -> MessageAccounts:
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
        most = loss.outcomes_of_all(asked, due, window_s, last_words)
        at_least = loss.outcomes_of_all(asked, due, window_s, last_words, "least") if due.joined else most
        return MessageAccounts(most, at_least, joined=bool(due.joined))
    words = asked.last_words(last_words)
    together = merge_members(asked.reports, publishers)
    joined = bool(due.joined)
    doubtful = joined or bool(together.truncated.any())
    least = merge_members(asked.reports, publishers, "least") if doubtful else together
    of_group: dict[loss.Doubt, loss.MessageOutcome] = {
        "most": group_outcome(together, due, window_s, total(words)),
        "least": group_outcome(least, due, window_s, total(words), "least"),
    }
    each = loss.placed(asked.reported, _shares(asked.reports), _last(words))
    return MessageAccounts(
        each, replace(each) if doubtful else each, of_group, together, gone=len(words) > 0, joined=joined
    )


def _shares(reports: SubscriberTable) -> loss.MessageOutcomes:
    """The accounts of members with a report."""
    received, in_window = reports.of_clients(reports.received), reports.of_clients(reports.in_window)
    nothing = np.zeros_like(received)
    return loss.MessageOutcomes(received, in_window, received - in_window, nothing, nothing, nothing, received)


def _last(words: Ints) -> loss.MessageOutcomes:
    """The accounts of members without one."""
    nothing = np.zeros_like(words)
    return loss.MessageOutcomes(words, words, nothing, nothing, nothing, nothing, words)


_ADDED: Final = [column.name for column in BATCH_COLUMNS if column.added]
_BLANK: Final = table_of({0: SubscriberReport([], 0, 0, 0, 0, 0, 0, Histogram(), ProcessUsage())})


def merge_members(
    members: SubscriberTable, publishers: Mapping[int, PublisherReport], doubt: Doubt = "most"
) -> SubscriberTable:
    """The group as one subscriber: its ledgers, what is undrained, and how the drain ended; the rest is empty.

    ``deadline`` if any member's drain ended so, for it may have had any message yet to come. A ledger is ``truncated``
    where some member could not list what it received: then only the members' counts are known, and ``doubt`` says
    whether as much or as little as can be was received of it. It lists as many missing ranges as there are.
    """
    ledgers = [_ledger(members, p, report, doubt) for p, report in publishers.items()]
    drain = DRAIN_ENDS.index("quiet" if any(x.counts["missing"] for x in ledgers) else "complete")
    if bool((members.drain == DEADLINE).any()):
        drain = DEADLINE
    counts: dict[str, Any] = {
        name: np.array([x.counts[name] for x in ledgers], np.int64) for name in ("publisher", *_ADDED, "truncated")
    }
    return replace(
        _BLANK,
        undrained=np.array([total(members.undrained)]),
        drain=np.array([drain]),
        ledger_counts=np.array([len(ledgers)]),
        **counts,
        range_counts=np.array([len(ledger.missing_ranges) for ledger in ledgers], np.int64),
        ranges=np.concatenate([np.zeros(0, np.int64), *(ledger.missing_ranges.ravel() for ledger in ledgers)]),
        bits_bytes=np.zeros(len(ledgers), np.int64),
    )


def is_complete(members: SubscriberTable, publishers: Mapping[int, PublisherReport]) -> bool:
    """Whether it is known that the group has received all that it should get."""
    group = merge_members(members, publishers)
    return not (group.missing.any() or group.truncated.any())


def group_outcome(
    group: SubscriberTable, due: ExpectedMessages, window_s: float, last_words: int, doubt: Doubt = "most"
) -> MessageOutcome:
    """What became of the messages that a group should get.

    Args:
        group: what :func:`merge_members` made of the members' reports.
        due: what the group should get.
        window_s: length of the step's window.
        last_words: messages that the members without a report had reported in their progress, all together. So many of
            what nobody else has may have been received by them.
        doubt: what is assumed of messages that may have been received.
    """
    found = outcomes_of_reports(group, due, window_s, doubt).total()
    unknown = min(found.lost, last_words)
    return replace(found, unknown=found.unknown + unknown, lost=found.lost - unknown)


@dataclass(frozen=True, slots=True)
class _Ledger:
    """The group's account of one publisher: its numbers by the columns of a table, and its ranges as two columns."""

    counts: dict[str, int]
    missing_ranges: Ints


def _ledger(members: SubscriberTable, publisher: int, report: PublisherReport, doubt: Doubt) -> _Ledger:
    at = np.flatnonzero(members.publisher == publisher)
    received_by, extra_by = members.received[at], members.extra[at]
    holes = [(low, min(high, report.sent - 1)) for low, high in sorted(report.unacknowledged) if low < report.sent]
    expected = report.sent - sum(high - low + 1 for low, high in holes)
    duplicates = total(members.duplicates[at])
    # Counts without a bitmap are of somebody who could not, or did not, list what was received.
    unlisted = (received_by + extra_by > 0) & (members.bits_bytes[at] == 0)
    truncated = bool((unlisted | (members.truncated[at] > 0)).any())
    missing_ranges = np.zeros((0, 2), np.int64)
    if truncated:
        received = min(total(received_by), expected) if doubt == "most" else int(received_by.max())
        extra = int(extra_by.max())
    else:
        seen = _union(members, at)
        distinct = int(np.count_nonzero(seen))
        wanted = np.ones(len(seen), bool)
        wanted[report.sent :] = False
        for low, high in holes:
            wanted[low : high + 1] = False
        received = int(np.count_nonzero(seen & wanted))
        extra = distinct - received
        # What several members received are duplicates of the group.
        duplicates += total(received_by) + total(extra_by) - distinct
        tail = np.array(list(_tail(len(seen), report.sent, holes)), np.int64).reshape(-1, 2)
        missing_ranges = np.concatenate((_runs(wanted & ~seen), tail))
    counts = {name: total(getattr(members, name)[at]) for name in _ADDED} | {
        "publisher": publisher,
        "received": received,
        # Of a message that several members received, the copies that came late are taken for the repetitions.
        "in_window": min(total(members.in_window[at]), received),
        "missing": expected - received,
        "truncated": truncated,
        "duplicates": duplicates,
        "extra": extra,
    }
    return _Ledger(counts, missing_ranges)


def _union(members: SubscriberTable, at: Ints) -> Flags:
    """The sequences that at least one of these ledgers received."""
    begins = members.bits_offsets
    maps = [members.bits[begins[k] : begins[k + 1]] for k in at.tolist()]
    together = np.zeros(max(map(len, maps), default=0), np.uint8)
    for one in maps:
        together[: len(one)] |= one
    return np.unpackbits(together, bitorder="little").astype(bool)


def _runs(flags: Flags) -> Ints:
    """Where the flags are set, as ranges."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    edges[:, 1] -= 1
    return edges


def _tail(first: int, sent: int, holes: Sequence[SequenceRange]) -> Iterator[SequenceRange]:
    """``first`` … ``sent`` − 1 without the holes, which rise."""
    for low, high in holes:
        if low > first:
            yield first, low - 1
        first = max(first, high + 1)
    if first < sent:
        yield first, sent - 1


EXACT: Final = "exact"
"""The account of a step in which all three agree, and nothing is there twice."""


def account(
    grown: int,
    acknowledged: int,
    sent: int | None = None,
    *,
    missing: int = 0,
    duplicates: int = 0,
    extra: int = 0,
    shared: bool = False,
) -> str:
    """What is not as it should be, with the numbers; ``EXACT`` where everything is.

    Args:
        grown: messages by which the log grew.
        acknowledged: messages that were acknowledged to publishers.
        sent: messages that were sent, where nothing but the log's growth acknowledges them; otherwise None.
        missing: acknowledged messages that were not received: the sum over subscribers, or the group's;
            below 0 where more came than the log's growth, which alone acknowledged, had told.
        duplicates: messages received more than once by the same subscriber, or by the group; of several subscribers
            the most.
        extra: messages received that were not acknowledged; of several subscribers the most.
        shared: whether the subscribers are a group.
    """
    said = [
        f"log {_apart(grown - acknowledged)} acknowledged" if grown != acknowledged else "",
        f"log {_apart(grown - sent)} sent" if sent is not None and grown != sent else "",
        f"{missing} acknowledged not received" if missing > 0 else "",
        f"{-missing} received beyond what was acknowledged" if missing < 0 else "",
        f"{duplicates} received more than once{' by the group' if shared else ''}" if duplicates else "",
        f"{extra} received without acknowledgement" if extra else "",
    ]
    return "; ".join(filter(None, said)) or EXACT


def _apart(difference: int) -> str:
    return f"{difference} more than" if difference > 0 else f"{-difference} fewer than"
