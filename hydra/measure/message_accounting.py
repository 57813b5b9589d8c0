"""The outcomes of the messages of a step: by subscriber, by consumer group, and in the servers' log. Pure.

A message that any member of a consumer group received counts as received. The reports of the members are merged into
the report of one subscriber, the group, so figures of a group are computed in the same way as those of a
subscriber.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from hydra.measure import loss
from hydra.measure.column import UnlistedMessages
from hydra.measure.loss import DEADLINE, Doubt, ExpectedMessages, MessageOutcome, StepSubscribers, outcomes_of_reports
from hydra.model import DRAIN_ENDS, Histogram, ProcessUsage, PublisherReport, SequenceRange, Settings, SubscriberReport
from hydra.model.batch_columns import BATCH_COLUMNS
from hydra.wire.arrays import Flags, Ints, total
from hydra.wire.messages import ONE_TOPIC, Traffic
from hydra.wire.subscriber_table import SubscriberTable, table_of


@dataclass(frozen=True, slots=True, eq=False)
class MessageAccounts:
    """The outcomes of every subscriber's messages, with the most and the least possible received ones.

    The two differ only if a publisher's unacknowledged ranges were joined, or members of a group could not list the
    messages that they received.

    Attributes:
        most, least: the outcomes of each subscriber. A member of a group has no losses: it expects what it received.
        group: the outcome of the group, by the most and the least; None: every subscriber gets every message.
        together: the group as one subscriber; None: there is no group.
        unreported: whether members of the group have no report.
        joined: whether a publisher's unacknowledged ranges were joined.
    """

    most: loss.MessageOutcomes
    least: loss.MessageOutcomes
    group: Mapping[loss.Doubt, loss.MessageOutcome] | None = None
    together: SubscriberTable | None = None
    unreported: bool = False
    joined: bool = False

    @property
    def exact(self) -> bool:
        """Whether no message is in doubt."""
        return self.most is self.least

    @property
    def unlisted(self) -> UnlistedMessages | None:
        """The clients that could not list single messages; None: all could."""
        by: dict[Literal["publisher", "members"], bool] = {"publisher": self.joined, "members": self.truncated}
        found = tuple(who for who, listed_less in by.items() if listed_less)
        return UnlistedMessages(found) if found else None

    @property
    def truncated(self) -> bool:
        """Whether members of a group could not list the messages that they received."""
        return self.together is not None and bool(self.together.truncated.any())

    def of(self, clients: Flags | None = None, doubt: loss.Doubt = "most") -> loss.MessageOutcome:
        """The outcome of the flagged subscribers, or of all; for members of a group always that of the group."""
        if self.group is not None:
            return self.group[doubt]
        return (self.most if doubt == "most" else self.least).total(clients)

    def of_reporting(self, clients: Flags, doubt: loss.Doubt = "most") -> loss.MessageOutcome:
        """The outcome of subscribers that reported; a member without a report may have what its group misses."""
        found = self.of(clients, doubt)
        if self.group is None or not self.unreported:
            return found
        return replace(found, expected=found.expected - found.lost - found.unknown, lost=0, unknown=0)

    def received(self, clients: Flags) -> Ints:
        """The messages that each of them received; without a report, by the last progress message."""
        return self.most.received[clients]

    def ledgers(self, reports: SubscriberTable) -> SubscriberTable:
        """The ledgers of these subscribers, or of their group, in which copies at further members are duplicates."""
        return reports if self.together is None else self.together

    def evidence(self, reports: SubscriberTable) -> SubscriberTable:
        """The reports with the missing ranges: those of these subscribers, or the group's."""
        if self.group is None or self.together is None:
            return reports
        lost = self.group["most"].lost
        if lost == total(self.together.missing):
            return self.together
        # Only the number of lost ones among the missing messages is known.
        shares = []
        for missing in self.together.missing.tolist():
            shares.append(min(lost, missing))
            lost -= shares[-1]
        nothing = np.zeros(0, np.int64)
        unlisted = np.zeros_like(self.together.range_counts)
        return self.together.changed(missing=np.array(shares, np.int64), range_counts=unlisted, ranges=nothing)


