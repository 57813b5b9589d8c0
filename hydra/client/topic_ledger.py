"""The account of a subscriber that has some of the topics, or whose order is that of keys. Pure.

A subscriber with some topics expects some of each publisher's sequences, and partitions deliver theirs out of order
with each other. So this account keeps a byte for each sequence in place of ranges: its memory grows with the number of
messages, and its time per message does not depend on the disorder. The topic of a message follows from its sequence
(:mod:`hydra.wire.traffic`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.client.ledger import Headers, Ledger, of_a_member
from hydra.model import LedgerCounts, SequenceRange
from hydra.wire import compact_encoding
from hydra.wire.messages import PublisherTotal, Traffic
from hydra.wire.report_validation import MAX_MISSING_RANGES
from hydra.wire.traffic import TOPIC, Choice, base, client_topics, draws, hot_topics, key_choice, topic_choice

Flags = npt.NDArray[np.bool_]

MOST_SEQUENCES: Final = 2**31
"""Sequences from this one on have no byte: they count as ``extra``."""
_BLOCK: Final = 65_536
_IN_WINDOW: Final = 1
_LATE: Final = 2
_LEAST_BYTES: Final = 4096


class MessageTopics:
    """The topics of the messages that a subscriber receives or expects.

    Args:
        traffic: the traffic of the step.
        client: the subscriber's id.
        publishers: the ids of its publishers.
    """

    def __init__(self, traffic: Traffic, client: int, publishers: Iterable[int]) -> None:
        known = sorted(publishers)
        self._known = np.array(known, np.uint32)
        self._starts = np.array([base(traffic.seed, p, TOPIC) for p in known], np.uint64)
        self._choice = Choice(traffic.topics, traffic.topic_table)
        self._traffic = traffic
        self._has = np.zeros(traffic.topics, bool)
        self._has[client_topics(traffic, client)] = True
        self._hot = hot_topics(traffic.topics)

    def own(self, headers: Headers) -> Flags:
        """Which of these messages of known publishers have a topic of the subscriber."""
        return self._has[self._topics(headers)]

    def hot(self, headers: Headers) -> Flags:
        """Which of these messages of known publishers have one of the hot topics."""
        return self._topics(headers) < self._hot

    def _topics(self, headers: Headers) -> npt.NDArray[np.int64]:
        starts = self._starts[np.searchsorted(self._known, headers["publisher"])]
        return self._choice.each(draws(starts, headers["sequence"]))

    def blocks(self, sent: PublisherTotal) -> Iterator[tuple[int, Flags, Flags, Flags]]:
        """A publisher's sequences in blocks: the first; which are the subscriber's, acknowledged and of hot topics."""
        topic = topic_choice(self._traffic, sent.publisher)
        for first in range(0, sent.sent, _BLOCK):
            count = min(_BLOCK, sent.sent - first)
            topics = topic.each(np.arange(first, first + count, dtype=np.uint64))
            acknowledged = np.ones(count, bool)
            for low, high in sent.unacknowledged:
                if low < first + count and high >= first:
                    acknowledged[max(low - first, 0) : high + 1 - first] = False
            yield first, self._has[topics], acknowledged, topics < self._hot


def hot_counts(topics: MessageTopics, ledger: Ledger, totals: Sequence[PublisherTotal]) -> tuple[int, int]:
    """The expected and the missing messages of the hot topics of a subscriber, over all publishers."""
    expected = missing = 0
    for sent in totals:
        for first, own, acknowledged, hot in topics.blocks(sent):
            due = own & acknowledged & hot
            expected += int(np.count_nonzero(due))
            missing += int(np.count_nonzero(due & ~ledger.present(sent.publisher, first, len(due))))
    return expected, missing


class _Arrivals:
    """What arrived of one publisher: a number for each sequence, 0 if it did not arrive.

    Args:
        traffic: the traffic of the step. Messages of one topic and key keep their order; without keys all do.
        publisher: the publisher's id.
    """

    __slots__ = ("_keys", "_last", "_seen", "_topics", "duplicates", "extra", "highest", "reordered")

    def __init__(self, traffic: Traffic, publisher: int) -> None:
        self._seen = np.zeros(_LEAST_BYTES, np.uint8)
        self._keys = key_choice(traffic, publisher) if traffic.keys else None
        self._topics = topic_choice(traffic, publisher)
        # The sequence after the highest one of each key of each topic. Only what is written takes memory.
        self._last = np.zeros(traffic.topics * max(traffic.keys, 1), np.int64)
        self.highest = -1
        self.duplicates = self.reordered = self.extra = 0

    def add(self, sequences: npt.NDArray[np.uint64], arrival: int) -> None:
        """Adds sequences (at least one) in the order of their arrival."""
        if int(sequences.max()) >= MOST_SEQUENCES:
            there = sequences < MOST_SEQUENCES
            self.extra += int(np.count_nonzero(~there))
            sequences = sequences[there]
            if not len(sequences):
                return
        n = sequences.astype(np.int64)
        top = int(n.max())
        if top >= len(self._seen):
            grown = np.zeros(max(top + 1, 2 * len(self._seen)), np.uint8)
            grown[: len(self._seen)] = self._seen
            self._seen = grown
        fresh = self._seen[n] == 0
        if not bool((n[1:] > n[:-1]).all()):
            first = np.zeros(len(n), bool)
            first[np.unique(n, return_index=True)[1]] = True
            fresh &= first
        if self._keys is None:
            before = np.maximum.accumulate(np.concatenate(([self.highest], n)))[:-1]
            self.reordered += int(np.count_nonzero(fresh & (n < before)))
        else:
            keys = self._topics.each(sequences) * self._keys.count + self._keys.each(sequences)
            self.reordered += self._reordered_by_key(n, keys)
        self.duplicates += len(n) - int(np.count_nonzero(fresh))
        self._seen[n[fresh]] = arrival
        self.highest = max(self.highest, top)

    def _reordered_by_key(self, n: npt.NDArray[np.int64], keys: npt.NDArray[np.int64]) -> int:
        """How many of the messages arrived after a later one of their topic and key, duplicates included."""
        order = np.argsort(keys, kind="stable")
        keys, n = keys[order], n[order]
        begins = np.concatenate(([True], keys[1:] != keys[:-1]))
        # The highest sequence so far within each key: each key's sequences are lifted above those of the keys before.
        lift = (np.cumsum(begins) - 1) * MOST_SEQUENCES
        highest = np.maximum.accumulate(n + lift) - lift
        before = np.where(begins, -1, np.concatenate(([-1], highest[:-1])))
        before = np.maximum(before, self._last[keys] - 1)
        ends = np.append(begins[1:], True)
        self._last[keys[ends]] = np.maximum(self._last[keys[ends]], highest[ends] + 1)
        return int(np.count_nonzero(n < before))

    def arrivals(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """The numbers of ``count`` sequences from ``first`` on."""
        found = self._seen[first : first + count]
        return found if len(found) == count else np.concatenate((found, np.zeros(count - len(found), np.uint8)))

    def distinct(self) -> int:
        """The number of sequences that arrived."""
        return int(np.count_nonzero(self._seen))

    def written(self) -> str | None:
        """The received sequences as a bitmap; None if it holds more sequences than fit into a report."""
        if self.highest >= compact_encoding.MAX_SEQUENCES:
            return None
        return b64encode(np.packbits(self._seen[: self.highest + 1] > 0, bitorder="little").tobytes()).decode()


class TopicLedger(Ledger):
    """The account of one subscriber, one epoch at a time, with the methods and counts of :class:`Ledger`.

    Args:
        traffic: the traffic of the step.
        client: the subscriber's id.
    """

    __slots__ = ("_arrivals", "_arrived_as", "_client", "_lasts", "_topics", "_traffic")

    def __init__(self, traffic: Traffic, client: int) -> None:
        self._traffic = traffic
        self._client = client
        super().__init__()

    def begin(self, epoch: int, publishers: Iterable[int]) -> None:
        """See :class:`Ledger`."""
        known = list(publishers)
        super().begin(epoch, known)
        self._topics = MessageTopics(self._traffic, self._client, known)
        self._arrivals = {p: _Arrivals(self._traffic, p) for p in known}
        self._arrived_as = _IN_WINDOW
        self._lasts: tuple[object, dict[int, int]] = (None, {})

    def record(self, headers: Headers, now_ns: int, window_end_ns: int) -> Headers:
        """See :class:`Ledger`. A message of a topic that the subscriber does not have is ``extra`` only."""
        if now_ns > window_end_ns:
            self._arrived_as = _LATE
        ours = super().ours(headers)
        found = headers
        if not bool(ours.all()):
            for epoch, publisher, sequence, _ in headers[~ours].tolist():
                self._refuse(epoch, publisher, sequence)
            found = headers[ours]
        if self._traffic.several and len(found):
            own = self._topics.own(found)
            if not bool(own.all()):
                for publisher in found["publisher"][~own].tolist():
                    self._arrivals[publisher].extra += 1
                found = found[own]
        self.messages += len(found)
        publishers, sequences = found["publisher"], found["sequence"]
        for publisher in np.unique(publishers).tolist():
            self._arrivals[publisher].add(sequences[publishers == publisher], self._arrived_as)
        return found

    def ours(self, headers: Headers) -> Flags:
        """See :class:`Ledger`."""
        ours = super().ours(headers)
        if self._traffic.several and bool(ours.any()):
            ours[ours] = self._topics.own(headers[ours])
        return ours

    def present(self, publisher: int, first: int, count: int) -> Flags:
        """See :class:`Ledger`."""
        arrivals = self._arrivals.get(publisher)
        return np.zeros(count, bool) if arrivals is None else arrivals.arrivals(first, count) > 0

    def has_last(self, expected: Iterable[PublisherTotal]) -> bool:
        """See :class:`Ledger`; ``expected`` is the same object in every call about a step."""
        if self._lasts[0] is not expected:
            self._lasts = (expected, {sent.publisher: self._last_of(sent) for sent in expected})
        found = self._lasts[1].items()
        return all(last < 0 or self._highest(publisher) >= last for publisher, last in found)

    def _highest(self, publisher: int) -> int:
        arrivals = self._arrivals.get(publisher)
        return -1 if arrivals is None else arrivals.highest

    def _last_of(self, sent: PublisherTotal) -> int:
        """The last sequence that the subscriber expects; -1 if it expects none."""
        last = -1
        for first, own, acknowledged, _ in self._topics.blocks(sent):
            due = np.flatnonzero(own & acknowledged)
            last = first + int(due[-1]) if len(due) else last
        return last

    def close(self, sent: Sequence[PublisherTotal], *, member: bool = False) -> list[LedgerCounts]:
        """See :class:`Ledger`."""
        accounts = []
        left = compact_encoding.MAX_CHARACTERS
        for each in sent:
            arrivals = self._arrivals.get(each.publisher) or _Arrivals(self._traffic, each.publisher)
            account = self._account(each, arrivals)
            if member:
                account = of_a_member(account, arrivals.written(), left)
                left -= len(account.received_bits)
            accounts.append(account)
        return accounts

    def _account(self, sent: PublisherTotal, arrivals: _Arrivals) -> LedgerCounts:
        received = in_window = 0
        missing = _MissingRuns()
        for first, own, acknowledged, _ in self._topics.blocks(sent):
            came = arrivals.arrivals(first, len(own))
            due = own & acknowledged
            received += int(np.count_nonzero(due & (came > 0)))
            in_window += int(np.count_nonzero(due & (came == _IN_WINDOW)))
            missing.add(first, own, due & (came == 0))
        return LedgerCounts(
            publisher=sent.publisher,
            received=received,
            in_window=in_window,
            missing=missing.count,
            missing_ranges=missing.ranges[:MAX_MISSING_RANGES],
            truncated=len(missing.ranges) > MAX_MISSING_RANGES,
            duplicates=arrivals.duplicates,
            reordered=arrivals.reordered,
            extra=arrivals.extra + arrivals.distinct() - received,
        )


class _MissingRuns:
    """Missing sequences as ranges over the subscriber's own sequences: a range may span sequences of other topics.

    Attributes:
        count: the number of missing sequences.
        ranges: the first of their ranges, one more than a report holds at least if there are more.
    """

    def __init__(self) -> None:
        self.count = 0
        self.ranges: list[SequenceRange] = []
        self._own = 0  # the subscriber's own sequences before the next block
        self._end = -1  # the place of the end of the last range among them

    def add(self, first: int, own: Flags, missing: Flags) -> None:
        """Adds a block: which of its sequences are the subscriber's, and which of these are missing."""
        at = np.flatnonzero(missing)
        self.count += len(at)
        before, self._own = self._own, self._own + int(np.count_nonzero(own))
        if not len(at) or len(self.ranges) > MAX_MISSING_RANGES:
            return
        places = before + (np.cumsum(own) - 1)[at]
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        begins, ends = np.concatenate(([0], cuts)), np.append(cuts, len(at)) - 1
        lows, highs = (at[begins] + first).tolist(), (at[ends] + first).tolist()
        if self.ranges and places[0] == self._end + 1:
            self.ranges[-1] = (self.ranges[-1][0], highs.pop(0))
            lows.pop(0)
        self.ranges += zip(lows, highs, strict=True)
        self._end = int(places[-1])
