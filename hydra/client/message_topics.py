"""The topics and keys of messages, as one subscriber needs them. Pure.

The topic and the key of a message follow from its sequence (:mod:`hydra.wire.traffic`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hydra.model import SequenceRange
from hydra.wire.messages import PublisherTotal, Traffic
from hydra.wire.traffic import KEY, TOPIC, Choice, Indices, Numbers, base, client_topics, draws, hot_topics

Headers = npt.NDArray[np.void]
Flags = npt.NDArray[np.bool_]

MOST_SEQUENCES: Final = 2**31
"""Sequences that are checked or stored one by one are below this."""
_BLOCK: Final = 16_384
_LAST_BLOCK: Final = 512


def expected_ranges(sent: PublisherTotal) -> list[SequenceRange]:
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


class SequenceBlock(NamedTuple):
    """Some consecutive sequences of a publisher, all of which it sent.

    Attributes:
        first: the first of them.
        own: which of them have a topic of the subscriber.
        expected: which of these are acknowledged.
    """

    first: int
    own: Flags
    expected: Flags


class MessageTopics:
    """The topics and keys of the messages that a subscriber receives or expects.

    Args:
        traffic: the traffic of the step.
        client: the subscriber's id.
        publishers: the ids of its publishers.

    Attributes:
        partial: whether the subscriber has only a part of the topics.
        has_keys: whether messages have keys.
    """

    def __init__(self, traffic: Traffic, client: int, publishers: Iterable[int]) -> None:
        self.partial = traffic.chosen < traffic.topics
        self.has_keys = traffic.keys > 0
        known = sorted(publishers)
        self._traffic = traffic
        self._known = np.array(known, np.uint32)
        self._starts = np.array([base(traffic.seed, p, TOPIC) for p in known], np.uint64)
        self._topic = Choice(traffic.topics, traffic.topic_table)
        self._key = Choice(traffic.keys, traffic.key_table)
        self._own = np.zeros(traffic.topics, bool)
        self._own[client_topics(traffic, client)] = True
        self._hot = hot_topics(traffic.topics)

    def own(self, headers: Headers) -> Flags:
        """Which of these messages of known publishers have a topic of the subscriber."""
        return self._own[self._topics(headers)]

    def hot(self, headers: Headers) -> Flags:
        """Which of these messages of known publishers have one of the hot topics."""
        return self._topics(headers) < self._hot

    def _topics(self, headers: Headers) -> Indices:
        starts = self._starts
        if len(starts) > 1:
            starts = starts[np.searchsorted(self._known, headers["publisher"])]
        return self._topic.each(draws(starts, headers["sequence"]))

    def key_order(self, publisher: int) -> KeyOrder | None:
        """The order of a publisher's messages by topic and key; None without keys."""
        return KeyOrder(self._traffic, publisher, self._topic, self._key) if self.has_keys else None

    def blocks(self, sent: PublisherTotal, *, hot: bool = False) -> Iterator[SequenceBlock]:
        """What a publisher sent, in blocks, rising; with ``hot`` only messages of hot topics are expected."""
        ranges = expected_ranges(sent)
        firsts = range(0, sent.sent, _BLOCK)
        return (self._block(sent, ranges, first, min(_BLOCK, sent.sent - first), hot) for first in firsts)

    def last(self, sent: PublisherTotal) -> int:
        """The last sequence that the subscriber expects; -1 if it expects none."""
        ranges = expected_ranges(sent)
        end, count = sent.sent, _LAST_BLOCK
        while end > 0:
            first = max(end - count, 0)
            expected = np.flatnonzero(self._block(sent, ranges, first, end - first).expected)
            if len(expected):
                return first + int(expected[-1])
            end, count = first, min(2 * count, _BLOCK)
        return -1

    def _block(
        self, sent: PublisherTotal, ranges: Sequence[SequenceRange], first: int, count: int, hot: bool = False
    ) -> SequenceBlock:
        own, expected = np.ones(count, bool), np.zeros(count, bool)
        for i in range(bisect_left(ranges, first, key=itemgetter(1)), len(ranges)):
            low, high = ranges[i]
            if low >= first + count:
                break
            expected[max(low - first, 0) : high + 1 - first] = True
        if self.partial or hot:
            start = np.uint64(base(self._traffic.seed, sent.publisher, TOPIC))
            topics = self._topic.each(draws(start, np.arange(first, first + count, dtype=np.uint64)))
            if self.partial:
                own = self._own[topics]
                expected &= own
            if hot:
                expected &= topics < self._hot
        return SequenceBlock(first, own, expected)


class KeyOrder:
    """The order of a publisher's messages by topic and key: messages of one topic and key keep their order.

    Args:
        traffic: the traffic of the step.
        publisher: the publisher's id.
        topic, key: the choices of a topic and of a key.
    """

    __slots__ = ("_after_last", "_key", "_key_start", "_keys", "_several", "_topic", "_topic_start")

    def __init__(self, traffic: Traffic, publisher: int, topic: Choice, key: Choice) -> None:
        self._topic, self._key = topic, key
        self._several, self._keys = traffic.several, traffic.keys
        self._topic_start = np.uint64(base(traffic.seed, publisher, TOPIC))
        self._key_start = np.uint64(base(traffic.seed, publisher, KEY))
        # The sequence after the highest one of each key of each topic. Only what is written takes memory.
        self._after_last = np.zeros(traffic.topics * traffic.keys, np.int64)

    def reordered(self, sequences: Numbers) -> int:
        """How many messages arrived after a later one of their topic and key, duplicates included.

        Args:
            sequences: at least one, in the order of arrival; all are below ``MOST_SEQUENCES``.
        """
        keys = self._key.each(draws(self._key_start, sequences))
        if self._several:
            keys = keys + self._topic.each(draws(self._topic_start, sequences)) * self._keys
        order = np.argsort(keys, kind="stable")
        keys, n = keys[order], sequences.view(np.int64)[order]
        begins = np.concatenate(([True], keys[1:] != keys[:-1]))
        # The highest sequence so far within each key: each key's sequences are lifted above those of the keys before.
        lift = (np.cumsum(begins) - 1) * MOST_SEQUENCES
        highest = np.maximum.accumulate(n + lift) - lift
        before = np.where(begins, -1, np.concatenate(([-1], highest[:-1])))
        before = np.maximum(before, self._after_last[keys] - 1)
        ends = np.append(begins[1:], True)
        self._after_last[keys[ends]] = np.maximum(self._after_last[keys[ends]], highest[ends] + 1)
        return int(np.count_nonzero(n < before))
