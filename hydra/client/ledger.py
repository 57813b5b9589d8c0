"""A subscriber's exact account of the messages from each (publisher, epoch). Pure, time is passed in.

Every message of an epoch is counted once: as the first arrival of its sequence (``reordered`` if a later sequence
arrived before it) or as a duplicate. Missing sequences are kept as ranges, so a complete stream in order needs the same
memory and time however long it is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import LedgerCounts, SequenceRange
from hydra.wire import compact_encoding
from hydra.wire.data_message import SEQUENCE_LIMIT
from hydra.wire.messages import PROBE_EPOCH, PublisherTotal
from hydra.wire.report_validation import MAX_MISSING_RANGES

Headers = npt.NDArray[np.void]

SCALAR_LIMIT: Final = 48
"""Batches up to this size are compared as lists: for smaller ones numpy's cost per call dominates (bench/growth.py)."""
_COUNTING = np.arange(4096, dtype=np.uint64)


class _Received:
    """The set of sequences received from one publisher: everything below ``next`` outside the gaps.

    ``low[i]`` to ``high[i]`` (both included) is a gap; gaps are sorted, disjoint, not adjacent and below ``next``.
    """

    __slots__ = ("duplicates", "high", "low", "next", "reordered")

    def __init__(self) -> None:
        self.next = 0
        self.low = array("Q")
        self.high = array("Q")
        self.duplicates = 0
        self.reordered = 0

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
            self.low.append(self.next)
            self.high.append(first - 1)
        self.next = last + 1

    def _fill(self, first: int, last: int) -> int:
        """Removes ``first`` … ``last`` from the gaps; returns how many of them were in one."""
        i = j = bisect_left(self.high, first)
        filled = 0
        keep: list[SequenceRange] = []
        while j < len(self.low) and self.low[j] <= last:
            low, high = self.low[j], self.high[j]
            filled += min(high, last) - max(low, first) + 1
            if low < first:
                keep.append((low, first - 1))
            if high > last:
                keep.append((last + 1, high))
            j += 1
        if filled:
            self.low[i:j] = array("Q", [low for low, _ in keep])
            self.high[i:j] = array("Q", [high for _, high in keep])
        return filled

    def holes(self) -> int:
        """The number of sequences below ``next`` that were not received."""
        if not self.low:
            return 0
        low, high = np.frombuffer(self.low, np.uint64), np.frombuffer(self.high, np.uint64)
        return int((high - low).sum()) + len(low)

    def present(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        """Which of the sequences ``first``, ``first`` + 1, … were received."""
        there = np.arange(first, first + count) < self.next
        i, j = bisect_left(self.high, first), bisect_left(self.low, first + count)
        for low, high in zip(self.low[i:j], self.high[i:j], strict=True):
            there[max(low - first, 0) : high + 1 - first] = False
        return there

    def written(self) -> str | None:
        """The received sequences as a bitmap; None if it holds more sequences than fit into a report."""
        return (
            compact_encoding.encode_bitmap(self.next, self.low, self.high)
            if self.next <= compact_encoding.MAX_SEQUENCES
            else None
        )

    def copy(self) -> _Received:
        """A copy of the set, which later messages do not change."""
        twin = _Received()
        twin.next, twin.low, twin.high = self.next, self.low[:], self.high[:]
        return twin


@dataclass(frozen=True, slots=True)
class _Missing:
    """The expected sequences that are not in a received set."""

    count: int
    ranges: list[SequenceRange]
    truncated: bool


def _expected_ranges(sent: PublisherTotal) -> list[SequenceRange]:
    """0 … sent − 1 without the unacknowledged sequences, as sorted disjoint ranges."""
    ranges: list[SequenceRange] = []
    first = 0
    for low, high in sorted(sent.unacknowledged):
        if low > first:
            ranges.append((first, min(low, sent.sent) - 1))
        first = max(first, high + 1)
        if first >= sent.sent:
            break
    if first < sent.sent:
        ranges.append((first, sent.sent - 1))
    return ranges


def _size(ranges: Iterable[SequenceRange]) -> int:
    return sum(high - low + 1 for low, high in ranges)


def _missing(received: _Received, expected: Sequence[SequenceRange]) -> _Missing:
    """The expected sequences that are not in ``received``, with the first of their ranges."""
    count = 0
    ranges: list[SequenceRange] = []
    truncated = False
    if len(expected) == 1 and expected[0][0] == 0 and received.next <= expected[0][1] + 1:
        # The usual case by vectors: all sequences are expected, and no unexpected one was received.
        last = expected[0][1]
        tail = last + 1 - received.next
        count = received.holes() + tail
        ranges = list(zip(received.low[:MAX_MISSING_RANGES], received.high[:MAX_MISSING_RANGES], strict=True))
        truncated = len(received.low) > len(ranges)
        if tail and len(ranges) < MAX_MISSING_RANGES:
            ranges.append((received.next, last))
        elif tail:
            truncated = True
        return _Missing(count, ranges, truncated)
    for low, high in expected:
        i = bisect_left(received.high, low)
        while i < len(received.low) and received.low[i] <= high:
            gap = (max(received.low[i], low), min(received.high[i], high))
            count += gap[1] - gap[0] + 1
            if len(ranges) < MAX_MISSING_RANGES:
                ranges.append(gap)
            else:
                truncated = True
            i += 1
        if high >= received.next:
            gap = (max(low, received.next), high)
            count += gap[1] - gap[0] + 1
            if len(ranges) < MAX_MISSING_RANGES:
                ranges.append(gap)
            else:
                truncated = True
    return _Missing(count, ranges, truncated)


class Ledger:
    """The account of one subscriber, one epoch at a time.

    Probes (epoch 0) are not data: ``probes`` maps a publisher to the highest epoch in its probes since ``begin``. End
    markers (also epoch 0) are not data either. Messages of another epoch, or of a publisher that was not announced,
    count as ``stale``.
    """

    __slots__ = ("_at_end", "_by_key", "_ended", "_known", "_received", "epoch", "messages", "probes", "stale")

    def __init__(self) -> None:
        self.begin(PROBE_EPOCH, ())

    def begin(self, epoch: int, publishers: Iterable[int]) -> None:
        """Closes the account and opens one for ``epoch`` of these ``publishers``."""
        self.epoch = epoch
        self.messages = 0
        """Messages of this epoch, with duplicates."""
        self.stale = 0
        self.probes: dict[int, int] = {}
        self._ended: set[int] = set()
        self._received = {p: _Received() for p in publishers}
        self._known = np.array(sorted(self._received), np.uint32)
        # The key is the first eight bytes of a header; probes never belong to an account.
        self._by_key = {p << 32 | epoch: r for p, r in self._received.items() if epoch != PROBE_EPOCH}
        self._at_end: dict[int, _Received] | None = None

    def record(self, headers: Headers, now_ns: int, window_end_ns: int) -> Headers:
        """Counts a batch of headers that was read at ``now_ns``.

        Args:
            headers: the batch in the order of arrival, an array of ``header.DTYPE``.
            now_ns: one reading of the clock for the whole batch.
            window_end_ns: the end of the window; the first batch after it freezes the counts of the window.

        Returns:
            The headers that belong to the account (the same array if all do), for the latency.
        """
        if now_ns > window_end_ns and self._at_end is None:
            self._at_end = {p: r.copy() for p, r in self._received.items()}
        n = len(headers)
        if not n:
            return headers
        words = headers.view(np.uint64)
        if n <= SCALAR_LIMIT:
            # One conversion to Python's own numbers, then comparisons that run in C.
            numbers = words.tolist()
            key, first = numbers[0], numbers[1]
            alike = n == 1 or numbers[3::3] == [key] * (n - 1)
            run = n == 1 or (alike and numbers[1::3] == list(range(first, first + n)))
        else:
            columns = words.reshape(n, 3)
            key, first = columns[0, :2].tolist()
            offsets = columns[:, 1] - (_COUNTING[:n] if n <= len(_COUNTING) else np.arange(n, dtype=np.uint64))
            alike = bool(np.logical_and.reduce(columns[:, 0] == key))
            run = alike and bool(np.logical_and.reduce(offsets == first))
        received = self._by_key.get(key) if alike else None
        if received is None or first >= SEQUENCE_LIMIT:
            return self._record_mixed(headers)
        if not run:
            # One publisher and this epoch, with gaps: usual at a rate that is too high, because queues overflow.
            sequences = words[1::3]
            if int(np.maximum.reduce(sequences)) >= SEQUENCE_LIMIT:
                return self._record_mixed(headers)
            _add_runs(received, sequences)
        elif first == received.next:
            # Ascending without a gap: the batch is one run.
            received.next = first + n
        else:
            received.add(first, first + n - 1)
        self.messages += n
        return headers

    def ours(self, headers: Headers) -> npt.NDArray[np.bool_]:
        """Which of the headers belong to the account."""
        if self.epoch == PROBE_EPOCH or not self._received:
            return np.zeros(len(headers), bool)
        # Seven times as fast as numpy's isin.
        publishers, known = headers["publisher"], self._known
        ours: npt.NDArray[np.bool_] = known[np.searchsorted(known[:-1], publishers)] == publishers
        ours &= (headers["epoch"] == self.epoch) & (headers["sequence"] < SEQUENCE_LIMIT)
        return ours

    def _refuse(self, epoch: int, publisher: int, sequence: int) -> None:
        if epoch != PROBE_EPOCH:
            self.stale += 1
        elif sequence < SEQUENCE_LIMIT:
            self.probes[publisher] = max(sequence, self.probes.get(publisher, 0))
        elif sequence == SEQUENCE_LIMIT | self.epoch:
            self._ended.add(publisher)

    def _record_mixed(self, headers: Headers) -> Headers:
        """Counts a batch with gaps, several publishers, probes or stale messages, as runs for each publisher."""
        ours = self.ours(headers)
        count = int(np.count_nonzero(ours))
        found = headers if count == len(headers) else headers[ours]
        # The accounts of publishers are independent: the order of arrival counts among the messages of each.
        order = np.argsort(found["publisher"], kind="stable")
        publishers, sequences = found["publisher"][order], found["sequence"][order]
        cut = (publishers[1:] != publishers[:-1]) | (sequences[1:] - sequences[:-1] != 1)
        begins = np.flatnonzero(np.concatenate((np.ones(min(count, 1), bool), cut)))
        lasts = sequences[np.append(begins[1:], count) - 1] if count else sequences
        for publisher, first, last in zip(
            publishers[begins].tolist(), sequences[begins].tolist(), lasts.tolist(), strict=True
        ):
            self._received[publisher].add(first, last)
        self.messages += count
        if found is not headers:
            for epoch, publisher, sequence, _ in headers[~ours].tolist():
                self._refuse(epoch, publisher, sequence)
        return found

    def has_last(self, expected: Iterable[PublisherTotal]) -> bool:
        """Whether the last expected sequence of every publisher was received: if order is kept, nothing can follow."""
        for sent in expected:
            ranges = _expected_ranges(sent)
            if ranges and self._received.get(sent.publisher, _NOTHING).next <= ranges[-1][1]:
                return False
        return True

    def marked(self, expected: Iterable[PublisherTotal]) -> bool:
        """Whether every publisher's end marker of this epoch was received: if order is kept, nothing can follow."""
        publishers = {sent.publisher for sent in expected}
        return bool(publishers) and publishers <= self._ended & self._received.keys()

    def present(self, publisher: int, first: int, count: int) -> npt.NDArray[np.bool_]:
        """Which of the sequences ``first``, ``first`` + 1, … of a publisher were received."""
        return self._received.get(publisher, _NOTHING).present(first, count)

    def close(self, sent: Sequence[PublisherTotal], *, member: bool = False) -> list[LedgerCounts]:
        """The account compared with what each publisher sent: one entry for each publisher, in the order of ``sent``.

        Expected are the sequences 0 … sent − 1 without the unacknowledged ones; other received sequences are ``extra``.
        A ``member`` of a consumer group is not expected to receive everything: nothing counts as missing, and the entry
        lists the received sequences, expected or not.
        """
        at_end = self._at_end if self._at_end is not None else self._received
        accounts = []
        left = compact_encoding.MAX_CHARACTERS
        for s in sent:
            received = self._received.get(s.publisher, _NOTHING)
            account = _account(s, received, at_end.get(s.publisher, _NOTHING))
            if member:
                account = of_a_member(account, received.written(), left)
                left -= len(account.received_bits)
            accounts.append(account)
        return accounts


_NOTHING: Final = _Received()
"""The empty set, for a publisher that was never announced; it is never changed."""


def _add_runs(received: _Received, sequences: npt.NDArray[np.uint64]) -> None:
    """Adds sequences in the order of arrival, cut into ascending runs."""
    begin = 0
    for cut in [*(np.flatnonzero(sequences[1:] - sequences[:-1] != 1) + 1).tolist(), len(sequences)]:
        received.add(int(sequences[begin]), int(sequences[cut - 1]))
        begin = cut


def of_a_member(account: LedgerCounts, text: str | None, room: int) -> LedgerCounts:
    """The account of a member of a consumer group.

    Args:
        account: what the subscriber received.
        text: the bitmap of all received sequences; None: it is too long.
        room: the longest bitmap, in characters.
    """
    truncated = text is None or len(text) > room
    shown = "" if text is None or truncated else text
    return replace(account, missing=0, missing_ranges=[], received_bits=shown, truncated=truncated)


def _account(sent: PublisherTotal, received: _Received, at_end: _Received) -> LedgerCounts:
    expected = _expected_ranges(sent)
    size = _size(expected)
    missing = _missing(received, expected)
    arrived = size - missing.count
    return LedgerCounts(
        publisher=sent.publisher,
        received=arrived,
        in_window=arrived if at_end is received else size - _missing(at_end, expected).count,
        missing=missing.count,
        missing_ranges=missing.ranges,
        truncated=missing.truncated,
        duplicates=received.duplicates,
        reordered=received.reordered,
        extra=received.next - received.holes() - arrived,
    )
