"""A subscriber's exact account of the messages from each (publisher, epoch). Pure, time is passed in.

Every message of an epoch is counted once: as the first arrival of its sequence (``reordered`` if a later sequence
arrived before it) or as a duplicate. :mod:`hydra.client.sequence_set` keeps the sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hydra.client.message_topics import Flags, Headers, MessageTopics, expected_ranges
from hydra.client.sequence_set import ByteSet, RangeSet, SequenceSet
from hydra.model import LedgerCounts
from hydra.wire import compact_encoding
from hydra.wire.data_message import SEQUENCE_LIMIT
from hydra.wire.messages import PROBE_EPOCH, PublisherTotal

SCALAR_LIMIT: Final = 48
"""Batches up to this size are compared as lists: for smaller ones numpy's cost per call dominates (bench/growth.py)."""
_COUNTING = np.arange(4096, dtype=np.uint64)


class Ledger:
    """The account of one subscriber in one epoch.

    Probes (epoch 0) are not data: ``probes`` maps a publisher to the highest epoch in its probes. End markers (also
    epoch 0) are not data either. Messages of another epoch, or of a publisher that was not announced, count as
    ``stale``. A message of a topic that the subscriber does not have is ``extra`` only.

    Args:
        epoch: the epoch; of ``PROBE_EPOCH`` no message is data.
        publishers: the ids of the announced publishers.
        topics: the topics and keys of the messages; None if they have one topic and no keys.
        in_order: whether the messages of several topics arrive in the order in which their publisher sent them.
    """

    __slots__ = (
        "_awaited",
        "_by_key",
        "_bytes",
        "_ended",
        "_expected",
        "_known",
        "_lasts",
        "_over",
        "_ranges",
        "_received",
        "_scattered",
        "_topics",
        "epoch",
        "messages",
        "probes",
        "stale",
    )

    def __init__(
        self, epoch: int, publishers: Iterable[int], topics: MessageTopics | None = None, *, in_order: bool = True
    ) -> None:
        self.epoch = epoch
        self.messages = 0
        """Messages of this epoch, with duplicates."""
        self.stale = 0
        self.probes: dict[int, int] = {}
        self._ended: set[int] = set()
        self._over = False  # whether a batch was read after the end of the window
        self._topics = topics
        self._ranges: dict[int, RangeSet] = {}
        self._bytes: dict[int, ByteSet] = {}
        # Where ranges would be as many as messages.
        self._scattered = topics if topics is not None and (topics.partial or topics.has_keys or not in_order) else None
        if self._scattered is None:
            self._ranges = {p: RangeSet() for p in publishers}
        else:
            self._bytes = {p: ByteSet(self._scattered, p) for p in publishers}
        self._received: Mapping[int, SequenceSet] = self._ranges or self._bytes
        self._known = np.array(sorted(self._received), np.uint32)
        # The key is the first eight bytes of a header; probes never belong to an account.
        self._by_key = {p << 32 | epoch: ranges for p, ranges in self._ranges.items() if epoch != PROBE_EPOCH}
        self._expected: Iterable[PublisherTotal] = ()
        self._lasts: Iterator[tuple[SequenceSet, int]] = iter(())
        self._awaited: tuple[SequenceSet, int] | None = None

    def record(self, headers: Headers, now_ns: int, window_end_ns: int) -> Headers:
        """Counts a batch of headers that was read at ``now_ns``.

        Args:
            headers: the batch in the order of arrival, an array of ``header.DTYPE``.
            now_ns: one reading of the clock for the whole batch.
            window_end_ns: the end of the window; the first batch after it freezes the counts of the window.

        Returns:
            The headers that belong to the account (the same array if all do), for the latency.
        """
        if now_ns > window_end_ns and not self._over:
            self._over = True
            for each in self._received.values():
                each.end_window()
        n = len(headers)
        if not n:
            return headers
        if not self._by_key:
            return self._record_mixed(headers)
        words = headers.view(np.uint64)
        if n <= SCALAR_LIMIT:
            # One conversion to Python's own numbers, then comparisons that run in C.
            numbers = words.tolist()
            key, first = numbers[0], numbers[1]
            alike = run = True
            if n > 1:
                alike = numbers[3::3] == [key] * (n - 1)
                run = alike and numbers[1::3] == list(range(first, first + n))
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
            received.add_each(sequences)
        elif first == received.next:
            # Ascending without a gap: the batch is one run.
            received.next = first + n
        else:
            received.add(first, first + n - 1)
        self.messages += n
        return headers

    def counted(self, headers: Headers) -> Flags:
        """Which of the headers belong to the account."""
        counted = self._announced(headers)
        if self._topics is not None and self._topics.partial and bool(counted.any()):
            counted[counted] = self._topics.own(headers[counted])
        return counted

    def _announced(self, headers: Headers) -> Flags:
        """Which of the headers are of this epoch and of an announced publisher, whatever their topic."""
        if self.epoch == PROBE_EPOCH or not self._received:
            return np.zeros(len(headers), bool)
        # Seven times as fast as numpy's isin.
        publishers, known = headers["publisher"], self._known
        announced: Flags = known[np.searchsorted(known[:-1], publishers)] == publishers
        announced &= (headers["epoch"] == self.epoch) & (headers["sequence"] < SEQUENCE_LIMIT)
        return announced

    def _refuse(self, epoch: int, publisher: int, sequence: int) -> None:
        if epoch != PROBE_EPOCH:
            self.stale += 1
        elif sequence < SEQUENCE_LIMIT:
            self.probes[publisher] = max(sequence, self.probes.get(publisher, 0))
        elif sequence == SEQUENCE_LIMIT | self.epoch:
            self._ended.add(publisher)

    def _record_mixed(self, headers: Headers) -> Headers:
        """Counts a batch with gaps, several publishers, probes, stale messages, or messages of other topics."""
        announced = self._announced(headers)
        found = headers
        if not bool(np.logical_and.reduce(announced)):
            for epoch, publisher, sequence, _ in headers[~announced].tolist():
                self._refuse(epoch, publisher, sequence)
            found = headers[announced]
        if self._topics is not None and self._topics.partial and len(found):
            own = self._topics.own(found)
            if not bool(np.logical_and.reduce(own)):
                for publisher in found["publisher"][~own].tolist():
                    self._bytes[publisher].extra += 1
                found = found[own]
        if len(found):
            self._add(found)
        return found

    def _add(self, headers: Headers) -> None:
        """Adds messages of the account, at least one: as runs, or as an array for each publisher."""
        count = len(headers)
        self.messages += count
        publishers, sequences = headers["publisher"], headers["sequence"]
        if len(self._received) == 1:
            self._received[publishers.item(0)].add_each(sequences)
            return
        # The accounts of publishers are independent: the order of arrival counts among the messages of each.
        order = np.argsort(publishers, kind="stable")
        publishers, sequences = publishers[order], sequences[order]
        cut = publishers[1:] != publishers[:-1]
        if self._ranges:
            cut |= sequences[1:] - sequences[:-1] != 1
        cuts = np.flatnonzero(cut)
        begins, ends = np.concatenate(([0], cuts + 1)), np.concatenate((cuts, [count - 1]))
        if self._ranges:
            firsts, lasts = sequences[begins].tolist(), sequences[ends].tolist()
            for publisher, first, last in zip(publishers[begins].tolist(), firsts, lasts, strict=True):
                self._ranges[publisher].add(first, last)
        else:
            for publisher, begin, end in zip(publishers[begins].tolist(), begins.tolist(), ends.tolist(), strict=True):
                self._bytes[publisher].add_each(sequences[begin : end + 1])

    def has_last(self, expected: Iterable[PublisherTotal]) -> bool:
        """Whether the last expected sequence of every publisher was received: if order is kept, nothing can follow.

        Args:
            expected: the same object in every call, while it does not change.
        """
        if self._expected is not expected:
            self._expected = expected
            self._lasts = ((self._set(sent.publisher), self._last(sent)) for sent in expected)
            self._awaited = next(self._lasts, None)
        # What has arrived stays, so one publisher at a time is awaited.
        while self._awaited is not None and self._awaited[0].next > self._awaited[1]:
            self._awaited = next(self._lasts, None)
        return self._awaited is None

    def _last(self, sent: PublisherTotal) -> int:
        """The last sequence that the subscriber expects; -1 if it expects none."""
        if self._topics is not None and self._topics.partial:
            return self._topics.last(sent)
        ranges = expected_ranges(sent)
        return ranges[-1][1] if ranges else -1

    def _set(self, publisher: int) -> SequenceSet:
        """The received sequences; of a publisher that was not announced, the empty set."""
        found = self._received.get(publisher)
        if found is None:
            return RangeSet() if self._scattered is None else ByteSet(self._scattered, publisher)
        return found

    def marked(self, expected: Iterable[PublisherTotal]) -> bool:
        """Whether every publisher's end marker of this epoch was received: if order is kept, nothing can follow."""
        publishers = {sent.publisher for sent in expected}
        return bool(publishers) and publishers <= self._ended & self._received.keys()

    def hot(self, sent: Iterable[PublisherTotal]) -> tuple[int, int]:
        """The expected and the missing messages of the hot topics, of all publishers; zeros without topics."""
        expected = missing = 0
        if self._topics is None:
            return expected, missing
        for each in sent:
            received = self._set(each.publisher)
            for first, _, due in self._topics.blocks(each, hot=True):
                expected += int(np.count_nonzero(due))
                missing += int(np.count_nonzero(due & ~received.present(first, len(due))))
        return expected, missing

    def close(self, sent: Sequence[PublisherTotal], *, member: bool = False) -> list[LedgerCounts]:
        """The account compared with what each publisher sent: one entry for each publisher, in the order of ``sent``.

        Expected are the sequences 0 … sent − 1 of the subscriber's topics without the unacknowledged ones; other
        received sequences are ``extra``. A ``member`` of a consumer group is not expected to receive everything:
        nothing counts as missing, and the entry lists the received sequences, expected or not.
        """
        accounts = []
        left = compact_encoding.MAX_CHARACTERS
        for each in sent:
            received = self._set(each.publisher)
            arrived = received.arrived(each)
            account = LedgerCounts(
                publisher=each.publisher,
                received=arrived.received,
                in_window=arrived.in_window,
                missing=arrived.missing,
                missing_ranges=arrived.missing_ranges,
                truncated=arrived.truncated,
                duplicates=received.duplicates,
                reordered=received.reordered,
                extra=received.count() - arrived.received,
            )
            if member:
                account = _of_a_member(account, received.bitmap(), left)
                left -= len(account.received_bits)
            accounts.append(account)
        return accounts


def _of_a_member(account: LedgerCounts, text: str | None, room: int) -> LedgerCounts:
    """The account of a member of a consumer group.

    Args:
        account: what the subscriber received.
        text: the bitmap of all received sequences; None: it is too long.
        room: the longest bitmap, in characters.
    """
    truncated = text is None or len(text) > room
    shown = "" if text is None or truncated else text
    return replace(account, missing=0, missing_ranges=[], received_bits=shown, truncated=truncated)
