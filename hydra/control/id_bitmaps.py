"""Sets of client ids as bitmaps, whose memory does not grow with the length of a run of ids. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from hydra.wire import compact_encoding

Array = npt.NDArray[np.int64]


def bitmap(ids: Iterable[int]) -> BitMap:
    """These ids as a bitmap; a bitmap is not copied."""
    if isinstance(ids, BitMap):
        return ids
    if isinstance(ids, range) and ids.step == 1:
        return span(ids.start, ids.stop)
    return BitMap(ids)


def span(first: int, behind: int) -> BitMap:
    """The ids from ``first`` to ``behind`` − 1."""
    found = BitMap()
    found.add_range(first, max(first, behind))
    return found


def array(ids: BitMap) -> Array:
    """The ids in rising order."""
    return np.array(ids.to_array(), np.int64)


def decode_ids(items: compact_encoding.Items, most: int) -> BitMap:
    """The ids of a message; errors as in :func:`hydra.wire.compact_encoding.decode_runs`."""
    found = BitMap()
    for first, last in compact_encoding.decode_runs(items, most):
        found.add_range(first, last + 1)
    return found


def runs(ids: BitMap) -> list[tuple[int, int]]:
    """First and last of each run of consecutive ids."""
    if not ids:
        return []
    first, last = ids.min(), ids.max()
    if last - first + 1 == len(ids):
        return [(first, last)]
    numbers = array(ids)
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.concatenate(([0], ends + 1))]
    lasts = numbers[np.concatenate((ends, [len(numbers) - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def encode_ids(ids: BitMap) -> compact_encoding.Written:
    """The ids in the form of messages."""
    return [first if first == last else (first, last) for first, last in runs(ids)]
