"""Latencies in buckets."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.golden_vectors.common import HIGHEST_US, START_NS, Case


def bucket_of(value_us: int) -> int:
    """The index at which a value is counted: the values of a width of 2, 4, 8 … µs share one; below zero mirrored."""
    if value_us < 0:
        return -1 - bucket_of(-value_us)
    width, index = 1, value_us
    while index // width >= 2048:
        width *= 2
    return index // width + 1024 * (width.bit_length() - 1)


def histogram(*batches: Sequence[int]) -> Case:
    """Batches of latencies (ns), each read at one moment."""
    now_ns = START_NS
    read, counts, values = [], dict[int, int](), list[int]()
    for latencies in batches:
        read.append({"now_ns": now_ns, "times_ns": [now_ns - ns for ns in latencies]})
        now_ns += 1_000_001
        for ns in latencies:
            value = max(min(ns // 1000, HIGHEST_US), -HIGHEST_US)
            values.append(value)
            counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    return {
        "batches": read,
        "counts": [number for index in sorted(counts) for number in (index, counts[index])],
        "min_us": min(values, default=0),
        "max_us": max(values, default=0),
    }


def histograms() -> dict[str, Case]:
    """By name."""
    dice = random.Random(11)
    us, hour_ns = 1000, HIGHEST_US * 1000
    edges = [1, 2, 2047, 2048, 2049, 4095, 4096, 4099, 100_000, 2**31, HIGHEST_US - 1, HIGHEST_US]
    around = [dice.randrange(-3_000_000, 9_000_000) for _ in range(200)]
    sizes = [dice.choice([-1, 1]) * dice.randrange(10 ** dice.randrange(15)) for _ in range(300)]
    return {
        "nothing": histogram([]),
        "rounded-down": histogram([0, 1, 999, 1000, 1999, 2000]),
        "rounded-down-below-zero": histogram([-1, -999, -1000, -1001, -2000, -2001]),
        "the-ends-of-buckets": histogram([us * edge for edge in edges]),
        "the-ends-of-buckets-below-zero": histogram([-us * edge for edge in edges]),
        "beyond-an-hour": histogram([hour_ns, hour_ns + us, 2 * hour_ns], [1000]),
        "beyond-an-hour-below-zero": histogram([-hour_ns, -hour_ns - 1, -2 * hour_ns], [1000]),
        "all-below-zero": histogram([-5_000_000], [-7_000_000] * 40),
        "zero-among-both-sides": histogram([-3000, 0, 3000], [0], [-1]),
        "many-at-once-around-zero": histogram(around),
        "the-same-one-by-one": histogram(*([ns] for ns in around)),
        "many-at-once-of-all-sizes": histogram(sizes),
    }
