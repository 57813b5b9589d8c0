"""The sequences that a subscriber received from one publisher in one epoch, exact whatever their order. Pure.

A complete stream in order is one range, however long it is: :class:`RangeSet` keeps the missing sequences as ranges. A
subscriber with a part of the topics misses most sequences of a publisher on purpose, and partitions deliver theirs out
of order with each other. Then ranges would be as many as messages, so :class:`ByteSet` keeps a byte for each sequence:
its time for a message does not depend on the disorder.

The C++ client needs only ranges: it counts the rank of a message among the subscriber's own messages. A rank depends on
the topics of all messages that were sent, and numpy would compute these in the window. For a subscriber with 10 of 100
topics, ranks take twice the CPU time of bytes for each received message; with 10 of 1,000 topics, seven times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.client.message_topics import MOST_SEQUENCES, Flags, MessageTopics, expected_ranges
from hydra.model import SequenceRange
from hydra.wire import compact_encoding
from hydra.wire.messages import PublisherTotal
from hydra.wire.report_validation import MAX_MISSING_RANGES

_IN_WINDOW: Final = 1
_LATE: Final = 2
_LEAST_BYTES: Final = 4096
_FEW: Final = 32
"""Gaps that are added up one by one: for fewer ones numpy's cost per call dominates."""


class Arrivals:
    """What arrived of the sequences that a subscriber expects.

    Attributes:
        received: how many arrived.
        in_window: how many arrived before the end of the window.
        missing: how many did not.
        missing_ranges: the first ranges of those, as many as a report holds.
        truncated: whether there are more ranges.
    """

    __slots__ = ("in_window", "missing", "missing_ranges", "received", "truncated")

    def __init__(self) -> None:
        self.received = self.in_window = self.missing = 0
        self.missing_ranges: list[SequenceRange] = []
        self.truncated = False

    def miss(self, count: int, ranges: Iterable[SequenceRange]) -> None:
        """Adds missing sequences, and their ranges: at least as many as a report holds, and one more if there are."""
        self.missing += count
        if not self.truncated:
            more = iter(ranges)
            self.missing_ranges += islice(more, MAX_MISSING_RANGES - len(self.missing_ranges))
            self.truncated = next(more, None) is not None


class SequenceSet(ABC):
    """The received sequences.

    Attributes:
        next: one more than the highest sequence.
        duplicates: the number of messages whose sequence had arrived before.
        reordered: the number of messages that arrived after a later one of those with which they keep their order.
    """

    __slots__ = ("duplicates", "next", "reordered")

    next: int
    duplicates: int
    reordered: int

    @abstractmethod
    def add_each(self, sequences: npt.NDArray[np.uint64]) -> None:
        """Adds sequences in the order of arrival: at least one, all below 2⁶³."""

    @abstractmethod
    def end_window(self) -> None:
        """What arrives from now on is not ``in_window``; a second call changes nothing."""

    @abstractmethod
    def count(self) -> int:
        """The number of different sequences that arrived, and of messages that have no place in the set."""

    @abstractmethod
    def present(self, first: int, count: int) -> Flags:
        """Which of the sequences ``first``, ``first`` + 1, … arrived."""

    @abstractmethod
    def bitmap(self) -> str | None:
        """The received sequences as in a report; None if it holds more sequences than fit into a report."""

    @abstractmethod
    def arrived(self, sent: PublisherTotal) -> Arrivals:
        """What arrived of the sequences that the subscriber expects."""


