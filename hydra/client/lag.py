"""How far a subscriber is behind in the course of a step: the age of its newest message. Pure, time is passed in.

Ages within a short time are all alike, so they are averaged in ``LAG_BINS`` equal parts of the window. Whether the lag
grows is judged by whoever has the bins of all subscribers.
"""

from __future__ import annotations

from hydra.model import LAG_BINS, LATENCY_HIGHEST_US


class LagBins:
    """The mean age of the newest message of each batch, in each part of a window.

    Args:
        start_ns, stop_ns: the window.
    """

    __slots__ = ("_bin_ns", "_counts", "_start_ns", "_sums_us")

    def __init__(self, start_ns: int, stop_ns: int) -> None:
        self._start_ns = start_ns
        self._bin_ns = max((stop_ns - start_ns) // LAG_BINS, 1)
        self._counts = [0] * LAG_BINS
        self._sums_us = [0] * LAG_BINS

    def add(self, now_ns: int, age_ns: int) -> None:
        """A batch was read at ``now_ns``, its newest message due ``age_ns`` before; ignored outside the window.

        An age below 0 counts as 0, one above 1 h as 1 h.
        """
        index = (now_ns - self._start_ns) // self._bin_ns
        if 0 <= index < LAG_BINS:
            self._counts[index] += 1
            self._sums_us[index] += min(max(age_ns // 1000, 0), LATENCY_HIGHEST_US)

    def means_us(self) -> list[int | None]:
        """The means (µs, rounded down), one of each part; None where no batch was read."""
        return [total // n if n else None for total, n in zip(self._sums_us, self._counts, strict=True)]
