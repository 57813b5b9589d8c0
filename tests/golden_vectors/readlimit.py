"""What a slow reader may read: looks at the limit, and how much of it each one uses."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

from tests.golden_vectors.common import SECOND_NS, START_NS, Case


def read_limit(rate: float, looks: Sequence[tuple[int, float]]) -> Case:
    """Looks (ns since the begin) at a limit, and the part of what may be read that is read at each.

    The limit: whatever happened before, no second has more than the rate and one read, which is a tenth of the rate or
    a message. Of a shorter pause than half a message's time beyond that, nothing is lost.
    """
    exact = Fraction(rate)
    most = math.floor(exact + max(Fraction(1), exact / 10))
    depth, credit, before_ns = max(Fraction(1), most - exact + Fraction(1, 2)), Fraction(1), 0
    reported, reads = [], []
    for at_ns, part in looks:
        credit = min(credit + exact * (max(at_ns, 0) - before_ns) / SECOND_NS, depth)
        before_ns = max(at_ns, 0)
        allowed = max(math.floor(credit), 0)
        read = math.ceil(allowed * part)
        credit -= read
        reported.append([START_NS + at_ns, allowed, read])
        reads.append((at_ns, read))
    for begin_ns, _ in reads:
        assert sum(read for at_ns, read in reads if begin_ns <= at_ns <= begin_ns + SECOND_NS) <= most
    return {"rate": rate, "begin_ns": START_NS, "looks": reported}


def each(apart_ns: int, count: int, begin_ns: int = 0) -> list[tuple[int, float]]:
    """Looks at the same distance, each of which uses all."""
    return [(begin_ns + n * apart_ns, 1.0) for n in range(count)]


def read_limits() -> dict[str, Case]:
    """By name."""
    dice = random.Random(11)
    often = [(at, dice.choice((0.0, 0.5, 1.0))) for at in sorted(dice.randrange(5 * SECOND_NS) for _ in range(150))]
    return {
        "a-burst-after-five-seconds": read_limit(100.0, each(10_000_000, 150, 5 * SECOND_NS)),
        "two-bursts": read_limit(40.0, [*each(7_000_000, 200), *each(7_000_000, 200, 9 * SECOND_NS)]),
        "always-late": read_limit(10.0, each(130_000_001, 60)),
        "steady": read_limit(200.0, each(2_500_000, 800)),
        "below-one-a-second": read_limit(0.3, each(333_333_333, 60)),
        "a-fraction": read_limit(2.7, each(90_000_001, 120)),
        "almost-the-next-number": read_limit(9.75, each(33_333_337, 150, 3 * SECOND_NS)),
        "many": read_limit(25_000.5, each(1_700_003, 100, SECOND_NS)),
        "some-of-it": read_limit(77.7, often),
        "before-the-begin": read_limit(50.0, [(-5, 1.0), (-1, 1.0), (0, 1.0), *each(3_000_001, 80)]),
        "nothing": read_limit(0.0, each(SECOND_NS, 3)),
    }
