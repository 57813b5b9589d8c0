"""Where each message goes, its key and its size. Pure.

They are functions of the seed, the publisher and the sequence of a message, so a receiver knows them without a byte in
the message. All arithmetic is in unsigned 64-bit integers that wrap around. Uneven choices read tables of integers
that the controller computes, because ``pow`` differs between languages (``tests/golden/traffic``).
docs/control-protocol.md, section 5, is the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import SequenceRange, Settings
from hydra.model.settings import size_ranges
from hydra.wire.data_message import GAMMA, WORD, mix, mix_each
from hydra.wire.messages import ONE_TOPIC, Traffic

TOPIC: Final = 1
KEY: Final = 2
SIZE_CLASS: Final = 3
SIZE: Final = 4
TOPICS_OF_CLIENT: Final = 5
"""Purposes of draws: each has its own stream of numbers. The last one has client ids in place of publishers."""

Table = Sequence[tuple[int, int]]
"""An alias table: slot i is choice i if the low half of a draw is below the first number, else the second number."""
Numbers = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

_HALF: Final = 2**32
_BY_PURPOSE: Final = 0xD1B54A32D192ED03
_BY_PUBLISHER: Final = 0x8CB92BA72F3D8DD7
_AT_ONCE: Final = 65_536
_FEW: Final = 8
"""Messages whose indices are computed one by one: for fewer ones numpy's cost per call dominates."""


def base(seed: int, publisher: int, purpose: int) -> int:
    """The number from which the draws of one purpose of a publisher (or of a client) follow."""
    return mix((mix((seed + purpose * _BY_PURPOSE) & WORD) + publisher * _BY_PUBLISHER) & WORD)


def draw(start: int, n: int) -> int:
    """The number of message n; ``start`` is a result of :func:`base`."""
    return mix((start + n * GAMMA) & WORD)


def draws(starts: Numbers | np.uint64, ns: Numbers) -> Numbers:
    """The number of each message; ``starts`` are results of :func:`base`, one for all messages or one for each."""
    return mix_each(starts + ns * np.uint64(GAMMA))


class Choice:
    """One of ``count`` indices for a number; equally likely without a table.

    Args:
        count: the number of indices, below 2³².
        table: the alias table of the indices, or nothing.
    """

    __slots__ = ("_aliases", "_count", "_table", "_thresholds")

    def __init__(self, count: int, table: Table = ()) -> None:
        self._count = count
        self._table = table
        self._thresholds = np.array([threshold for threshold, _ in table], np.uint64)
        self._aliases = np.array([alias for _, alias in table], np.int64)

    def of(self, number: int) -> int:
        """Returns the index that a random number selects."""
        slot = (number >> 32) * self._count >> 32
        if not self._table:
            return slot
        threshold, alias = self._table[slot]
        return slot if number & (_HALF - 1) < threshold else alias

    def each(self, numbers: Numbers) -> Indices:
        """Returns the index that each random number selects."""
        slots = ((numbers >> np.uint64(32)) * np.uint64(self._count) >> np.uint64(32)).astype(np.int64)
        if not self._table:
            return slots
        low = numbers & np.uint64(_HALF - 1)
        return np.where(low < self._thresholds[slots], slots, self._aliases[slots])


class MessageChoice:
    """An index for each message of one publisher: its topic or its key.

    Args:
        seed: the seed of the traffic.
        publisher: the publisher's id.
        purpose: what is chosen.
        count, table: as in :class:`Choice`.
    """

    __slots__ = ("_choice", "_start", "count")

    def __init__(self, seed: int, publisher: int, purpose: int, count: int, table: Table = ()) -> None:
        self.count = count
        self._start = base(seed, publisher, purpose)
        self._choice = Choice(count, table)

    def at(self, n: int) -> int:
        """The index of message n."""
        return self._choice.of(draw(self._start, n))

    def of(self, first: int, count: int) -> list[int]:
        """The indices of ``count`` messages from ``first`` on."""
        if count <= _FEW:
            return [self.at(n) for n in range(first, first + count)]
        found: list[int] = self.each(np.arange(first, first + count, dtype=np.uint64)).tolist()
        return found

    def each(self, ns: Numbers) -> Indices:
        """The index of each of these messages."""
        return self._choice.each(draws(np.uint64(self._start), ns))


class MessageSizes:
    """The size of each message of one publisher: a range chosen by its weight, and a size in it, ends included.

    Args:
        seed: the seed of the traffic.
        publisher: the publisher's id.
        ranges: smallest and largest size of each range, bytes with the header.
        table: the alias table of the ranges; nothing if they are equally likely.
    """

    __slots__ = ("_lows", "_range", "_spans", "_start")

    def __init__(self, seed: int, publisher: int, ranges: Sequence[tuple[int, int]], table: Table = ()) -> None:
        self._range = MessageChoice(seed, publisher, SIZE_CLASS, len(ranges), table)
        self._start = base(seed, publisher, SIZE)
        self._lows = np.array([low for low, _ in ranges], np.int64)
        self._spans = np.array([high - low + 1 for low, high in ranges], np.uint64)

    def of(self, first: int, count: int) -> Indices:
        """The sizes of the messages ``first``, ``first`` + 1, …, bytes with the header."""
        ns = np.arange(first, first + count, dtype=np.uint64)
        chosen = self._range.each(ns)
        within = (draws(np.uint64(self._start), ns) >> np.uint64(32)) * self._spans[chosen] >> np.uint64(32)
        return self._lows[chosen] + within.astype(np.int64)


