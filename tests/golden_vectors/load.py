"""When the messages of a load are due."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.golden_vectors.common import Case


def load(points: Sequence[tuple[float, float]], messages: Sequence[int], moments_ns: Sequence[int]) -> Case:
    """Due times of some messages (null: never), and how many are due at some moments, ns since the start.

    The formula is the protocol's, in IEEE double precision: every operation rounded to the nearest.
    """

    def due_ns(n: int) -> int | None:
        before = 0.0
        for (begin, rate), (end, until) in zip(points, [*points[1:], (math.inf, points[-1][1])], strict=True):
            length = end - begin
            last = length == math.inf
            behind = (math.inf if rate > 0 else before) if last else before + (rate + until) / 2 * length
            if n < behind:
                slope = 0.0 if last else (until - rate) / length
                more = n - before
                root = math.sqrt(max(rate * rate + 2 * slope * more, 0.0))
                offset = 0.0 if more == 0 and rate + root == 0 else 2 * more / (rate + root)
                return math.floor((begin + min(offset, length)) * 1e9)
            before = behind
        return None

    def count_by(moment_ns: int) -> int:
        low, high = 0, 2**40  # message `high` is not due
        while low < high:
            middle = (low + high) // 2
            due = due_ns(middle)
            low, high = (middle + 1, high) if due is not None and due <= moment_ns else (low, middle)
        return low

    return {
        "points": [list(point) for point in points],
        "due": [[n, due_ns(n)] for n in messages],
        "by": [[moment_ns, count_by(moment_ns)] for moment_ns in moments_ns],
    }


def loads() -> dict[str, Case]:
    """By name."""
    second = 10**9
    some = [0, 1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 12_345, 1_000_000]
    moments = [-1, 0, 1, second - 1, second, 9 * second, 10 * second - 1, 10 * second, 15 * second, 3600 * second]
    day = [(float(t), 1000 + 900 * math.sin(2 * math.pi * (t / 86_400 - 0.25))) for t in range(0, 86_401, 900)]
    return {
        "constant": load([(0.0, 1000.0)], some, moments),
        "ramp-from-nothing": load([(0.0, 0.0), (10.0, 200.0)], some, moments),
        "ramp-to-nothing": load([(0.0, 333.3), (10.0, 0.0)], some, moments),
        "steps-with-a-pause": load(
            [(0.0, 100.0), (10.0, 100.0), (10.0, 0.0), (15.0, 0.0), (15.0, 7.7), (20.0, 7.7)], some, moments
        ),
        "day": load(day, [*some, 86_399_999, 86_400_000, 10**9], [*moments, 86_400 * second]),
        "fast": load([(0.0, 1e6), (3600.0, 2.5e6)], [*some, 10**9, 6 * 10**9], moments),
    }
