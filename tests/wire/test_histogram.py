"""Latency counts have HdrHistogram's own indexes, whatever the size of the batch."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, Histogram
from hydra.wire.buckets import BUCKETS, highest_of, index_of, lowest_of
from hydra.wire.histogram import LatencyRecorder

NOW = 10**13
HDR = HdrHistogram(LATENCY_LOWEST_US, LATENCY_HIGHEST_US, LATENCY_DIGITS)
values = st.one_of(st.integers(0, 5000), st.integers(0, LATENCY_HIGHEST_US), st.integers(0, 31).map(lambda b: 2**b))


@settings(max_examples=60)
@given(values)
def test_the_index_is_hdrhistograms(value: int) -> None:
    index = index_of(value)
    assert HDR.counts_len == BUCKETS
    assert index == HDR._counts_index_for(value)
    assert lowest_of(index) == HDR.get_value_from_index(index) <= value <= highest_of(index)
    assert highest_of(index) == HDR.get_highest_equivalent_value(value)


@settings(max_examples=40)
@given(values.filter(bool))
def test_buckets_below_zero_are_mirrored(value: int) -> None:
    index, below = index_of(value), index_of(-value)
    assert -BUCKETS <= below == -1 - index
    assert lowest_of(below) == -highest_of(index) <= -value <= highest_of(below) == -lowest_of(index)


@settings(max_examples=30)
@given(st.lists(st.lists(st.one_of(values, values.map(lambda v: -v)), min_size=1, max_size=60), max_size=5))
def test_batches_of_every_size_count_like_hdrhistogram(batches: list[list[int]]) -> None:
    recorder = LatencyRecorder()
    expected: dict[int, int] = {}
    for batch in batches:
        recorder.record(np.array([NOW - v * 1000 for v in batch], np.uint64), NOW)
        for v in batch:
            i = HDR._counts_index_for(v) if v >= 0 else -1 - HDR._counts_index_for(-v)
            expected[i] = expected.get(i, 0) + 1
    histogram = recorder.histogram()
    assert dict(zip(histogram.counts[0::2], histogram.counts[1::2], strict=True)) == expected
    assert histogram.counts[0::2] == sorted(expected)
    everything = [v for b in batches for v in b]
    assert (histogram.min_us, histogram.max_us) == (min(everything, default=0), max(everything, default=0))


@pytest.mark.parametrize(("size", "sign"), [(1, 1), (1, -1), (100, 1), (100, -1)])
def test_a_latency_beyond_an_hour_counts_as_an_hour(size: int, sign: int) -> None:
    recorder = LatencyRecorder()
    recorder.record(np.full(size, NOW - sign * 2 * 3600 * 10**9, np.uint64), NOW)
    hour_us = sign * LATENCY_HIGHEST_US
    assert recorder.histogram() == Histogram([index_of(hour_us), size], hour_us, hour_us)
