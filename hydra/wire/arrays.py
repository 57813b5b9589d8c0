"""Arrays with the numbers of many clients: runs of different lengths in one array, publishers of subscribers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def total(values: Ints) -> int:
    """The exact sum of at most 2³¹ numbers, even if it does not fit into 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def sorted_ids(ids: Collection[int]) -> Ints:
    """Ids of any collection, in order."""
    return np.sort(np.fromiter(ids, np.int64, len(ids)))


def offsets(counts: Ints) -> Ints:
    """The index where each run begins, given the runs' lengths, and the index where the last run ends."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def sums(items: Ints, counts: Ints) -> Ints:
    """The sum of each run of items, given the runs' lengths; each sum fits into 64 bits."""
    # The running sum may wrap around: the difference subtracts the same multiple of 2⁶⁴ again.
    return np.diff(offsets(items)[offsets(counts)])


def indices_of_runs(begins: Ints, at: Ints) -> Ints:
    """The indexes of all items of the runs ``at``, one run after the other; ``begins`` are offsets."""
    return item_indices(begins[at], begins[at + 1] - begins[at])


def item_indices(begins: Ints, counts: Ints) -> Ints:
    """The indexes of the first ``counts[i]`` items of the run that begins at ``begins[i]``, one run after the other."""
    moved = begins - offsets(counts)[:-1]
    return np.repeat(moved, counts) + np.arange(int(counts.sum()))


def publisher_of(subscribers: Ints, publishers: Sequence[int]) -> Ints:
    """The publisher of each of these subscribers, assigned in turn by subscriber id.

    If the ids are consecutive, the publishers' numbers of subscribers differ by at most one. A subscriber keeps its
    publisher when others are added.

    Args:
        subscribers: ids of the subscribers.
        publishers: ids of the step's publishers, at least one.
    """
    return np.asarray(publishers, np.int64)[subscribers % len(publishers)]
