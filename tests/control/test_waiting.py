"""Waits against a clock that only the waiting itself moves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.control.control_client import poll_ms, wait_for


class Time:
    """A clock, and a poll and a sleep that take exactly as long as they are asked to, or a little less.

    Args:
        arrives_s: when something comes, None for never.
        early_s: by how much a poll ends before its time.
    """

    def __init__(self, arrives_s: float | None = None, early_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.due_s = 0.0
        self._arrives_s = None if arrives_s is None else self.now_s + arrives_s
        self._early_s = early_s

    def wait(self, timeout_s: float) -> None:
        """Waits by this clock."""
        self.due_s = self.now_s + timeout_s
        wait_for(self.poll, timeout_s, lambda: self.now_s, self.sleep)

    def poll(self, milliseconds: int) -> bool:
        until_s = self.now_s + milliseconds / 1000
        assert until_s <= self.due_s + 1e-9, "a poll beyond what is due"
        if self._arrives_s is not None and self._arrives_s <= until_s:
            self.now_s = max(self.now_s, self._arrives_s)
            return True
        self.now_s = max(until_s - self._early_s, self.now_s)
        return False

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds < 0.0011, "a sleep that nothing can interrupt"
        self.now_s += seconds


@settings(max_examples=40)
@given(st.floats(0, 10), st.sampled_from([0.0, 0.0004]))
def test_a_wait_ends_exactly_when_it_is_due_and_no_poll_goes_beyond(timeout_s: float, early_s: float) -> None:
    time = Time(early_s=early_s)
    time.wait(timeout_s)
    assert time.now_s == pytest.approx(time.due_s, abs=1e-9)


@pytest.mark.parametrize(
    ("arrives_s", "timeout_s", "ends_s"),
    [(0, 5, 0), (0.3, 5, 0.3), (0, 0, 0), (0.0002, 0.0006, 0.0006), (0.0102, 0.0106, 0.0106), (0.0201, 0.02, 0.02)],
)
def test_what_comes_ends_it_unless_it_is_about_to_end_anyway(arrives_s: float, timeout_s: float, ends_s: float) -> None:
    time = Time(arrives_s)
    time.wait(timeout_s)
    assert time.now_s == pytest.approx(1000.0 + ends_s, abs=1e-9)


@pytest.mark.parametrize(
    ("timeout_s", "milliseconds"),
    [(0.0, 0), (-1.0, 0), (0.0004, 0), (0.0009, 0), (0.0016, 1), (0.9999, 999), (5, 5000)],
)
def test_the_whole_milliseconds_of_a_wait(timeout_s: float, milliseconds: int) -> None:
    assert poll_ms(timeout_s) == milliseconds


def test_a_wait_without_end_is_one_poll() -> None:
    requests: list[int] = []

    def poll(milliseconds: int) -> int:
        requests.append(milliseconds)
        return 1

    wait_for(poll, math.inf)
    assert requests == [-1]
