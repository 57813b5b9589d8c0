"""The time series that a client sends during a step. Pure, time is passed in.

Seconds are those of the step's clock, counted from the start of the window; a message belongs to the second in which
its batch was read, or handed to the library. The numbers sent add to those sent before.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.wire.histogram import LatencyRecorder
from hydra.wire.messages import SecondCounts

_SECOND_NS: Final = 1_000_000_000
TURNS: Final = 97
"""Number of different moments in the interval at which clients send: all at once would delay the messages."""


class ReportTimer:
    """The times at which a client sends its time series.

    Args:
        client: id of the client.
        start_ns: start of the window, on the step's clock.
        every_s: interval, s.
    """

    def __init__(self, client: int, start_ns: int, every_s: float) -> None:
        self._every_ns = round(every_s * _SECOND_NS)
        self.next_ns = start_ns + self._every_ns + self._every_ns * (client % TURNS) // TURNS
        """The next time, on the step's clock."""

    def due(self, now_ns: int) -> bool:
        """Whether it is time; true once for each interval."""
        if now_ns < self.next_ns:
            return False
        self.next_ns += self._every_ns * ((now_ns - self.next_ns) // self._every_ns + 1)
        return True


class SentTimeSeries:
    """The number of messages that a publisher has sent in each second."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._sent: dict[int, int] = {}

    def add(self, count: int, now_ns: int) -> None:
        """Adds messages that were sent at ``now_ns``."""
        second = max(now_ns - self._start_ns, 0) // _SECOND_NS
        self._sent[second] = self._sent.get(second, 0) + count

    def take(self) -> list[SecondCounts]:
        """The counts that were not sent to the controller yet."""
        sent, self._sent = self._sent, {}
        return [SecondCounts(second, count) for second, count in sent.items()]


class ReceivedTimeSeries:
    """The number and latency of the messages that a subscriber has received in each second.

    A second has its own recorder, which is then added to that of the step, so each message is recorded once.

    Args:
        latency: the recorder of the whole step; complete only after :meth:`take`.
        start_ns: start of the window, on the step's clock.
    """

    def __init__(self, latency: LatencyRecorder, start_ns: int) -> None:
        self._whole = latency
        self._start_ns = start_ns
        self._recorder = LatencyRecorder()
        self._second = 0
        self._complete: list[SecondCounts] = []

    def record(self, times_ns: npt.NDArray[np.uint64], now_ns: npt.NDArray[np.int64]) -> None:
        """Counts messages.

        Args:
            times_ns: the times in their headers.
            now_ns: when each was read, on the step's clock; never falling.
        """
        begin = 0
        while begin < len(now_ns):
            second = max(int(now_ns[begin]) - self._start_ns, 0) // _SECOND_NS
            if second != self._second:
                self._end_second()
                self._second = second
            end = int(np.searchsorted(now_ns, self._start_ns + (second + 1) * _SECOND_NS))
            self._recorder.record(times_ns[begin:end], now_ns[begin:end])
            begin = end

    def _end_second(self) -> None:
        latency = self._recorder.take()
        if latency.counts:
            self._whole.add(latency)
            self._complete.append(SecondCounts(self._second, sum(latency.counts[1::2]), latency))

    def take(self) -> list[SecondCounts]:
        """The counts that were not sent to the controller yet."""
        self._end_second()
        complete, self._complete = self._complete, []
        return complete
