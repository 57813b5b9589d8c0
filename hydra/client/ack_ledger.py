"""Which sequences of an epoch were acknowledged, failed or have no answer yet, and how long answers take. Pure.

Answers come mostly in order and in long runs. All sequences below ``answered_below`` are answered and take no memory;
above it, a window as long as the messages in flight has one byte for each sequence.

Times are kept by chunk, not by message: within the call that hands a chunk over they grow evenly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hydra.model import Histogram, SequenceRange
from hydra.wire.histogram import LatencyRecorder

Sequences = npt.NDArray[np.uint64] | npt.NDArray[np.int64]

_ACKNOWLEDGED = 1
_FAILED = 2
_COMPACT_BYTES = 1 << 16


class AckLedger:
    """Exact account of one publisher's epoch. Sequences start at 0; the first answer to a sequence counts."""

    def __init__(self) -> None:
        self.sent = self.acknowledged = self.failed = self.repeated = self.answered_below = 0
        self._failed: list[SequenceRange] = []  # ranges below answered_below
        self._answers = np.zeros(0, np.uint8)  # for answered_below, answered_below + 1, …

    @property
    def pending(self) -> int:
        """The number of messages without an answer."""
        return self.sent - self.acknowledged - self.failed

    def accept(self, count: int) -> None:
        """The library accepted the next ``count`` messages."""
        self.sent += count

    def acknowledge(self, sequences: Sequences) -> None:
        """The server acknowledged these sequences, in any order.

        Raises:
            ValueError: the library never accepted one of the sequences.
        """
        n = len(sequences)
        if n == 0:
            return
        first, last = int(sequences[0]), int(sequences[-1])
        # In order, without a gap, and nothing above is answered: only the base moves.
        if (
            first == self.answered_below
            and last - first == n - 1
            and last < self.sent
            and not self._answers.any()
            and bool((sequences[1:] > sequences[:-1]).all())
        ):
            self.acknowledged += n
            self.answered_below += n
            self._answers = self._answers[:0]
            return
        self.acknowledged += self._mark(sequences, _ACKNOWLEDGED)

    def fail(self, sequences: Sequences) -> None:
        """The library reported an error for these sequences. Errors as for ``acknowledge``."""
        if len(sequences):
            self.failed += self._mark(sequences, _FAILED)

    def unacknowledged(self) -> list[SequenceRange]:
        """Ranges of failed and pending sequences, rising, never adjacent."""
        above = np.ones(self.sent - self.answered_below, np.bool_)
        known = self._answers[: len(above)]
        above[: len(known)] = known != _ACKNOWLEDGED
        return _joined(self._failed + _ranges(above, self.answered_below))

    def _mark(self, sequences: Sequences, answer: int) -> int:
        numbers = np.unique(sequences.astype(np.int64))
        if int(numbers[0]) < 0 or int(numbers[-1]) >= self.sent:
            raise ValueError(f"an answer to sequence {numbers[-1]} of {self.sent} sent")
        places = numbers[np.searchsorted(numbers, self.answered_below) :] - self.answered_below
        if len(places) and int(places[-1]) >= len(self._answers):
            size = max(int(places[-1]) + 1, 2 * len(self._answers), 1024)
            self._answers = np.concatenate([self._answers, np.zeros(size - len(self._answers), np.uint8)])
        fresh = places[self._answers[places] == 0]
        self._answers[fresh] = answer
        self.repeated += len(sequences) - len(fresh)
        self._move_base()
        return len(fresh)

    def _move_base(self) -> None:
        if len(self._answers) == 0 or self._answers[0] == 0:
            return
        answered = self._answers != 0
        done = len(answered) if answered.all() else int(np.argmin(answered))
        # Moving copies the window: not worth it for a few messages, unless the window becomes empty.
        if done >= _COMPACT_BYTES or (done > 0 and not answered[done:].any()):
            self._failed = _joined(self._failed + _ranges(self._answers[:done] == _FAILED, self.answered_below))
            self.answered_below += done
            self._answers = self._answers[done:].copy() if answered[done:].any() else self._answers[:0]


def _ranges(chosen: npt.NDArray[np.bool_], offset: int) -> list[SequenceRange]:
    """Runs of True as (first, last), shifted by ``offset``."""
    edges = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
    return [(int(a) + offset, int(b) - 1 + offset) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _joined(ranges: list[SequenceRange]) -> list[SequenceRange]:
    """The rising ranges; adjacent ones become one."""
    joined: list[SequenceRange] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 >= first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


_LEAST_CHUNKS = 1024


class AckLatency:
    """The time from hand-over to acknowledgement of each message in one publisher's epoch.

    Args:
        ledger: the ledger of the same epoch; a chunk that it shows as answered is forgotten.
    """

    def __init__(self, ledger: AckLedger) -> None:
        self._ledger = ledger
        self._recorder = LatencyRecorder()
        self._chunks = np.zeros((3, _LEAST_CHUNKS), np.int64)  # first sequence, time of its hand-over, ns per message
        self._count = 0

    def handed_over(self, first: int, count: int, began_ns: int, ended_ns: int) -> None:
        """The library accepted ``count`` messages from ``first`` on between these two times (CLOCK_MONOTONIC)."""
        if count == 0:
            return
        if self._count == self._chunks.shape[1]:
            self._make_room()
        self._chunks[:, self._count] = first, began_ns, (ended_ns - began_ns) // count
        self._count += 1

    def acknowledged(self, sequences: Sequences, now_ns: int) -> None:
        """Counts messages that were handed over before and are acknowledged at ``now_ns`` (CLOCK_MONOTONIC)."""
        given = sequences.astype(np.int64, copy=False)
        first, began_ns, each_ns = self._chunks[:, : self._count]
        at = np.searchsorted(first, given, "right") - 1
        times_ns = began_ns[at] + (given - first[at]) * each_ns[at]
        self._recorder.record(times_ns.view(np.uint64), now_ns)

    def histogram(self) -> Histogram:
        """The latencies until now, in µs."""
        return self._recorder.histogram()

    def _make_room(self) -> None:
        first = self._chunks[0]
        done = max(int(np.searchsorted(first, self._ledger.answered_below, "right")) - 1, 0)
        kept = self._chunks[:, done : self._count]
        self._count -= done
        larger = 2 * self._count > self._chunks.shape[1]
        chunks = np.zeros((3, self._chunks.shape[1] * (2 if larger else 1)), np.int64)
        chunks[:, : self._count] = kept
        self._chunks = chunks
