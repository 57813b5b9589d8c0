"""The pacer: what is due when, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hydra.client.pacing import SECOND_NS, Pacer
from hydra.model import Rate

START = 5_000_000_000_123


def pacer(rate: Rate, seconds: float, burst: int = 100) -> Pacer:
    return Pacer(rate, START, START + int(seconds * SECOND_NS), burst)


@pytest.mark.parametrize(
    ("rate", "seconds", "total"),
    [(100, 10, 1000), (30_000, 10, 300_000), (3, 1, 3), (0.5, 10, 5), (0.1, 1, 1), (7, 0.5, 4), (2.5, 1, 3)],
)
def test_the_schedule_has_every_message_that_is_due_before_the_end(rate: float, seconds: float, total: int) -> None:
    assert pacer(rate, seconds).total == total


@settings(max_examples=40)
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


@settings(max_examples=40)
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


def test_an_earlier_stop_shortens_the_schedule_and_a_later_one_changes_nothing() -> None:
    p = pacer(1000, 10)
    p.stop_at(p.stop_ns + 1)
    assert p.total == 10_000
    p.stop_at(START + SECOND_NS)
    assert p.total == 1000
    assert pacer("max", 1).total is None
