"""The account of a consumer group, whose members share the messages: what reached any of them was received. Pure.

The members' reports become the report of one subscriber, the group, so that whatever is known of a subscriber is known
of a group in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hydra.measure.loss import DEADLINE, Doubt, Expected, Fate, fates
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

_ADDED: Final = [column.name for column in BATCH_COLUMNS if column.added]
_BLANK: Final = table_of({0: SubscriberReport([], 0, 0, 0, 0, 0, 0, Histogram(), ProcessUsage())})


def united(
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


def whole(members: SubscriberTable, publishers: Mapping[int, PublisherReport]) -> bool:
    """Whether it is known that the group has received all that it should get."""
    group = united(members, publishers)
    return not (group.missing.any() or group.truncated.any())


def group_fate(group: SubscriberTable, due: Expected, window_s: float, last_words: int, doubt: Doubt = "most") -> Fate:
    """What became of the messages that a group should get.

    Args:
        group: what :func:`united` made of the members' reports.
        due: what the group should get.
        window_s: length of the step's window.
        last_words: messages that the members without a report had reported in their progress, all together. So many of
            what nobody else has may have been received by them.
        doubt: what is assumed of messages that may have been received.
    """
    found = fates(group, due, window_s, doubt).total()
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
    """Which sequences any of these ledgers received."""
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
