"""A merged latency histogram in the few buckets that others can read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import Histogram
from hydra.wire.buckets import BUCKETS, highest_of, index_of, lowest_of

BOUNDS_US: Final = (*(step * 10**power for power in range(1, 7) for step in (1, 2, 5)), 10_000_000)
"""Upper bounds of the buckets but the last one, which has none: 10 µs to 10 s, three to a decade."""

_EDGES: Final = np.array([index_of(bound) for bound in BOUNDS_US])


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values are in each bucket, and their sum.

    Attributes:
        counts: one number for each of ``BOUNDS_US``, and the last for what is above all of them; a value that equals a
            bound, to the three digits that clients keep, is below it.
        sum_s: of all values, seconds, to the same three digits.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_US) + 1)
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    def __add__(self, other: Distribution) -> Distribution:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, self.sum_s + other.sum_s)

    def at_least(self, other: Distribution) -> Distribution:
        """The greater of both in each bucket."""
        counts = tuple(max(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(counts, max(self.sum_s, other.sum_s))


def distribution(histogram: Histogram) -> Distribution:
    """What a histogram counts; what is below zero is in the first bucket."""
    pairs = np.array(histogram.counts, np.int64).reshape(-1, 2)
    index, counts = pairs[:, 0], pairs[:, 1]
    found = np.zeros(len(BOUNDS_US) + 1, np.int64)
    np.add.at(found, np.searchsorted(_EDGES, index), counts)
    return Distribution(tuple(found.tolist()), float(_middles_s()[index + BUCKETS] @ counts))


@cache
def _middles_s() -> npt.NDArray[np.float64]:
    """The middle of each bucket of a histogram, from index -BUCKETS on."""
    return np.array([(lowest_of(i) + highest_of(i)) / 2e6 for i in range(-BUCKETS, BUCKETS)])
