"""The account of a consumer group, whose members share the messages: what reached any of them was received. Pure.

The members' reports become the report of one subscriber, the group, so that whatever is known of a subscriber is known
of a group in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hydra.measure.loss import Doubt, Expected, Fate, fate
from hydra.model import (
    DrainEnd,
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    SubscriberReport,
)
from hydra.wire import bits


def united(
    members: Collection[SubscriberReport], publishers: Mapping[int, PublisherReport], doubt: Doubt = "most"
) -> SubscriberReport:
    """The group as one subscriber: its ledgers, what is undrained, and how the drain ended; the rest is empty.

    ``deadline`` if any member's drain ended so, for it may have had any message yet to come. A ledger is ``truncated``
    where some member could not list what it received: then only the members' counts are known, and ``doubt`` says
    whether as much or as little as can be was received of it.
    """
    by_publisher: dict[int, list[LedgerCounts]] = {p: [] for p in publishers}
    for member in members:
        for ledger in member.ledgers:
            if ledger.publisher in by_publisher:
                by_publisher[ledger.publisher].append(ledger)
    ledgers = [_ledger(p, of_all, publishers[p], doubt) for p, of_all in by_publisher.items()]
    drain: DrainEnd = "quiet" if any(x.missing for x in ledgers) else "complete"
    if any(member.drain == "deadline" for member in members):
        drain = "deadline"
    return SubscriberReport(
        ledgers=ledgers,
        batches=sum(m.batches for m in members),
        first_batch=0,
        first_ns=0,
        last_ns=0,
        bytes=sum(m.bytes for m in members),
        stale=sum(m.stale for m in members),
        latency=Histogram(),
        usage=ProcessUsage(),
        undrained=sum(m.undrained for m in members),
        drain=drain,
    )


def whole(members: Collection[SubscriberReport], publishers: Mapping[int, PublisherReport]) -> bool:
    """Whether it is known that the group has received all that it should get."""
    return not any(ledger.missing or ledger.truncated for ledger in united(members, publishers).ledgers)


def group_fate(group: SubscriberReport, due: Expected, window_s: float, last_words: int, doubt: Doubt = "most") -> Fate:
    """What became of the messages that a group should get.

    Args:
        group: what :func:`united` made of the members' reports.
        due: what the group should get.
        window_s: length of the step's window.
        last_words: messages that the members without a report had told of, all together. So many of what nobody else
            has may have been received by them.
        doubt: what is assumed of messages that may have been received.
    """
    found = fate(group, due, window_s, doubt=doubt)
    unknown = min(found.lost, last_words)
    return replace(found, unknown=found.unknown + unknown, lost=found.lost - unknown)


def _ledger(publisher: int, of_members: Sequence[LedgerCounts], report: PublisherReport, doubt: Doubt) -> LedgerCounts:
    holes = [(low, min(high, report.sent - 1)) for low, high in sorted(report.unacknowledged) if low < report.sent]
    expected = report.sent - sum(high - low + 1 for low, high in holes)
    taken = sum(x.received + x.extra for x in of_members)
    duplicates = sum(x.duplicates for x in of_members)
    # Counts without a bitmap are of somebody who could not, or did not, list what was received.
    truncated = any(x.truncated or (x.received + x.extra and not x.received_bits) for x in of_members)
    missing_ranges: list[SequenceRange] = []
    if truncated:
        counts = [x.received for x in of_members]
        received = min(sum(counts), expected) if doubt == "most" else max(counts)
        extra = max(x.extra for x in of_members)
    else:
        seen = _union(of_members)
        distinct = int(np.count_nonzero(seen))
        wanted = np.ones(len(seen), bool)
        wanted[report.sent :] = False
        for low, high in holes:
            wanted[low : high + 1] = False
        received = int(np.count_nonzero(seen & wanted))
        extra = distinct - received
        # What several members received are duplicates of the group.
        duplicates += taken - distinct
        missing_ranges = [*_runs(wanted & ~seen), *_tail(len(seen), report.sent, holes)]
    return LedgerCounts(
        publisher=publisher,
        received=received,
        # Of a message that several members received, the copies that came late are taken for the repetitions.
        in_window=min(sum(x.in_window for x in of_members), received),
        missing=expected - received,
        missing_ranges=missing_ranges,
        truncated=truncated,
        duplicates=duplicates,
        reordered=sum(x.reordered for x in of_members),
        extra=extra,
    )


def _union(of_members: Sequence[LedgerCounts]) -> npt.NDArray[np.bool_]:
    """Which sequences any of them received."""
    maps = [bits.read(x.received_bits) for x in of_members]
    together = np.zeros(max(map(len, maps), default=0), np.uint8)
    for one in maps:
        together[: len(one)] |= one
    return np.unpackbits(together, bitorder="little").astype(bool)


def _runs(flags: npt.NDArray[np.bool_]) -> list[SequenceRange]:
    """Where the flags are set, as ranges."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(first, end - 1) for first, end in edges.reshape(-1, 2).tolist()]


def _tail(first: int, sent: int, holes: Sequence[SequenceRange]) -> list[SequenceRange]:
    """``first`` … ``sent`` − 1 without the holes, which rise."""
    ranges: list[SequenceRange] = []
    for low, high in holes:
        if low > first:
            ranges.append((first, low - 1))
        first = max(first, high + 1)
    if first < sent:
        ranges.append((first, sent - 1))
    return ranges