def accounts_of(
    subscribers: StepSubscribers,
    publishers: Mapping[int, PublisherReport],
    window_s: float,
    last_words: Mapping[int, int],
    *,
    group: bool,
    one_publisher: bool = False,
    traffic: Traffic = ONE_TOPIC,
) -> MessageAccounts:
    """The outcomes of the messages of all these subscribers.

    Args:
        subscribers: the subscribers of the step; one without a report is dead or silent.
        publishers: the reports of every publisher.
        window_s: the length of the window in seconds.
        last_words: the messages in the last progress message of each subscriber.
        group: whether the subscribers share the messages.
        one_publisher: whether each subscribes to one publisher only.
        traffic: the traffic of the step.
    """
    due = loss.expected(publishers, one_publisher=one_publisher, traffic=traffic)
    if not group:
        most = loss.outcomes_of_all(subscribers, due, window_s, last_words)
        at_least = loss.outcomes_of_all(subscribers, due, window_s, last_words, "least") if due.joined else most
        return MessageAccounts(most, at_least, joined=bool(due.joined))
    words = subscribers.last_words(last_words)
    together = merge_members(subscribers.reports, publishers)
    joined = bool(due.joined)
    doubtful = joined or bool(together.truncated.any())
    least = merge_members(subscribers.reports, publishers, "least") if doubtful else together
    of_group: dict[loss.Doubt, loss.MessageOutcome] = {
        "most": group_outcome(together, due, window_s, total(words)),
        "least": group_outcome(least, due, window_s, total(words), "least"),
    }
    each = loss.placed(subscribers.reported, _shares(subscribers.reports), _last(words))
    return MessageAccounts(
        each, replace(each) if doubtful else each, of_group, together, unreported=len(words) > 0, joined=joined
    )


def _shares(reports: SubscriberTable) -> loss.MessageOutcomes:
    """The outcomes of members with a report."""
    received, in_window = reports.of_clients(reports.received), reports.of_clients(reports.in_window)
    nothing = np.zeros_like(received)
    return loss.MessageOutcomes(received, in_window, received - in_window, nothing, nothing, nothing, received)


def _last(words: Ints) -> loss.MessageOutcomes:
    """The outcomes of members without a report."""
    nothing = np.zeros_like(words)
    return loss.MessageOutcomes(words, words, nothing, nothing, nothing, nothing, words)


_ADDED: Final = [column.name for column in BATCH_COLUMNS if column.added]
_BLANK: Final = table_of({0: SubscriberReport([], 0, 0, 0, 0, 0, 0, Histogram(), ProcessUsage())})


def merge_members(
    members: SubscriberTable, publishers: Mapping[int, PublisherReport], doubt: Doubt = "most"
) -> SubscriberTable:
    """The group as one subscriber: its ledgers, its undrained messages, and the end of its drain; the rest is empty.

    The drain ended with ``deadline`` if any member's did, because that member may have been about to receive any
    message. A ledger is ``truncated`` if some member could not list the messages that it received: then only the
    members' counts are known, and ``doubt`` selects the most or the least possible number. A ledger lists all missing
    ranges.
    """
    ledgers = [_ledger(members, p, report, doubt) for p, report in publishers.items()]
    drain = DRAIN_ENDS.index("quiet" if any(x.counts["missing"] for x in ledgers) else "complete")
    if bool((members.drain == DEADLINE).any()):
        drain = DEADLINE
    counts: dict[str, Any] = {
        name: np.array([x.counts[name] for x in ledgers], np.int64) for name in ("publisher", *_ADDED, "truncated")
    }
    return _BLANK.changed(
        undrained=np.array([total(members.undrained)]),
        drain=np.array([drain]),
        ledger_counts=np.array([len(ledgers)]),
        **counts,
        range_counts=np.array([len(ledger.missing_ranges) for ledger in ledgers], np.int64),
        ranges=np.concatenate([np.zeros(0, np.int64), *(ledger.missing_ranges.ravel() for ledger in ledgers)]),
        bits_bytes=np.zeros(len(ledgers), np.int64),
    )


def is_complete(members: SubscriberTable, publishers: Mapping[int, PublisherReport]) -> bool:
    """Whether it is certain that the group has received all expected messages."""
    group = merge_members(members, publishers)
    return not (group.missing.any() or group.truncated.any())


