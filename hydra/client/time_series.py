"""What a client tells of the seconds of a step while it goes on. Pure, time is passed in.

A second is one of the step's clock, counted from the start of the window; messages belong to the second in which their
batch was read, or was handed to the library. What is told adds to what was told before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.wire.histogram import LatencyRecorder
from hydra.wire.messages import SecondCounts

_SECOND_NS: Final = 1_000_000_000
_TURNS: Final = 97
"""So many moments of its interval there are at which a client may tell: all at once would hold up the messages."""


class ReportTimer:
    """When a client tells.

    Args:
        client: its id.
        start_ns: of the window, on the step's clock.
        every_s: how often.
    """

    def __init__(self, client: int, start_ns: int, every_s: float) -> None:
        self._every_ns = round(every_s * _SECOND_NS)
        self.next_ns = start_ns + self._every_ns + self._every_ns * (client % _TURNS) // _TURNS
        """On the step's clock."""

    def due(self, now_ns: int) -> bool:
        """Whether it is time; true once."""
        if now_ns < self.next_ns:
            return False
        self.next_ns += self._every_ns * ((now_ns - self.next_ns) // self._every_ns + 1)
        return True


class SentTimeSeries:
    """What a publisher has sent, by seconds."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._sent: dict[int, int] = {}

    def add(self, count: int, now_ns: int) -> None:
        """So many messages have been sent."""
        second = max(now_ns - self._start_ns, 0) // _SECOND_NS
        self._sent[second] = self._sent.get(second, 0) + count

    def take(self) -> list[SecondCounts]:
        """What has not been told yet."""
        sent, self._sent = self._sent, {}
        return [SecondCounts(second, count) for second, count in sent.items()]


class ReceivedTimeSeries:
    """What a subscriber has received, by seconds, and how late.

    A second is counted by itself and then added to the whole step: a message is counted once all the same.

    Args:
        latency: of the whole step; complete after :meth:`take` only.
        start_ns: of the window, on the step's clock.
    """

    def __init__(self, latency: LatencyRecorder, start_ns: int) -> None:
        self._whole = latency
        self._start_ns = start_ns
        self._recorder = LatencyRecorder()
        self._second = 0
        self._told: list[SecondCounts] = []

    def record(self, times_ns: npt.NDArray[np.uint64], now_ns: Sequence[int], counts: npt.NDArray[np.int64]) -> None:
        """Counts batches.

        Args:
            times_ns: of all messages, what their headers carry.
            now_ns: when each batch was read, on the step's clock; rises.
            counts: how many messages each has.
        """
        if self._second_of(now_ns[0]) == self._second_of(now_ns[-1]):
            self._record(self._second_of(now_ns[0]), times_ns, now_ns, counts)
            return
        batch = message = 0
        for second, its in groupby(now_ns, self._second_of):
            size = len(list(its))
            some = counts[batch : batch + size]
            many = int(some.sum())
            self._record(second, times_ns[message : message + many], now_ns[batch : batch + size], some)
            batch, message = batch + size, message + many

    def _record(
        self, second: int, times_ns: npt.NDArray[np.uint64], now_ns: Sequence[int], counts: npt.NDArray[np.int64]
    ) -> None:
        if second != self._second:
            self._end_second()
            self._second = second
        alike = len(now_ns) == 1
        self._recorder.record(times_ns, now_ns[0] if alike else np.repeat(np.array(now_ns, np.int64), counts))

    def _second_of(self, time_ns: int) -> int:
        return max(time_ns - self._start_ns, 0) // _SECOND_NS

    def _end_second(self) -> None:
        latency = self._recorder.take()
        if latency.counts:
            self._whole.add(latency)
            self._told.append(SecondCounts(self._second, sum(latency.counts[1::2]), latency))

    def take(self) -> list[SecondCounts]:
        """What has not been told yet."""
        self._end_second()
        told, self._told = self._told, []
        return told
