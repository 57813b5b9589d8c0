"""The age of what was read, in parts of the window."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.golden_vectors.common import HIGHEST_US, LAG_BINS, SECOND_NS, START_NS, Case


def lag(window_ns: int, batches: Sequence[tuple[int, int]]) -> Case:
    """Batches read at some times (ns since the start), with the age of their newest message."""
    ages: list[list[int]] = [[] for _ in range(LAG_BINS)]
    part_ns = max(window_ns // LAG_BINS, 1)
    for at_ns, age_ns in batches:
        if 0 <= at_ns // part_ns < LAG_BINS:
            ages[at_ns // part_ns].append(min(max(age_ns // 1000, 0), HIGHEST_US))
    return {
        "start_ns": START_NS,
        "stop_ns": START_NS + window_ns,
        "batches": [[START_NS + at_ns, age_ns] for at_ns, age_ns in batches],
        "means_us": [sum(part) // len(part) if part else None for part in ages],
    }


def lags() -> dict[str, Case]:
    """By name."""
    dice = random.Random(7)
    growing = [(n * 7_000_000, n * 50_000 + dice.randrange(20_000)) for n in range(280)]
    return {
        "nothing-read": lag(2 * SECOND_NS, []),
        "means-are-rounded-down": lag(2 * SECOND_NS, [(0, 1000), (1, 2000), (99_999_999, 1999), (100_000_000, 5000)]),
        "outside-the-window": lag(2 * SECOND_NS, [(-1, 1000), (2 * SECOND_NS - 1, 7000), (2 * SECOND_NS, 1000)]),
        "ages-are-clamped": lag(2 * SECOND_NS, [(0, -1000), (1, -5), (SECOND_NS, 2**62), (SECOND_NS + 1, 2**62)]),
        "a-window-shorter-than-its-parts": lag(5, [(n, 1000 * n) for n in range(30)]),
        "a-window-that-cannot-be-divided": lag(1_000_000_007, [(n * 50_000_000, 1000 * n) for n in range(21)]),
        "growing": lag(2 * SECOND_NS, growing),
    }