def topics_of(seed: int, client: int, topics: int, per_client: int) -> list[int]:
    """The topics of a subscriber, ascending: a part of a Fisher-Yates shuffle.

    Args:
        seed: the seed of the run's traffic.
        client: the subscriber's id.
        topics: the number of all topics.
        per_client: how many it has; 0: all.
    """
    if per_client in (0, topics):
        return list(range(topics))
    start = base(seed, client, TOPICS_OF_CLIENT)
    moved: dict[int, int] = {}
    chosen: list[int] = []
    for i in range(per_client):
        j = i + ((draw(start, i) >> 32) * (topics - i) >> 32)
        chosen.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return sorted(chosen)


def alias_table(weights: Sequence[float]) -> list[tuple[int, int]]:
    """An alias table of indices with these weights.

    Source: M. D. Vose: A Linear Algorithm for Generating Random Numbers with a Given Distribution, IEEE Transactions on
    Software Engineering 17 (1991) 9. All its arithmetic is in integers here: the parts of all slots add up exactly.
    """
    total, slots = sum(weights), len(weights)
    parts = [round(weight / total * slots * _HALF) for weight in weights]
    heaviest = max(range(slots), key=parts.__getitem__)
    parts[heaviest] += slots * _HALF - sum(parts)
    table = [(0, i) for i in range(slots)]  # always itself
    small = [i for i in range(slots) if parts[i] < _HALF]
    large = [i for i in range(slots) if parts[i] > _HALF]
    while small:
        i, j = small.pop(), large[-1]  # the parts add up to whole slots, so one is too large while one is too small
        table[i] = (parts[i], j)
        parts[j] -= _HALF - parts[i]
        if parts[j] <= _HALF:
            large.pop()
        if parts[j] < _HALF:
            small.append(j)
    return table


def zipf(count: int, exponent: float) -> list[tuple[int, int]]:
    """The alias table of Zipf's law: index i has the weight (i + 1) ^ -exponent; empty if the exponent is 0."""
    return alias_table([(i + 1) ** -exponent for i in range(count)]) if exponent and count > 1 else []


def traffic_of(settings: Settings) -> Traffic:
    """The topics, keys and sizes of a step's messages, in the form for clients."""
    ranges = size_ranges(settings.message_sizes) if settings.message_sizes else []
    several = settings.topics > 1
    if not (several or settings.keys or ranges):
        return ONE_TOPIC
    return Traffic(
        seed=settings.payload_seed,
        topics=settings.topics,
        topic_table=zipf(settings.topics, settings.topic_skew) if several else [],
        topics_per_client=settings.topics_per_client if settings.chosen_topics < settings.topics else 0,
        wildcard=settings.wildcard and several,
        keys=settings.keys,
        key_table=zipf(settings.keys, settings.key_skew),
        sizes=[(low, high) for low, high, _ in ranges],
        size_table=alias_table([weight for _, _, weight in ranges]) if len(ranges) > 1 else [],
    )


def client_topics(traffic: Traffic, client: int) -> list[int]:
    """The topics of a subscriber, ascending."""
    return topics_of(traffic.seed, client, traffic.topics, traffic.topics_per_client)


def topic_choice(traffic: Traffic, publisher: int) -> MessageChoice:
    """The topic of each message of a publisher."""
    return MessageChoice(traffic.seed, publisher, TOPIC, traffic.topics, traffic.topic_table)


def key_choice(traffic: Traffic, publisher: int) -> MessageChoice:
    """The key of each message of a publisher; only if there are keys."""
    return MessageChoice(traffic.seed, publisher, KEY, traffic.keys, traffic.key_table)


def size_choice(traffic: Traffic, publisher: int) -> MessageSizes:
    """The size of each message of a publisher; only if there are ranges of sizes."""
    return MessageSizes(traffic.seed, publisher, traffic.sizes, traffic.size_table)


def hot_topics(topics: int) -> int:
    """How many topics are the tenth with most traffic: topic 0 and those after it."""
    return -(-topics // 10)


def topic_shares(traffic: Traffic) -> npt.NDArray[np.float64]:
    """The expected share of the messages that each topic gets."""
    shares = np.zeros(traffic.topics)
    for slot, (threshold, alias) in enumerate(traffic.topic_table):
        shares[slot] += threshold / _HALF
        shares[alias] += 1 - threshold / _HALF
    return shares / traffic.topics if traffic.topic_table else shares + 1 / traffic.topics


def topic_counts(
    traffic: Traffic, publisher: int, sent: int, unacknowledged: Sequence[SequenceRange]
) -> npt.NDArray[np.int64]:
    """How many of a publisher's acknowledged messages each topic got."""
    topic, counts = topic_choice(traffic, publisher), np.zeros(traffic.topics, np.int64)
    for first in range(0, sent, _AT_ONCE):
        ns = np.arange(first, min(first + _AT_ONCE, sent), dtype=np.uint64)
        for low, high in unacknowledged:
            ns = ns[(ns < low) | (ns > high)]
        counts += np.bincount(topic.each(ns), minlength=traffic.topics)
    return counts
