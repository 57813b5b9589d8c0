"""In which seconds of a step copies came late, or not at all, as evidence for :mod:`hydra.measure.share`. Pure.

A late copy counts in the second in which it arrived, so that what a stall has held up stays together; a lost one in
that in which it was due. What came while the step was drained belongs to its last second. Copies of which nobody knows
the second are all taken for one stall, that of the last second: that is the least that they may prove.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import ceil

import numpy as np

from hydra.measure.column_names import LOSS_HIGH, LOSS_LOW
from hydra.measure.event_recovery import coarse_lowest
from hydra.measure.share import Floats, Seconds
from hydra.model import CourseFacts, CourseInterval, Figure, Histogram
from hydra.wire.buckets import highest_of


@dataclass(frozen=True, slots=True)
class Copies:
    """What became of the copies that a step's subscribers outside the cohort should get.

    ``gone`` are those that did not arrive: at least (lost, or waiting in a server), and at most (of which nobody knows
    besides); None: nobody knows how many at most.
    """

    expected: int
    arrived: int
    gone: tuple[int, int | None]


def copies_of(
    figures: Mapping[str, Figure], latency: Histogram, facts: CourseFacts, course: Sequence[CourseInterval]
) -> Copies:
    """The account of a step, from its columns and the latencies of what arrived."""
    arrived = sum(latency.counts[1::2])
    lost = figures.get("client_loss_pct")
    low, high = (figures.get(name) for name in (LOSS_LOW, LOSS_HIGH)) if lost is None else (lost, lost)
    undrained, unknown = (figures.get(name) for name in ("undrained_pct", "unknown_pct"))
    least = [float(part) for part in (low, undrained) if isinstance(part, int | float)]
    most = [float(part) for part in (high, undrained, unknown) if isinstance(part, int | float)]
    due = round(sum(interval.due for interval in course) * facts.copies)
    if len(most) < 3:
        return Copies(max(due, arrived), arrived, (0, None))
    expected = due if sum(most) >= 100 else max(round(arrived / (1 - sum(most) / 100)), arrived)
    # A share too small to be one copy is one all the same.
    gone = max(expected - arrived, 1 if sum(most) else 0)
    return Copies(max(expected, arrived + gone), arrived, (ceil(gone * sum(least) / sum(most)) if gone else 0, gone))


class Lateness:
    """How late the copies of a step were, by its intervals.

    Args:
        facts: of the step.
        course: its intervals, oldest first, those of the drain included.
        latency: of the whole step.
        copies: what became of them.
        stall_s: what one stall may cost that nobody has seen, in seconds of traffic.
    """

    def __init__(
        self,
        facts: CourseFacts,
        course: Sequence[CourseInterval],
        latency: Histogram,
        copies: Copies,
        stall_s: float,
    ) -> None:
        self._whole = latency
        self._copies = copies
        count = max(ceil(facts.duration_s / facts.interval_s), 1)
        self._at = [min(interval.begin_s // facts.interval_s, count - 1) for interval in course]
        self._course = course
        due = self._summed([interval.due for interval in course], count)
        scale = copies.expected / due.sum() if due.any() else 0.0
        self._due: Floats = due * scale
        # One stall makes a message late, or more, and that for all of its subscribers.
        self._stall = max(stall_s * copies.expected / facts.duration_s, facts.copies, 1.0)
        self._lost = self._summed([interval.lost or 0 for interval in course], count)
        self._sums = [list(accumulate(interval.latency.counts[1::2])) for interval in course]

    def _summed(self, values: Sequence[int], count: int) -> Floats:
        return np.asarray(np.bincount(self._at, values, count) if values else np.zeros(count), np.float64)

    @cached_property
    def _untold(self) -> int:
        """Copies that arrived, and of which no interval tells: what clients told was lost on its way."""
        return max(self._copies.arrived - sum(sums[-1] for sums in self._sums if sums), 0)

    def gone(self, count: int) -> Seconds:
        """The seconds in which these copies should have come that did not arrive."""
        return Seconds(self._gone(count), self._due, self._stall)

    def _gone(self, count: int) -> Floats:
        bad = self._lost.copy()
        bad[-1] += max(count - bad.sum(), 0.0)
        return bad

    def at_most(self, above_us: float, gone: int) -> Seconds:
        """The seconds with every copy that may have taken longer, and with those that did not arrive."""
        bad = self._late([bisect_right(edges, above_us) for edges in self._highest]) + self._gone(gone)
        indices, counts = self._whole.counts[::2], self._whole.counts[1::2]
        late = sum(count for index, count in zip(indices, counts, strict=True) if highest_of(index) > above_us)
        bad[-1] += min(self._untold, late)
        return Seconds(bad, self._due, self._stall)

    def at_least(self, above_us: float, gone: int) -> Seconds:
        """The seconds with the copies that took longer for certain, and with those that did not arrive."""
        bad = self._late([bisect_right(edges, above_us) for edges in self._lowest]) + self._gone(gone)
        return Seconds(bad, self._due, self._stall)

    def _late(self, first: Sequence[int]) -> Floats:
        """Copies of each interval from a bucket of its histogram on."""
        late = [
            sums[-1] - (sums[at - 1] if at else 0) if sums else 0 for sums, at in zip(self._sums, first, strict=True)
        ]
        return self._summed(late, len(self._due))

    @cached_property
    def _highest(self) -> list[list[int]]:
        return [[highest_of(index) for index in interval.latency.counts[::2]] for interval in self._course]

    @cached_property
    def _lowest(self) -> list[list[int]]:
        return [[coarse_lowest(index) for index in interval.latency.counts[::2]] for interval in self._course]

    def highest_us(self) -> list[int]:
        """The highest value of each bucket in which anything arrived; rises."""
        return sorted({value for edges in self._highest for value in edges})

    def lowest_us(self) -> list[int]:
        """The lowest value of each, likewise."""
        return sorted({value for edges in self._lowest for value in edges})
