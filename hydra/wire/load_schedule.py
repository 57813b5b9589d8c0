"""A load over time: a rate that changes linearly between points, and when each of its messages is due. Pure.

N(t) is the integral of the rate from the start; message n is due when N passes n. Between two points N is a parabola.
The inverse of N is computed in the form that loses no digits, ``d = 2m / (r + √(r² + 2am))``. IEEE 754 defines how each
of these operations is rounded, so clients in every language have the same due times (``tests/golden/load``;
``native/src/common/load.cc``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import Points, check_points

NEVER_NS: Final = 2**62
"""The due time of a message that the load does not reach."""
_SECOND_NS: Final = 1e9
_LEAST: Final = 1e-300
"""Replaces the rate at the point where it begins to rise from 0; there it divides only 0."""


class LoadSchedule:
    """When each message of a load is due.

    Args:
        points: at least one, the first at 0 s; after the last point the rate stays that of the last point.
    """

    __slots__ = ("_before", "_ends", "_lengths", "_rates", "_slopes", "_starts", "_vectors")

    def __init__(self, points: Points) -> None:
        check_points(points)
        if not points:
            raise ValueError("a load has at least one point")
        # Segment i begins at starts[i] with rates[i], after before[i] messages; at its end, ends[i] messages are due.
        self._starts: list[float] = []
        self._rates: list[float] = []
        self._slopes: list[float] = []
        self._lengths: list[float] = []
        self._before: list[float] = []
        self._ends: list[float] = []
        due = 0.0
        for (begin, rate), (end, until) in pairwise(points):
            length = end - begin
            if length > 0:
                behind = due + (rate + until) / 2 * length
                self._add(begin, length, rate, (until - rate) / length, due, behind)
                due = behind
        begin, rate = points[-1]
        self._add(begin, math.inf, rate, 0.0, due, math.inf if rate > 0 else due)
        columns = (self._starts, self._rates, self._slopes, self._lengths, self._before, self._ends)
        self._vectors = [np.array(column) for column in columns]

    def _add(self, begin: float, length: float, rate: float, slope: float, before: float, end: float) -> None:
        self._starts.append(begin)
        self._lengths.append(length)
        self._rates.append(rate)
        self._slopes.append(slope)
        self._before.append(before)
        self._ends.append(end)

    def due_ns(self, n: int) -> int:
        """When message n is due, ns since the start, rounded down; ``NEVER_NS`` if the load never reaches it."""
        i = bisect_right(self._ends, n)
        if i == len(self._ends):
            return NEVER_NS
        rate = self._rates[i]
        more = n - self._before[i]
        root = math.sqrt(max(rate * rate + 2 * self._slopes[i] * more, 0.0))
        offset = min(2 * more / max(rate + root, _LEAST), self._lengths[i])
        return math.floor((self._starts[i] + offset) * _SECOND_NS)

    def times_ns(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """When messages ``first``, ``first`` + 1, … are due: :meth:`due_ns` for each."""
        starts, rates, slopes, lengths, before, ends = self._vectors
        n = np.arange(first, first + count, dtype=np.float64)
        i = np.searchsorted(ends, n, side="right")
        behind = i == len(ends)
        i = np.minimum(i, len(ends) - 1)
        rate, more = rates[i], np.where(behind, 0.0, n - before[i])
        root = np.sqrt(np.maximum(rate * rate + 2 * slopes[i] * more, 0.0))
        offset = np.minimum(2 * more / np.maximum(rate + root, _LEAST), lengths[i])
        due = np.floor((starts[i] + offset) * _SECOND_NS)
        due[behind] = NEVER_NS
        times: npt.NDArray[np.int64] = due.astype(np.int64)
        return times

    def count_by(self, elapsed_ns: int) -> int:
        """The number of messages that are due at most ``elapsed_ns`` after the start."""
        if elapsed_ns < 0:
            return 0
        elapsed = elapsed_ns / _SECOND_NS
        i = bisect_right(self._starts, elapsed) - 1
        offset = elapsed - self._starts[i]
        count = math.floor(self._before[i] + (self._rates[i] + self._slopes[i] * offset / 2) * offset) + 1
        # The formula may be off by rounding: the due times decide.
        while count > 0 and self.due_ns(count - 1) > elapsed_ns:
            count -= 1
        while self.due_ns(count) <= elapsed_ns:
            count += 1
        return count

    def total(self, duration_s: float) -> int:
        """The number of messages that are due before the end of a step of this length."""
        return self.count_by(round(duration_s * _SECOND_NS) - 1)
