"""Arrays with the numbers of many clients: runs of different lengths one after the other, who listens to whom. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def total(values: Ints) -> int:
    """The exact sum, also where it does not fit into 64 bits; of at most 2³¹ numbers."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def sorted_ids(ids: Collection[int]) -> Ints:
    """Ids of any collection, in order."""
    return np.sort(np.fromiter(ids, np.int64, len(ids)))


def offsets(counts: Ints) -> Ints:
    """Where each of several runs of so many items begins, and where the last one ends."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def sums(items: Ints, counts: Ints) -> Ints:
    """The sum of each run of so many items, which fits into 64 bits."""
    # Even if the running sum does not: what it wraps around by is taken off again.
    return np.diff(offsets(items)[offsets(counts)])


def indices_of_runs(begins: Ints, at: Ints) -> Ints:
    """The numbers of all items of the runs ``at``, one run after the other; ``begins`` are offsets."""
    return item_indices(begins[at], begins[at + 1] - begins[at])


def item_indices(begins: Ints, counts: Ints) -> Ints:
    """The numbers of the first so many items of runs that begin there, one run after the other."""
    moved = begins - offsets(counts)[:-1]
    return np.repeat(moved, counts) + np.arange(int(counts.sum()))


def publisher_of(subscribers: Ints, publishers: Sequence[int]) -> Ints:
    """The publisher of each of these subscribers: in turn, by their ids.

    None has more than one subscriber more than another where the ids are consecutive, and nobody changes the publisher
    when subscribers are added.

    Args:
        subscribers: their ids.
        publishers: those of the step, at least one.
    """
    return np.asarray(publishers, np.int64)[subscribers % len(publishers)]
