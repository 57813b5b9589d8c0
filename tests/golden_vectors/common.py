"""What the models of several kinds share."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

GOLDEN: Final = Path(__file__).parents[1] / "golden"
SECOND_NS: Final = 10**9
START_NS: Final = 1_767_225_600 * SECOND_NS
GRACE_NS: Final = 5_000_000
LAG_BINS: Final = 20
HIGHEST_US: Final = 3_600_000_000
MOST_CHARACTERS: Final = 262_144
MOST_MISSING: Final = 256
MARK: Final = 2**63

Case = dict[str, Any]
Ranges = list[list[int]]


def ranges(numbers: Iterable[int], *, apart_at: int | None = None) -> Ranges:
    """Numbers as [first, last] ranges; a range ends before ``apart_at``."""
    them: Ranges = []
    for n in sorted(numbers):
        if them and them[-1][1] == n - 1 and n != apart_at:
            them[-1][1] = n
        else:
            them.append([n, n])
    return them


def bitmap(numbers: Iterable[int]) -> str:
    """Numbers as a bitmap in base64."""
    one = 0
    for n in numbers:
        one |= 1 << n
    return base64.b64encode(one.to_bytes((one.bit_length() + 7) // 8, "little")).decode()
