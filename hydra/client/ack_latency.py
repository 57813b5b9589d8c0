"""How long acknowledgements take: from the hand-over of a message to the library to the report of its delivery. Pure.

Times are kept by chunk, not by message: within the call that hands a chunk over they grow evenly.
"""

from __future__ import annotations

import numpy as np

from hydra.client.acks import AckLedger, Sequences
from hydra.model import Histogram
from hydra.wire.histogram import LatencyRecorder

_LEAST_CHUNKS = 1024


class AckLatency:
    """The latencies of one publisher's epoch.

    Args:
        ledger: of the same epoch: chunks that are answered as a whole are forgotten.
    """

    def __init__(self, ledger: AckLedger) -> None:
        self._ledger = ledger
        self._recorder = LatencyRecorder()
        self._chunks = np.zeros((3, _LEAST_CHUNKS), np.int64)  # first sequence, when it was handed over, ns a message
        self._count = 0

    def handed_over(self, first: int, count: int, began_ns: int, ended_ns: int) -> None:
        """The library accepted ``count`` consecutive messages from ``first`` on in this time (CLOCK_MONOTONIC)."""
        if count == 0:
            return
        if self._count == self._chunks.shape[1]:
            self._make_room()
        self._chunks[:, self._count] = first, began_ns, (ended_ns - began_ns) // count
        self._count += 1

    def acknowledged(self, sequences: Sequences, now_ns: int) -> None:
        """Counts messages that were handed over before and are acknowledged now (CLOCK_MONOTONIC)."""
        given = sequences.astype(np.int64, copy=False)
        first, began_ns, each_ns = self._chunks[:, : self._count]
        at = np.searchsorted(first, given, "right") - 1
        times_ns = began_ns[at] + (given - first[at]) * each_ns[at]
        self._recorder.record(times_ns.view(np.uint64), now_ns)

    def histogram(self) -> Histogram:
        """All of them so far, µs."""
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
