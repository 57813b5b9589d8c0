"""Batches that a subscriber has received and not counted yet. Pure, time is passed in.

To count a batch takes some twenty calls of numpy. Where many processes share few cores, none of their code is in a
cache when a subscriber's turn comes, and they take ten times as long as by themselves: as long as it takes to receive
500 messages. So what is received is put aside with its time, and counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import HEADER_BYTES
from hydra.wire.header import HEADER_OF, from_bytes

MOST_MESSAGES: Final = 4000
"""So many are counted at once at the latest: 24 bytes of each are kept."""
MOST_BATCHES: Final = 250
"""Likewise, where they come one by one."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Batches in the order of arrival.

    Attributes:
        headers: of all messages, an array of ``header.DTYPE``.
        sizes: of all messages, in bytes.
        read_ns: when each batch was read, CLOCK_MONOTONIC.
        counts: how many messages each batch has; at least one.
    """

    headers: npt.NDArray[np.void]
    sizes: npt.NDArray[np.int64]
    read_ns: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def batches(self) -> Iterator[Arrived]:
        """Each batch by itself."""
        ends = np.cumsum(self.counts).tolist()
        for at, (end, count) in enumerate(zip(ends, self.counts.tolist(), strict=True)):
            here = slice(end - count, end)
            yield Arrived(self.headers[here], self.sizes[here], self.read_ns[at : at + 1], self.counts[at : at + 1])

    def only(self, ours: npt.NDArray[np.bool_]) -> Arrived:
        """Those messages for which that is true, in those of the batches that have such."""
        counts = np.add.reduceat(ours.astype(np.int64), np.cumsum(self.counts) - self.counts)
        some = counts > 0
        return Arrived(self.headers[ours], self.sizes[ours], self.read_ns[some], counts[some])


class Arrivals:
    """What has arrived since it was last taken."""

    __slots__ = ("_counts", "_headers", "_messages", "_read_ns", "_sizes")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._messages = 0
        self._headers: list[bytes] = []  # of many messages, one after the other
        self._sizes: list[tuple[int, npt.NDArray[np.int64] | int]] = []  # of so many messages, each or alike
        self._read_ns: list[int] = []
        self._counts: list[int] = []

    @property
    def full(self) -> bool:
        """Whether it is time to count."""
        return self._messages >= MOST_MESSAGES or len(self._counts) >= MOST_BATCHES

    def add(self, messages: Sequence[bytes], batches: Sequence[tuple[int, int]]) -> None:
        """Puts messages aside; those that are shorter than a header are left out.

        Args:
            messages: of all these batches.
            batches: when each was read, and how many messages it has; at least one.
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

    def take(self) -> Arrived | None:
        """All of it; None if there is nothing."""
        if not self._counts:
            return None
        sizes = [np.full(count, size) if isinstance(size, int) else size for count, size in self._sizes]
        arrived = Arrived(
            from_bytes(b"".join(self._headers)),
            np.concatenate(sizes),
            np.array(self._read_ns, np.int64),
            np.array(self._counts, np.int64),
        )
        self._begin()
        return arrived
