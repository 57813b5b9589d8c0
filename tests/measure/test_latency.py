"""Histograms are merged by adding counts; percentiles are HdrHistogram's."""

from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.measure import latency
from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, Histogram
from hydra.wire.histogram import BUCKETS, LatencyRecorder

samples = st.lists(st.one_of(st.integers(0, 3000), st.integers(0, LATENCY_HIGHEST_US)), max_size=50)


def counted(values: list[int]) -> Histogram:
    recorder = LatencyRecorder()
    for v in values:
        recorder.record_us(v)
    return recorder.histogram()


@settings(max_examples=100)
@given(samples, samples)
def test_merging_equals_counting_everything_in_one(one: list[int], two: list[int]) -> None:
    assert latency.merge([counted(one), counted(two), Histogram()]) == counted(one + two)


@settings(max_examples=25)
@given(samples.filter(bool))
def test_percentiles_are_hdrhistograms_up_to_the_maximum(values: list[int]) -> None:
    hdr = HdrHistogram(LATENCY_LOWEST_US, LATENCY_HIGHEST_US, LATENCY_DIGITS)
    for v in values:
        hdr.record_value(v)
    percents = [50.0, 90.0, 99.9, 100.0]
    expected = [min(hdr.get_value_at_percentile(p), max(values)) for p in percents]
    assert latency.percentiles_us(counted(values), percents) == expected


@settings(max_examples=25)
@given(samples)
def test_the_stored_encoding_gives_the_same_histogram_back(values: list[int]) -> None:
    h = counted(values)
    assert latency.decode(latency.encode(h), h.min_us, h.max_us) == h


def test_without_values_there_are_no_percentiles() -> None:
    assert set(latency.figures(Histogram(), "latency").values()) == {None}


def test_at_rate_max_the_figure_says_that_it_counts_from_the_send() -> None:
    assert latency.prefix_for("max") == "latency_from_send"
    assert latency.prefix_for(1000.0) == "latency"


@pytest.mark.parametrize("counts", [[BUCKETS, 1], [-1, 1], [1, 2, 3]])
def test_counts_that_are_no_histogram_are_refused(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="pairs"):
        latency.merge([Histogram(counts, 0, 1)])
