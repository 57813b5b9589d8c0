"""Sets of sequences as bitmaps in base64: what a member of a group says that it received. Pure.

Bit i stands for the sequence i, beginning with the least significant bit of the first byte. Zero bytes at the end are
cut, so that there is one way to write a set.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

MAX_CHARACTERS: Final = 262_144
"""Base64 in all bitmaps of one report together: half of a message."""
MAX_SEQUENCES: Final = MAX_CHARACTERS // 4 * 3 * 8
"""Sequences of one publisher that fit into that: 1,572,864."""


def written(size: int, low: Sequence[int], high: Sequence[int]) -> str:
    """The sequences 0 … ``size`` − 1 without the gaps ``low[i]`` … ``high[i]`` (disjoint, not adjacent).

    The last sequence is in no gap; ``size`` is at most ``MAX_SEQUENCES``.
    """
    # Whoever only checks what others have written, as a relay does, starts without numpy.
    import numpy as np

    change = np.zeros(size + 1, np.int8)
    change[np.asarray(low, np.int64)] = 1
    change[np.asarray(high, np.int64) + 1] = -1
    present = np.cumsum(change[:size], dtype=np.int8) == 0
    return b64encode(np.packbits(present, bitorder="little").tobytes()).decode()


def raw(text: str) -> bytes:
    """The bytes of the bitmap that a text holds.

    Raises:
        ValueError: it is not written as it has to be.
    """
    found = b64decode(text, validate=True)
    if b64encode(found).decode() != text or found[-1:] == b"\0":
        raise ValueError("a bitmap that ends in zeros")
    return found


def read(text: str) -> Bytes:
    """The bitmap that a text holds, a number a byte; errors as in :func:`raw`."""
    import numpy as np

    return np.frombuffer(raw(text), np.uint8)
