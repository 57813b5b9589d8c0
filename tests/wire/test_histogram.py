"""Latency counts have HdrHistogram's own indexes, whatever the size of the batch."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, Histogram
from hydra.wire.histogram import BUCKETS, LatencyRecorder, highest_of, index_of, lowest_of

NOW = 10**13
HDR = HdrHistogram(LATENCY_LOWEST_US, LATENCY_HIGHEST_US, LATENCY_DIGITS)
values = st.one_of(st.integers(0, 5000), st.integers(0, LATENCY_HIGHEST_US), st.integers(0, 31).map(lambda b: 2**b))


def test_there_are_as_many_buckets_as_hdrhistogram_has() -> None:
    assert HDR.counts_len == BUCKETS


@settings(max_examples=500)
@given(values)
def test_the_index_is_hdrhistograms(value: int) -> None:
    index = index_of(value)
    assert index == HDR._counts_index_for(value)
    assert lowest_of(index) == HDR.get_value_from_index(index) <= value <= highest_of(index)
    assert highest_of(index) == HDR.get_highest_equivalent_value(value)


@settings(max_examples=100)
@given(st.lists(st.lists(values, min_size=1, max_size=60), max_size=5))
def test_batches_of_every_size_count_like_hdrhistogram(batches: list[list[int]]) -> None:
    recorder = LatencyRecorder()
    expected: dict[int, int] = {}
    for batch in batches:
        recorder.record(NOW - np.array(batch, np.uint64) * 1000, NOW)
        for v in batch:
            i = HDR._counts_index_for(v)
            expected[i] = expected.get(i, 0) + 1
    histogram = recorder.histogram()
    assert dict(zip(histogram.counts[0::2], histogram.counts[1::2], strict=True)) == expected
    assert histogram.counts[0::2] == sorted(expected)
    everything = [v for b in batches for v in b]
    assert (histogram.min_us, histogram.max_us) == (min(everything, default=0), max(everything, default=0))


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    ("latency_ns", "counted_us"),
    [(999, 0), (0, 0), (-5_000_000, 0), (1000, 1), (1999, 1), (2 * 3600 * 10**9, LATENCY_HIGHEST_US)],
)
def test_values_outside_the_range_count_at_its_ends(size: int, latency_ns: int, counted_us: int) -> None:
    recorder = LatencyRecorder()
    recorder.record(np.full(size, NOW - latency_ns, np.uint64), NOW)
    assert recorder.histogram() == Histogram([index_of(counted_us), size], counted_us, counted_us)