class RangeSet(SequenceSet):
    """All sequences below ``next`` outside the gaps.

    ``low[i]`` to ``high[i]`` (both included) is a gap; gaps are sorted, disjoint, not adjacent and below ``next``.
    """

    __slots__ = ("_at_end", "_high", "_low")

    def __init__(self) -> None:
        self.next = self.duplicates = self.reordered = 0
        self._low = array("Q")
        self._high = array("Q")
        self._at_end: RangeSet | None = None  # the set at the end of the window

    def add(self, first: int, last: int) -> None:
        """Adds an ascending run of messages ``first`` … ``last``."""
        if first < self.next:
            behind = min(last, self.next - 1)
            filled = self._fill(first, behind)
            self.reordered += filled
            self.duplicates += behind - first + 1 - filled
            if last < self.next:
                return
        elif first > self.next:
            self._low.append(self.next)
            self._high.append(first - 1)
        self.next = last + 1

    def add_each(self, sequences: npt.NDArray[np.uint64]) -> None:
        """See :class:`SequenceSet`: cuts the sequences into ascending runs."""
        begin = 0
        for end in [*np.flatnonzero(sequences[1:] - sequences[:-1] != 1).tolist(), len(sequences) - 1]:
            self.add(sequences.item(begin), sequences.item(end))
            begin = end + 1

    def _fill(self, first: int, last: int) -> int:
        """Removes ``first`` … ``last`` from the gaps; returns how many of them were in one."""
        i = j = bisect_left(self._high, first)
        filled = 0
        keep: list[SequenceRange] = []
        while j < len(self._low) and self._low[j] <= last:
            low, high = self._low[j], self._high[j]
            filled += min(high, last) - max(low, first) + 1
            if low < first:
                keep.append((low, first - 1))
            if high > last:
                keep.append((last + 1, high))
            j += 1
        if filled:
            self._low[i:j] = array("Q", [low for low, _ in keep])
            self._high[i:j] = array("Q", [high for _, high in keep])
        return filled

    def end_window(self) -> None:
        """See :class:`SequenceSet`."""
        if self._at_end is None:
            twin = RangeSet()
            twin.next, twin._low, twin._high = self.next, self._low[:], self._high[:]
            self._at_end = twin

    def count(self) -> int:
        """See :class:`SequenceSet`."""
        return self.next - self._size(0, len(self._low))

    def _size(self, i: int, j: int) -> int:
        """The number of sequences in the gaps from ``i`` on, below ``j``."""
        if j - i <= _FEW:
            return sum(self._high[i:j]) - sum(self._low[i:j]) + j - i
        low, high = np.frombuffer(self._low, np.uint64), np.frombuffer(self._high, np.uint64)
        return int((high[i:j] - low[i:j]).sum()) + j - i

    def present(self, first: int, count: int) -> Flags:
        """See :class:`SequenceSet`."""
        flags = np.arange(first, first + count) < self.next
        i, j = bisect_left(self._high, first), bisect_left(self._low, first + count)
        for low, high in zip(self._low[i:j], self._high[i:j], strict=True):
            flags[max(low - first, 0) : high + 1 - first] = False
        return flags

    def bitmap(self) -> str | None:
        """See :class:`SequenceSet`."""
        fits = self.next <= compact_encoding.MAX_SEQUENCES
        return compact_encoding.encode_bitmap(self.next, self._low, self._high) if fits else None

    def arrived(self, sent: PublisherTotal) -> Arrivals:
        """See :class:`SequenceSet`."""
        ranges = expected_ranges(sent)
        expected = sum(high - low + 1 for low, high in ranges)
        found = self._missing(ranges)
        found.received = found.in_window = expected - found.missing
        if self._at_end is not None:
            found.in_window = expected - self._at_end._missing(ranges).missing
        return found

    def _missing(self, expected: Sequence[SequenceRange]) -> Arrivals:
        """The sequences of these ranges that did not arrive."""
        found = Arrivals()
        for first, last in expected:
            i, j = bisect_left(self._high, first), bisect_right(self._low, last)
            if i < j:
                before, beyond = max(first - self._low[i], 0), max(self._high[j - 1] - last, 0)
                some = slice(i, i if found.truncated else min(j, i + MAX_MISSING_RANGES + 1))
                lows, highs = self._low[some], self._high[some]
                if lows:
                    lows[0] += before
                if some.stop == j:
                    highs[-1] -= beyond
                found.miss(self._size(i, j) - before - beyond, zip(lows, highs, strict=True))
            if last >= self.next:
                low = max(first, self.next)
                found.miss(last - low + 1, [(low, last)])
        return found


