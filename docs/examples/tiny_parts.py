"""What is said again and again, and the histogram of section 7."""

import time
from collections.abc import Callable
from typing import Any

REPEAT_S = 2.0
"""After which what had no answer is said again."""


class Repeated:
    """Something that is said at once, then after 50 ms, and then at doubling distances.

    Args:
        say: says it.
        longest_s: the longest distance.
        ends_s: how long it is said at all.
    """

    def __init__(self, say: Callable[[], None], longest_s: float, ends_s: float = float("inf")) -> None:
        self.say, self.longest_s = say, longest_s
        self.next_s, self.distance_s = time.monotonic(), 0.05
        self.until_s = self.next_s + ends_s

    def go_on(self) -> float:
        """Says it if it is time to; returns how long there is, s."""
        now_s = time.monotonic()
        if now_s > self.until_s:
            return self.longest_s
        if now_s >= self.next_s:
            self.say()
            self.next_s = now_s + self.distance_s
            self.distance_s = min(2 * self.distance_s, self.longest_s)
        return max(0.0, self.next_s - now_s)


def histogram(values_us: list[int]) -> dict[str, Any]:
    """Counts by the index of HdrHistogram, of values from 0 on."""
    counted: dict[int, int] = {}
    for value in values_us:
        bucket = max(value.bit_length() - 11, 0)
        index = bucket * 1024 + (value >> bucket)
        counted[index] = counted.get(index, 0) + 1
    pairs = [number for pair in sorted(counted.items()) for number in pair]
    return {"counts": pairs, "min_us": min(values_us, default=0), "max_us": max(values_us, default=0)}
