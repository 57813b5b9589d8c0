"""The buckets of a latency histogram: HDR, 1 µs to 1 h, 3 significant digits; and percentiles of what they count. Pure.

The index of a value is HdrHistogram's counts index (``HdrHistogram._counts_index_for`` of the hdrhistogram
package), so reports merge with any HDR implementation. With 2,048 sub-buckets it is, for a value v in µs::

    bucket = max(bit_length(v) - 11, 0)
    index  = bucket * 1024 + (v >> bucket)

The clocks of two hosts agree only within a bound, so a latency between them may be below zero. HdrHistogram has no such
values; the buckets are mirrored for them, so they sort below zero: -1 - (index of -v).

Every relay imports this module, so it does without numpy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from typing import Final

from hydra.model import LATENCY_HIGHEST_US, Histogram

SUB_BUCKET_BITS: Final = 11
HALF_BITS: Final = SUB_BUCKET_BITS - 1
BUCKETS: Final = 23_552
"""Length of HdrHistogram's counts for 1 µs to 1 h at 3 digits."""
_BELOW: Final = 1 - 2**-50
"""Below 1 by a few roundings of floating point numbers; with 10¹⁰ values that is a hundred-thousandth of a rank."""


def index_of(value_us: int) -> int:
    """The bucket index of a value in µs, at least -BUCKETS and below BUCKETS; a value beyond 1 h counts as 1 h."""
    if value_us < 0:
        return mirrored(index_of(-value_us))
    value = min(value_us, LATENCY_HIGHEST_US)
    bucket = value.bit_length() - SUB_BUCKET_BITS
    return value if bucket <= 0 else (bucket << HALF_BITS) + (value >> bucket)


def mirrored(index: int) -> int:
    """The bucket index of -v, if ``index`` is that of a value v other than 0."""
    return -1 - index


def lowest_of(index: int) -> int:
    """The lowest value (µs) that is counted at ``index``: the inverse of :func:`index_of`."""
    if index < 0:
        return -highest_of(mirrored(index))
    bucket = max((index >> HALF_BITS) - 1, 0)
    return (index - (bucket << HALF_BITS)) << bucket


def highest_of(index: int) -> int:
    """The highest value (µs) that is counted at ``index``."""
    if index < 0:
        return -lowest_of(mirrored(index))
    return lowest_of(index) + (1 << max((index >> HALF_BITS) - 1, 0)) - 1


def rank_of(percent: float, count: int) -> int:
    """The rank of a percentile among ``count`` sorted values: ⌈percent · count / 100⌉, from 1 to ``count``.

    This rank is the nearest rank: at least ``percent`` of the values are at or below the value of this rank.
    HdrHistogram for Java has the same rank; its Python package rounds to the nearest whole number, which for p99 of 151
    values is 149: 98.7 % of them.
    """
    # 99.9 is not exact in binary: a product that is above a whole number only by rounding must become that number.
    return min(max(ceil(percent * _BELOW * count / 100), 1), count)


def percentiles_us(histogram: Histogram, percents: Iterable[float]) -> list[int | None]:
    """Values (µs) at these percentiles, at most the maximum; None when empty.

    At least ``percent`` of all values are at or below it: it is the highest value of the first bucket at which the
    running sum of the counts reaches the rank (:func:`rank_of`).
    """
    sums = list(accumulate(histogram.counts[1::2]))
    if not sums or not sums[-1]:
        return [None for _ in percents]
    ranks = (rank_of(p, sums[-1]) for p in percents)
    return [min(highest_of(histogram.counts[2 * bisect_left(sums, rank)]), histogram.max_us) for rank in ranks]