class ByteSet(SequenceSet):
    """A byte for each sequence: 0 if it did not arrive, else whether it arrived in the window.

    Sequences from ``MOST_SEQUENCES`` on have no byte.

    Args:
        topics: the subscriber's topics.
        publisher: the publisher's id.

    Attributes:
        extra: messages without a byte, and those of other topics.
    """

    __slots__ = ("_arrives_as", "_bytes", "_order", "_topics", "extra")

    def __init__(self, topics: MessageTopics, publisher: int) -> None:
        self.next = self.duplicates = self.reordered = self.extra = 0
        self._topics = topics
        self._order = topics.key_order(publisher)
        self._bytes = np.zeros(_LEAST_BYTES, np.uint8)
        self._arrives_as = _IN_WINDOW

    def add_each(self, sequences: npt.NDArray[np.uint64]) -> None:
        """See :class:`SequenceSet`."""
        top = int(sequences.max())
        if top >= MOST_SEQUENCES:
            in_range = sequences < MOST_SEQUENCES
            self.extra += int(np.count_nonzero(~in_range))
            if in_range.any():
                self.add_each(sequences[in_range])
            return
        if top >= len(self._bytes):
            grown = np.zeros(max(top + 1, 2 * len(self._bytes)), np.uint8)
            grown[: len(self._bytes)] = self._bytes
            self._bytes = grown
        if self._order is not None:
            self.reordered += self._order.reordered(sequences)
        n = sequences.view(np.int64)  # numpy's indices
        rises = bool(np.logical_and.reduce(n[1:] > n[:-1]))
        if not rises or int(n[0]) < self.next:
            n = self._fresh(n, rises)
        self._bytes[n] = self._arrives_as
        self.next = max(self.next, top + 1)

    def _fresh(self, n: npt.NDArray[np.int64], rises: bool) -> npt.NDArray[np.int64]:
        """Counts what is not in order; returns the sequences that arrive for the first time."""
        fresh = self._bytes[n] == 0
        if not rises:
            first = np.zeros(len(n), bool)
            first[np.unique(n, return_index=True)[1]] = True
            fresh &= first
        if self._order is None:
            before = np.maximum.accumulate(np.concatenate(([self.next - 1], n)))[:-1]
            self.reordered += int(np.count_nonzero(fresh & (n < before)))
        found: npt.NDArray[np.int64] = n[fresh]
        self.duplicates += len(n) - len(found)
        return found

    def end_window(self) -> None:
        """See :class:`SequenceSet`."""
        self._arrives_as = _LATE

    def count(self) -> int:
        """See :class:`SequenceSet`."""
        return self.extra + int(np.count_nonzero(self._bytes))

    def present(self, first: int, count: int) -> Flags:
        """See :class:`SequenceSet`."""
        return self._states(first, count) > 0

    def _states(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        found = self._bytes[first : first + count]
        return found if len(found) == count else np.concatenate((found, np.zeros(count - len(found), np.uint8)))

    def bitmap(self) -> str | None:
        """See :class:`SequenceSet`."""
        if self.next > compact_encoding.MAX_SEQUENCES:
            return None
        return b64encode(np.packbits(self._bytes[: self.next] > 0, bitorder="little").tobytes()).decode()

    def arrived(self, sent: PublisherTotal) -> Arrivals:
        """See :class:`SequenceSet`. A missing range may span sequences of other topics."""
        found = Arrivals()
        continues = False  # whether the last one of the subscriber's sequences so far is missing
        for first, own, expected in self._topics.blocks(sent):
            came = self._states(first, len(own))
            missing = expected & (came == 0)
            count = int(np.count_nonzero(missing))
            found.received += int(np.count_nonzero(expected)) - count
            found.in_window += int(np.count_nonzero(expected & (came == _IN_WINDOW)))
            if not count or found.truncated:
                continues = continues and not bool(own.any())
                found.missing += count
                continue
            places = np.flatnonzero(own)
            absent = missing[places]
            ranges = _runs(places + first, absent)
            if continues and bool(absent[0]):
                found.missing_ranges[-1] = (found.missing_ranges[-1][0], ranges.pop(0)[1])
            continues = bool(absent[-1])
            found.miss(count, ranges)
        return found


def _runs(sequences: npt.NDArray[np.int64], flags: Flags) -> list[SequenceRange]:
    """The first and last sequence of each run of true flags: all runs, or two more than a report holds."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))[: 2 * (MAX_MISSING_RANGES + 2)]
    return list(zip(sequences[edges[::2]].tolist(), sequences[edges[1::2] - 1].tolist(), strict=True))
