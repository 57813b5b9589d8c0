"""Compact encodings in messages: ids as runs, sequences as bitmaps. Pure.

A set of sequences that a member of a consumer group received is a bitmap in base64. Bit i stands for the sequence i,
beginning with the least significant bit of the first byte. Zero bytes at the end are cut, so each set has exactly
one encoding.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

MOST_IDS: Final = 1_000_000
"""Most ids that one message may name: a run is short however many ids it stands for."""

Written = list[int | tuple[int, int]]
Items = Sequence[int | Sequence[int]]
"""Encoded ids as they stand in a message, unchecked."""


def encode_ids(ids: Sequence[int]) -> Written:
    """These ids, ascending, with every run of several as (first, last)."""
    if len(ids) < 2:
        return list(ids)
    runs: Written = []
    ordered = sorted(set(ids))
    first = last = ordered[0]
    for client in [*ordered[1:], None]:
        if client is not None and client == last + 1:
            last = client
            continue
        runs.append(first if first == last else (first, last))
        if client is not None:
            first = last = client
    return runs


def decode_runs(items: Items, most: int = MOST_IDS) -> list[tuple[int, int]]:
    """The encoded ids, as first and last id of each run.

    Raises:
        ValueError: the ids do not rise, or there are more than ``most``.
    """
    found: list[tuple[int, int]] = []
    count, highest = 0, -1
    for item in items:
        first, last = (item, item) if isinstance(item, int) else item
        if not highest < first <= last:
            raise ValueError(f"ids do not rise at {first}")
        count += last - first + 1
        if count > most:
            raise ValueError(f"more than {most} ids")
        found.append((first, last))
        highest = last
    return found


def decode_ids(items: Items, most: int = MOST_IDS) -> list[int]:
    """The encoded ids, one by one; errors as in :func:`decode_runs`."""
    return [client for first, last in decode_runs(items, most) for client in range(first, last + 1)]


MAX_CHARACTERS: Final = 262_144
"""Most characters that all bitmaps of one report would have in base64: they have 196,608 bytes."""
MAX_SEQUENCES: Final = MAX_CHARACTERS // 4 * 3 * 8
"""Most sequences of one publisher in a bitmap of this length: 1,572,864."""


def encode_bitmap(size: int, low: Sequence[int], high: Sequence[int]) -> str:
    """The sequences 0 … ``size`` − 1 without the gaps ``low[i]`` … ``high[i]`` (disjoint, not adjacent).

    The last sequence is in no gap; ``size`` is at most ``MAX_SEQUENCES``.
    """
    # A process that only checks messages of others, as a relay does, starts without numpy.
    import numpy as np

    change = np.zeros(size + 1, np.int8)
    change[np.asarray(low, np.int64)] = 1
    change[np.asarray(high, np.int64) + 1] = -1
    present = np.cumsum(change[:size], dtype=np.int8) == 0
    return b64encode(np.packbits(present, bitorder="little").tobytes()).decode()
