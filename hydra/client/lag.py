"""Whether a subscriber falls behind: the trend of its lag during the step. Pure, time is passed in.

The lag in messages is the age of the newest message of a batch times the rate at which messages are due. Ages within a
short time are all alike, so they are averaged in ``BINS`` equal parts of the window before a line is fitted: otherwise
the standard error would be that of hundreds of copies of one observation.
"""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

BINS: Final = 20
_LEAST_BINS: Final = 5


class Slope(NamedTuple):
    """A least-squares slope and its standard error, both in messages/s."""

    value: float
    error: float


class LagTrend:
    """Collects the ages of messages over a window and fits a line.

    Args:
        start_ns, stop_ns: the window.
        rate_pps: messages/s that are due in all; 0 (rate ``max``) makes the slope unknown.
    """

    __slots__ = ("_bin_ns", "_counts", "_rate_pps", "_start_ns", "_sums_ns")

    def __init__(self, start_ns: int, stop_ns: int, rate_pps: float) -> None:
        self._start_ns = start_ns
        self._bin_ns = max((stop_ns - start_ns) // BINS, 1)
        self._rate_pps = rate_pps
        self._counts = [0] * BINS
        self._sums_ns = [0] * BINS

    def add(self, now_ns: int, age_ns: int) -> None:
        """A batch was read at ``now_ns``, its newest message due ``age_ns`` before; ignored outside the window."""
        index = (now_ns - self._start_ns) // self._bin_ns
        if 0 <= index < BINS:
            self._counts[index] += 1
            self._sums_ns[index] += age_ns

    def slope(self) -> Slope | None:
        """The fitted slope; None at rate ``max`` or with too few parts of the window covered.

        Ordinary least squares: slope = Sxy/Sxx, error = sqrt((Syy − slope·Sxy) / (n − 2) / Sxx).
        """
        points = [(i, s / n) for i, (n, s) in enumerate(zip(self._counts, self._sums_ns, strict=True)) if n]
        if not self._rate_pps or len(points) < _LEAST_BINS:
            return None
        n = len(points)
        x = [i * self._bin_ns / 1e9 for i, _ in points]
        y = [age / 1e9 * self._rate_pps for _, age in points]
        mean_x, mean_y = sum(x) / n, sum(y) / n
        sxx = sum((a - mean_x) ** 2 for a in x)
        sxy = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
        syy = sum((b - mean_y) ** 2 for b in y)
        value = sxy / sxx
        return Slope(value, sqrt(max(syy - value * sxy, 0.0) / (n - 2) / sxx))
