"""Histograms are merged by adding counts; percentiles are those of the nearest rank, in HdrHistogram's buckets."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.measure import latency, latency_columns
from hydra.model import LATENCY_DIGITS, LATENCY_HIGHEST_US, LATENCY_LOWEST_US, Histogram
from hydra.wire.buckets import BUCKETS, highest_of, index_of, percentiles_us, rank_of
from hydra.wire.histogram import LatencyRecorder, merge

samples = st.lists(st.one_of(st.integers(0, 3000), st.integers(0, LATENCY_HIGHEST_US)), max_size=50)
signed = st.one_of(st.integers(-3000, 3000), st.integers(-LATENCY_HIGHEST_US, LATENCY_HIGHEST_US))
of_any_sign = st.lists(signed, max_size=50)


def counted(values: list[int]) -> Histogram:
    recorder = LatencyRecorder()
    for v in values:
        recorder.record_us(v)
    return recorder.histogram()


@settings(max_examples=25)
@given(of_any_sign, of_any_sign)
def test_merging_equals_counting_everything_in_one(one: list[int], two: list[int]) -> None:
    assert merge([counted(one), counted(two), Histogram()]) == counted(one + two)


@settings(max_examples=25)
@given(samples.filter(bool))
def test_percentiles_are_what_hdrhistogram_has_at_the_rank_rounded_up(values: list[int]) -> None:
    hdr = HdrHistogram(LATENCY_LOWEST_US, LATENCY_HIGHEST_US, LATENCY_DIGITS)
    for v in values:
        hdr.record_value(v)
    percents = [50.0, 90.0, 99.0, 99.9, 100.0]
    # Its Python package rounds the rank to the nearest; asked for the share that a rank is, it finds that rank.
    ranks = [nearest_rank(p, len(values)) for p in percents]
    expected = [min(hdr.get_value_at_percentile(100 * rank / len(values)), max(values)) for rank in ranks]
    assert percentiles_us(counted(values), percents) == expected


def nearest_rank(percent: float, count: int) -> int:
    return max(ceil(Fraction(str(percent)) * count / 100), 1)


@settings(max_examples=100)
@given(st.sampled_from([0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0]), st.integers(1, 10**10))
def test_a_percentile_has_the_rank_that_so_many_values_are_up_to(percent: float, count: int) -> None:
    assert rank_of(percent, count) == nearest_rank(percent, count)


@pytest.mark.parametrize(
    ("percent", "count", "rank"), [(99.0, 151, 150), (99.9, 1000, 999), (99.9, 3, 3), (50.0, 2, 1)]
)
def test_ranks_are_rounded_up_and_only_where_there_is_something_to_round(percent: float, count: int, rank: int) -> None:
    assert rank_of(percent, count) == rank


@settings(max_examples=25)
@given(of_any_sign.filter(bool), st.sampled_from([1, 25, 50, 90, 100]))
def test_a_percentile_is_in_the_bucket_of_the_value_of_that_rank_whatever_its_sign(
    values: list[int], percent: int
) -> None:
    of_rank = sorted(values)[nearest_rank(percent, len(values)) - 1]
    (found,) = percentiles_us(counted(values), [percent])
    assert found == min(highest_of(index_of(of_rank)), max(values))
    assert of_rank <= found


def test_what_is_below_zero_lowers_the_percentiles_and_is_counted() -> None:
    h = counted([-400, -300, -3, 0, 2])
    assert percentiles_us(h, [20, 40, 60, 80, 100]) == [-400, -300, -3, 0, 2]
    assert (latency.count_below_zero(h), latency.mean_us(h)) == (3, -140.2)


@settings(max_examples=25)
@given(of_any_sign)
def test_the_stored_form_gives_the_same_histogram_back(values: list[int]) -> None:
    h = counted(values)
    assert latency.decode(latency.encode(h), h.min_us, h.max_us, latency.below_zero(h)) == h


def test_without_values_there_are_no_percentiles_and_at_rate_max_they_count_from_the_send() -> None:
    assert percentiles_us(Histogram(), latency_columns.PERCENTILES.values()) == [None] * 5
    assert [latency_columns.prefix_for(rate) for rate in ("max", 1000.0)] == ["latency_from_send", "latency"]


@pytest.mark.parametrize("counts", [[BUCKETS, 1], [-BUCKETS - 1, 1], [1, 2, 3]])
def test_counts_that_are_no_histogram_are_refused(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="pairs"):
        merge([Histogram(counts, 0, 1)])
