"""The clients' reports of the seconds of a step, and their sums."""

from __future__ import annotations

import numpy as np

from hydra.client.time_series import ReceivedTimeSeries, ReportTimer, SentTimeSeries
from hydra.model import Histogram
from hydra.wire.histogram import LatencyRecorder, merge
from hydra.wire.messages import MAX_SECONDS, SecondCounts
from hydra.wire.time_series import TimeSeriesSum, parts

SECOND_NS = 1_000_000_000
START_NS = 10**18


def received(series: ReceivedTimeSeries, at_s: list[float], counts: list[int], late_us: int) -> None:
    now_ns = np.repeat([START_NS + round(s * SECOND_NS) for s in at_s], counts)
    series.record((now_ns - 1000 * late_us).astype(np.uint64), now_ns)


def test_batches_belong_to_the_second_in_which_they_were_read_or_to_the_first() -> None:
    whole, same = LatencyRecorder(), LatencyRecorder()
    series = ReceivedTimeSeries(whole, START_NS)
    received(series, [-0.5, 0.9], [3, 2], 50)
    received(series, [0.95, 1.0, 1.5, 3.2], [1, 2, 3, 4], 7)
    reported = series.take()
    assert [(s.second, s.messages) for s in reported] == [(0, 6), (1, 5), (3, 4)]
    assert reported[0].latency.min_us == 7
    assert reported[0].latency.max_us == 50
    for late, count in ((50, 5), (7, 10)):
        for _ in range(count):
            same.record_us(late)
    assert whole.histogram() == same.histogram() == merge(s.latency for s in reported)
    assert series.take() == []


def test_a_second_that_is_told_in_two_parts_adds_up() -> None:
    series, together = ReceivedTimeSeries(LatencyRecorder(), START_NS), TimeSeriesSum()
    received(series, [2.1], [1], 10)
    together.add(series.take())
    received(series, [2.9], [2], -4)
    together.add(series.take())
    (second,) = together.take()
    assert (second.second, second.messages) == (2, 3)
    assert second.latency == Histogram([-5, 2, 10, 1], -4, 10)
    assert not together


def test_a_publisher_tells_what_it_sent() -> None:
    series = SentTimeSeries(START_NS)
    series.add(5, START_NS - 1)
    series.add(5, START_NS + SECOND_NS // 2)
    series.add(7, START_NS + SECOND_NS)
    assert [(s.second, s.messages) for s in series.take()] == [(0, 10), (1, 7)]
    assert series.take() == []


def test_clients_tell_at_different_moments_and_once_an_interval() -> None:
    first, other = ReportTimer(0, START_NS, 1.0), ReportTimer(48, START_NS, 1.0)
    assert first.next_ns < other.next_ns < START_NS + 2 * SECOND_NS
    assert not first.due(START_NS + SECOND_NS - 1)
    assert first.due(START_NS + SECOND_NS)
    assert not first.due(START_NS + SECOND_NS + 1)
    assert first.due(START_NS + 7 * SECOND_NS)
    assert first.next_ns == START_NS + 8 * SECOND_NS


def test_many_seconds_are_several_messages() -> None:
    many = [SecondCounts(n, 1) for n in range(MAX_SECONDS + 1)]
    assert [len(part) for part in parts(many)] == [MAX_SECONDS, 1]
    wide = Histogram([number for n in range(15_000) for number in (n, 1)], 0, 10**6)
    assert [len(part) for part in parts([SecondCounts(n, 15_000, wide) for n in range(3)])] == [1, 1, 1]
    assert parts([]) == []


def test_a_recorder_adds_and_is_emptied() -> None:
    one, other = LatencyRecorder(), LatencyRecorder()
    for us in (-5, 0, 3, 70_000):
        one.record_us(us)
    other.record_us(3)
    other.add(one.histogram())
    assert other.histogram() == Histogram([-6, 1, 0, 1, 3, 2, *one.histogram().counts[-2:]], -5, 70_000)
    assert one.take().counts
    assert one.take() == Histogram()
    one.record_us(9)
    assert one.histogram() == Histogram([9, 1], 9, 9)
