"""The pacer: what is due when, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hydra.client.pacing import GRACE_NS, SECOND_NS, Pacer
from hydra.model import Rate

START = 5_000_000_000_123


def pacer(rate: Rate, seconds: float, burst: int = 100) -> Pacer:
    return Pacer(rate, START, START + int(seconds * SECOND_NS), burst)


def drive(p: Pacer, tick_ns: int, until_ns: int) -> int:
    """Sends everything that is due, looking at the clock every ``tick_ns``."""
    now = p.start_ns
    while now <= until_ns:
        while n := p.due(now):
            p.advance(n)
        now += tick_ns
    return p.sent


@pytest.mark.parametrize(
    ("rate", "seconds", "total"),
    [(100, 10, 1000), (30_000, 10, 300_000), (3, 1, 3), (0.5, 10, 5), (0.1, 1, 1), (7, 0.5, 4), (2.5, 1, 3)],
)
def test_the_schedule_has_every_message_that_is_due_before_the_end(rate: float, seconds: float, total: int) -> None:
    assert pacer(rate, seconds).total == total


@pytest.mark.parametrize(("rate", "tick_ns"), [(1000, 100_000), (997.3, 1_000_000), (10_000, 3_000_000)])
def test_a_publisher_that_keeps_up_sends_exactly_the_schedule(rate: float, tick_ns: int) -> None:
    p = pacer(rate, 2)
    assert drive(p, tick_ns, p.stop_ns + SECOND_NS) == p.total


def test_message_n_is_due_at_start_plus_n_over_rate_without_drift() -> None:
    p = pacer(333_333.0, 10_000)
    p.advance(1_000_000_000)
    due = p.next_due_ns
    assert due == START + 1_000_000_000 * SECOND_NS // 333_333
    assert int(p.times(3, 0)[2]) == START + 1_000_000_002 * SECOND_NS // 333_333


@settings(max_examples=200)
@given(rate=st.floats(0.01, 5e6), sent=st.integers(0, 10**9), count=st.integers(1, 50))
def test_due_times_are_those_of_the_exact_fraction(rate: float, sent: int, count: int) -> None:
    # A header's time has 63 bits: some 290 years.
    assume((sent + count) / rate < 2**62 / 1e9)
    p = Pacer(rate, START, START + 10**6 * SECOND_NS, 50)
    p.advance(sent)
    exact = Fraction(rate).limit_denominator(1_000_000)
    times = p.times(count, 0)
    assert times.dtype == np.uint64
    assert times.tolist() == [START + int(Fraction(n * SECOND_NS) / exact) for n in range(sent, sent + count)]


@settings(max_examples=100)
@given(rate=st.floats(0.5, 1e6), now=st.integers(0, 10 * SECOND_NS))
def test_what_is_due_agrees_with_the_due_times(rate: float, now: int) -> None:
    p = Pacer(rate, START, START + 100 * SECOND_NS, burst=10**9)
    n = p.due(START + now)
    p.advance(n - 1)
    due = p.next_due_ns
    assert due is not None
    assert due <= START + now
    p.advance(1)
    due = p.next_due_ns
    assert due is not None
    assert due > START + now


def test_nothing_is_due_before_the_start() -> None:
    assert pacer(1e6, 1).due(START - 1) == 0
    assert pacer("max", 1).due(START - 1) == 0


def test_a_late_publisher_gets_chunks_of_at_most_burst() -> None:
    p = pacer(10_000, 10, burst=64)
    assert p.due(START + SECOND_NS) == 64
    assert p.lag_ns(START + SECOND_NS) == SECOND_NS


def test_a_refused_message_keeps_its_due_time() -> None:
    p = pacer(1000, 1)
    first = p.times(10, 0)
    p.advance(4)
    assert p.times(6, 10**6).tolist() == first[4:].tolist()


def test_a_publisher_that_is_behind_at_the_end_stops_there() -> None:
    p = pacer(1000, 1)
    p.advance(500)
    assert p.due(p.stop_ns - 1) == 100
    assert p.due(p.stop_ns) == 0
    assert p.done(p.stop_ns)


def test_the_last_messages_may_follow_within_the_grace() -> None:
    p = pacer(1000, 1)
    p.advance(998)
    assert p.due(p.stop_ns + 1) == 2
    assert p.done(p.stop_ns + GRACE_NS)
    assert p.due(p.stop_ns + GRACE_NS) == 0


def test_a_finished_schedule_is_done_before_the_end() -> None:
    p = pacer(10, 1)
    p.advance(10)
    assert p.done(START + 950_000_000)
    assert p.next_due_ns is None
    assert p.lag_ns(p.stop_ns) == 0


def test_max_has_no_due_time_and_ends_with_the_window() -> None:
    p = pacer("max", 1, burst=7)
    assert (p.due(START), p.total, p.next_due_ns) == (7, None, None)
    assert p.times(3, START + 5).tolist() == [START + 5] * 3
    assert p.due(p.stop_ns) == 0
    assert p.done(p.stop_ns)


def test_an_earlier_stop_shortens_the_schedule_and_a_later_one_changes_nothing() -> None:
    p = pacer(1000, 10)
    p.stop_at(p.stop_ns + 1)
    assert p.total == 10_000
    p.stop_at(START + SECOND_NS)
    assert p.total == 1000
    p.advance(2000)
    assert p.due(START + SECOND_NS // 2) == 0
    assert p.done(START + SECOND_NS // 2)
