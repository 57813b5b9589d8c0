"""The step's clock from a host's own: exact in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tests.golden_vectors.common import SECOND_NS, START_NS, Case


def clock(at_ns: int, step_ns: int, rate_ppb: int, distances_ns: Sequence[int]) -> Case:
    """A host's clock: [reading, the step's time] and [the step's time, reading], so far (ns) from the given pair."""
    rate = Fraction(rate_ppb, SECOND_NS)
    return {
        "at_ns": at_ns,
        "step_ns": step_ns,
        "rate_ppb": rate_ppb,
        "times": [[at_ns + d, step_ns + d + math.floor(d * rate)] for d in distances_ns],
        "readings": [[step_ns + d, at_ns + d - math.floor(d * rate / (1 + rate))] for d in distances_ns],
    }


def clocks() -> dict[str, Case]:
    """By name."""
    near = [0, 1, -1, 999, -999, 1_000_000_007, -1_000_000_007, 10 * SECOND_NS, -10 * SECOND_NS]
    # A product with the rate takes more than 64 bits from a quarter of an hour on.
    far = [3600 * SECOND_NS + 1, 86_400 * SECOND_NS + 3, 400 * 86_400 * SECOND_NS + 7, -7_200 * SECOND_NS - 5]
    return {
        "one-host": clock(5_000 * SECOND_NS, START_NS, 0, [*near, *far]),
        "faster": clock(90_000 * SECOND_NS, START_NS, 500_000, [*near, *far]),
        "slower": clock(90_000 * SECOND_NS, START_NS, -500_000, [*near, *far]),
        "by-one": clock(90_000 * SECOND_NS, START_NS, 1, [*near, *far]),
        "by-minus-one": clock(90_000 * SECOND_NS, START_NS, -1, [*near, *far]),
        "as-fast-as-may-be": clock(90_000 * SECOND_NS, START_NS, 10_000_000, [*near, *far]),
        "as-slow-as-may-be": clock(90_000 * SECOND_NS, START_NS, -10_000_000, [*near, *far]),
        "just-booted": clock(0, START_NS, -20_001, [0, 1, 2, 49_997, 49_998, SECOND_NS]),
    }
