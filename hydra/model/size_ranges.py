"""Ranges of message sizes as the text of one setting."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from hydra.amounts import BYTES, whole_number
from hydra.model.base import HEADER_BYTES, require

MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_RANGES: Final = 64
_SIZE: Final = rf"(\d{{1,9}}(?:\.\d{{1,9}})?(?:{'|'.join(BYTES)})?)"
_RANGE: Final = re.compile(rf"{_SIZE}-{_SIZE}:(\d{{1,9}}(?:\.\d{{1,9}})?)")


class SizeRange(NamedTuple):
    """Sizes from ``low`` to ``high`` bytes, both included; each range gets its share of all weights."""

    low: int
    high: int
    weight: float


def size_ranges(text: str) -> list[SizeRange]:
    """The ranges in a text such as ``24-256:70,256-4096:30``.

    Raises:
        ValueError: the text is invalid.
    """
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        require(match is not None, f"message_sizes must be like 24-256:70,256-4096:30, not {text!r}")
        if match is not None:
            low, high = (whole_number(size, BYTES) for size in match.groups()[:2])
            found.append(SizeRange(low, high, float(match[3])))
    require(len(found) <= _MOST_RANGES, f"message_sizes has {len(found)} ranges, above the limit of {_MOST_RANGES}")
    for low, high, weight in found:
        require(
            HEADER_BYTES <= low <= high <= MOST_BYTES,
            f"a range of message_sizes must rise within {HEADER_BYTES} (the header) to {MOST_BYTES} bytes, "
            f"not {low} to {high}",
        )
        require(weight > 0, f"a weight in message_sizes must be above 0, not {weight:g}")
    return found


def without_units(text: str) -> str:
    """The text of ranges as clients read it, with sizes in bytes; the text itself if it is invalid."""
    try:
        ranges = size_ranges(text)
    except ValueError:
        return text
    # A weight stays as it was written.
    weights = (part.rpartition(":")[2].strip() for part in text.split(","))
    return ",".join(f"{low}-{high}:{weight}" for (low, high, _), weight in zip(ranges, weights, strict=True))


def sizes_text(ranges: Sequence[object]) -> str:
    """The text of ranges that a file lists as ``[from, to, weight]``.

    Raises:
        ValueError: the ranges are invalid.
    """
    parts = []
    for each in ranges:
        numbers = [n for n in each if type(n) in (int, float) and math.isfinite(n)] if isinstance(each, list) else []
        require(
            isinstance(each, list) and len(each) == len(numbers) == 3 and {*map(type, numbers[:2])} == {int},
            f"message_sizes must be a list like [[24, 256, 70], [256, 4096, 30]], not {list(ranges)}",
        )
        low, high, weight = numbers
        parts.append(f"{low}-{high}:{weight:g}")
    return ",".join(parts)