def group_outcome(
    group: SubscriberTable, due: ExpectedMessages, window_s: float, last_words: int, doubt: Doubt = "most"
) -> MessageOutcome:
    """The outcome of the messages that a group should receive.

    Args:
        group: the result of :func:`merge_members` for the members' reports.
        due: the messages that the group should receive.
        window_s: the length of the step's window in seconds.
        last_words: the sum of the messages in the last progress messages of members without a report. These members may
            have received this number of the messages that no other member has.
        doubt: which number of the doubtful messages counts as received.
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
    # Counts without a bitmap are from a member that could not, or did not, list its messages.
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
        # Messages that several members received are duplicates of the group.
        duplicates += total(received_by) + total(extra_by) - distinct
        tail = np.array(list(_tail(len(seen), report.sent, holes)), np.int64).reshape(-1, 2)
        missing_ranges = np.concatenate((_runs(wanted & ~seen), tail))
    counts = {name: total(getattr(members, name)[at]) for name in _ADDED} | {
        "publisher": publisher,
        "received": received,
        # Of a message that several members received, late copies count as the duplicates.
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
    """The ranges in which the flags are set."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    edges[:, 1] -= 1
    return edges


def _tail(first: int, sent: int, holes: Sequence[SequenceRange]) -> Iterator[SequenceRange]:
    """The ranges of ``first`` … ``sent`` − 1 without the holes, which are in rising order."""
    for low, high in holes:
        if low > first:
            yield first, low - 1
        first = max(first, high + 1)
    if first < sent:
        yield first, sent - 1


EXACT: Final = "exact"
"""The account of a step in which log, acknowledgements and received messages agree, without duplicates."""


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
    """The differences between log, acknowledgements and received messages as a text; ``EXACT`` if there are none.

    Args:
        grown: messages by which the log grew.
        acknowledged: messages that were acknowledged to publishers.
        sent: messages that were sent, if only the log's growth acknowledges them; otherwise None.
        missing: acknowledged messages that were not received: the sum over subscribers, or the group's; below 0 if
            only the log's growth acknowledges, and more were received than it showed.
        duplicates: messages received more than once by the same subscriber, or by the group; the largest number of any
            subscriber.
        extra: messages received that were not acknowledged; the largest number of any subscriber.
        shared: whether the subscribers are a group.
    """
    differences = [
        f"log {_apart(grown - acknowledged)} acknowledged" if grown != acknowledged else "",
        f"log {_apart(grown - sent)} sent" if sent is not None and grown != sent else "",
        f"{missing} acknowledged not received" if missing > 0 else "",
        f"{-missing} received beyond what was acknowledged" if missing < 0 else "",
        f"{duplicates} received more than once{' by the group' if shared else ''}" if duplicates else "",
        f"{extra} received without acknowledgement" if extra else "",
    ]
    return "; ".join(filter(None, differences)) or EXACT


def _apart(difference: int) -> str:
    return f"{difference} more than" if difference > 0 else f"{-difference} fewer than"


_LATENCIES: Final = {"p50": "p50_ms", "p99": "p99_ms", "p999": "p99_9_ms"}
_MOST: Final = "max_latency_ms"


def counted_account(
    publishers: Collection[PublisherReport],
    subscribers: SubscriberTable,
    log_growth: int | None,
    *,
    shared: bool,
) -> str:
    """The account of such a step as a text: the numbers of messages acknowledged, in the log, and read.

    Args:
        publishers: the reports of the publishers.
        subscribers: the reports of the subscribers.
        log_growth: messages by which the servers' log grew; None: the servers keep no log.
        shared: whether the subscribers share the messages.
    """
    acknowledged = sum(p.acknowledged for p in publishers)
    read = subscribers.of_clients(subscribers.received + subscribers.extra)
    amounts = {"acknowledged": {acknowledged}}
    if log_growth is not None:
        amounts["in the log"] = {log_growth}
    if len(read):
        amounts["read"] = {total(read)} if shared else set(np.unique(read).tolist())
    if all(counts == {acknowledged} for counts in amounts.values()):
        return f"counted only: {acknowledged} each"
    return "counted only: " + ", ".join(f"{_span(counts)} {what}" for what, counts in amounts.items())


def counted_payload(settings: Settings) -> str:
    """A description of the contents of such messages."""
    if settings.payload == "lines":
        return f"lines of {settings.payload_file}, at random"
    return f"random letters, {settings.message_size} bytes"


def acknowledged_after(publishers: Collection[PublisherReport]) -> dict[str, float]:
    """The ack latencies (µs) in reports without histograms, by percentile; of several publishers only the maximum."""
    figures = [(p.system or {}).get("figures", {}) for p in publishers]
    known = [each for each in figures if _MOST in each]
    if not known:
        return {}
    found: dict[str, float] = {"max": round(1000 * max(t[_MOST] for t in known))}
    if len(publishers) == 1:
        found |= {percentile: 1000 * known[0][name] for percentile, name in _LATENCIES.items()}
    return found


def _span(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"
