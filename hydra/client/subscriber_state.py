"""A subscriber's state in a step: messages that are not counted yet, its lag, and its impairments. Pure.

Counting a batch takes some twenty calls of numpy. If many processes share few cores, no cache holds their code when a
subscriber runs, and the calls take ten times as long as otherwise: as long as receiving 500 messages. So received
messages are buffered with their times and counted together.

The lag is the age of the newest message. Ages within a short time are almost equal, so they are averaged in
``LAG_BINS`` equal parts of the window. The controller, which has the bins of all subscribers, decides whether the lag
grows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hydra.client.read_limit import ReadLimit
from hydra.model import HEADER_BYTES, LAG_BINS, LATENCY_HIGHEST_US
from hydra.wire.data_message import HEADER_OF, from_bytes
from hydra.wire.messages import Impairment

MOST_MESSAGES: Final = 4000
"""Most messages in the buffer before they are counted: it keeps 24 bytes of each."""
MOST_BATCHES: Final = 1000
"""Most batches in the buffer before they are counted."""


@dataclass(frozen=True, slots=True)
class BufferedBatches:
    """Batches in the order of arrival.

    Attributes:
        headers: headers of all messages, an array of ``header.DTYPE``.
        sizes: sizes of all messages, in bytes.
        read_ns: when each batch was read, CLOCK_MONOTONIC.
        counts: number of messages in each batch; at least one.
    """

    headers: npt.NDArray[np.void]
    sizes: npt.NDArray[np.int64]
    read_ns: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def split(self, batches: int) -> Iterator[BufferedBatches]:
        """Yields the first ``batches`` batches, then the others; leaves out an empty part."""
        messages = int(self.counts[:batches].sum())
        for at, of in ((slice(batches), slice(messages)), (slice(batches, None), slice(messages, None))):
            if len(self.counts[at]):
                yield BufferedBatches(self.headers[of], self.sizes[of], self.read_ns[at], self.counts[at])

    def only(self, included: npt.NDArray[np.bool_]) -> BufferedBatches:
        """The messages for which ``included`` is true, in the batches that have such messages."""
        counts = np.add.reduceat(included.astype(np.int64), np.cumsum(self.counts) - self.counts)
        some = counts > 0
        return BufferedBatches(self.headers[included], self.sizes[included], self.read_ns[some], counts[some])


class ReceiveBuffer:
    """Messages that have arrived since the buffer was last emptied."""

    __slots__ = ("_counts", "_headers", "_messages", "_read_ns", "_sizes")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._messages = 0
        self._headers: list[bytes] = []  # headers of many messages, joined
        self._sizes: list[tuple[int, npt.NDArray[np.int64] | int]] = []  # messages; their sizes, or the size of all
        self._read_ns: list[int] = []
        self._counts: list[int] = []

    @property
    def full(self) -> bool:
        """Whether the messages have to be counted now."""
        return self._messages >= MOST_MESSAGES or len(self._counts) >= MOST_BATCHES

    def add(self, messages: Sequence[bytes], batches: Sequence[tuple[int, int]]) -> None:
        """Adds messages to the buffer; messages shorter than a header are left out.

        Args:
            messages: the messages of all these batches.
            batches: when each batch was read, and its number of messages; at least one batch.
        """
        sizes = list(map(len, messages))
        total = len(sizes)
        if sizes.count(HEADER_BYTES) == total:
            self._sizes.append((total, HEADER_BYTES))
            self._headers.append(b"".join(messages))
        elif min(sizes) >= HEADER_BYTES:
            self._sizes.append((total, np.array(sizes, np.int64)))
            self._headers.append(b"".join(map(HEADER_OF, messages)))
        else:
            self._add_whole(messages, batches)
            return
        self._messages += total
        for read_ns, count in batches:
            self._read_ns.append(read_ns)
            self._counts.append(count)

    def _add_whole(self, messages: Sequence[bytes], batches: Sequence[tuple[int, int]]) -> None:
        left = iter(messages)
        for read_ns, count in batches:
            if whole := [message for message in islice(left, count) if len(message) >= HEADER_BYTES]:
                self.add(whole, [(read_ns, len(whole))])

    def take(self) -> BufferedBatches | None:
        """Empties the buffer; returns its content, or None if it was empty."""
        if not self._counts:
            return None
        sizes = [np.full(count, size) if isinstance(size, int) else size for count, size in self._sizes]
        arrived = BufferedBatches(
            from_bytes(b"".join(self._headers)),
            np.concatenate(sizes),
            np.array(self._read_ns, np.int64),
            np.array(self._counts, np.int64),
        )
        self._begin()
        return arrived


class LagBins:
    """The mean age of the newest message of each batch, in each part of a window.

    Args:
        start_ns, stop_ns: the window.
    """

    __slots__ = ("_bin_ns", "_counts", "_start_ns", "_sums_us")

    def __init__(self, start_ns: int, stop_ns: int) -> None:
        self._start_ns = start_ns
        self._bin_ns = max((stop_ns - start_ns) // LAG_BINS, 1)
        self._counts = np.zeros(LAG_BINS, np.int64)
        self._sums_us = np.zeros(LAG_BINS, np.int64)

    def add(self, now_ns: npt.NDArray[np.int64], ages_ns: npt.NDArray[np.int64]) -> None:
        """Adds the batches that were read in the window, and ignores others.

        Args:
            now_ns: when each batch was read, rising; at least one.
            ages_ns: how long before its newest message was due; below 0 counts as 0, above 1 h as 1 h.
        """
        at = (now_ns - self._start_ns) // self._bin_ns
        ages_us = np.minimum(np.maximum(ages_ns // 1000, 0), LATENCY_HIGHEST_US)
        if int(at[0]) < 0 or int(at[-1]) >= LAG_BINS:
            within = (at >= 0) & (at < LAG_BINS)
            at, ages_us = at[within], ages_us[within]
        np.add.at(self._counts, at, 1)
        np.add.at(self._sums_us, at, ages_us)

    def means_us(self) -> list[int | None]:
        """The mean lag in each part (µs, rounded down); None if no batch was read in the part."""
        return [
            total // n if n else None for total, n in zip(self._sums_us.tolist(), self._counts.tolist(), strict=True)
        ]


Change = Literal["", "leave", "return"]

NO_LIMIT: Final = 2**31
_SECOND_NS: Final = 1e9


class Impairments:
    """The impairments of one subscriber in one step; if several overlap, the first in the list counts.

    Attributes:
        is_absent: whether the subscriber has no connection.
    """

    def __init__(self, impairments: Sequence[Impairment]) -> None:
        self.is_absent = False
        self._impairments = list(impairments)
        self._now: Impairment | None = None
        self._limit: ReadLimit | None = None  # of the present impairment

    def __bool__(self) -> bool:
        return bool(self._impairments)

    def at(self, since_start_ns: int) -> Change:
        """Whether the subscriber has to disconnect or reconnect now.

        Args:
            since_start_ns: time since the start of the window.
        """
        now = next(
            (s for s in self._impairments if s.begin_s * _SECOND_NS <= since_start_ns < s.end_s * _SECOND_NS), None
        )
        if now is self._now:
            return ""
        self._now, self._limit = now, None
        if now is not None and now.kind == "slow":
            self._limit = ReadLimit(now.rate, round(now.begin_s * _SECOND_NS))
        if now is not None and now.kind == "gone":
            left, self.is_absent = self.is_absent, True
            return "" if left else "leave"
        return "return" if self.is_absent else ""

    def read(self, since_start_ns: int, messages: int) -> None:
        """Notes that messages were read at this time."""
        if self._limit is not None:
            self._limit.read(since_start_ns, messages)

    def allowance(self, since_start_ns: int) -> tuple[int, float]:
        """The number of messages that may be read now, and the seconds until that may change."""
        since_s = since_start_ns / _SECOND_NS
        next_s = (
            min((e for s in self._impairments for e in (s.begin_s, s.end_s) if e > since_s), default=math.inf) - since_s
        )
        if self._now is None:
            return NO_LIMIT, next_s
        if self._limit is None:
            return 0, next_s
        if allowed := self._limit.allowance(since_start_ns):
            return allowed, next_s
        return 0, min(next_s, self._limit.wait_s(since_start_ns))
