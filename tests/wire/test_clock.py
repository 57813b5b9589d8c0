"""The step's clock as a host reads it; tests/golden/clock has the numbers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.wire import clock
from hydra.wire.clock import StepClock, time_namespace, wall_offset_ns
from hydra.wire.messages import HostClock

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS


@settings(max_examples=40)
@given(st.integers(-10_000_000, 10_000_000), st.integers(0, 2**50), st.integers(-DAY_NS, 1000 * DAY_NS))
def test_times_and_readings_follow_from_each_other(rate_ppb: int, at_ns: int, distance_ns: int) -> None:
    it = StepClock(HostClock(at_ns=at_ns, step_ns=2**60, rate_ppb=rate_ppb))
    reading_ns = at_ns + distance_ns
    assert abs(it.monotonic_ns_of(it.at_ns(reading_ns)) - reading_ns) <= 1
    step_ns = 2**60 + distance_ns
    assert abs(it.at_ns(it.monotonic_ns_of(step_ns)) - step_ns) <= 1
    # A time that is waited for has come by then, or is 1 ns away.
    assert it.at_ns(it.monotonic_ns_of(step_ns) + 1) >= step_ns


@settings(max_examples=40)
@given(st.integers(-10_000_000, 10_000_000), st.lists(st.integers(-DAY_NS, 1000 * DAY_NS), min_size=1))
def test_many_readings_give_the_times_of_each(rate_ppb: int, readings_ns: list[int]) -> None:
    it = StepClock(HostClock(at_ns=7, step_ns=2**60, rate_ppb=rate_ppb))
    assert it.at_ns(np.array(readings_ns)).tolist() == [it.at_ns(reading_ns) for reading_ns in readings_ns]


def test_it_runs_at_its_rate_and_with_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic_ns=lambda: 7 * SECOND_NS, time_ns=lambda: DAY_NS))
    it = StepClock(HostClock(at_ns=-93 * SECOND_NS, step_ns=2**60, rate_ppb=10_000_000))
    assert it.now_ns() == 2**60 + 101 * SECOND_NS
    assert it.until_s(it.now_ns() + 101 * SECOND_NS) == pytest.approx(100)
    assert it.until_s(it.now_ns()) == 0
    assert wall_offset_ns() == DAY_NS - 7 * SECOND_NS


@pytest.mark.skipif(not Path("/proc/self/ns/time").exists(), reason="the kernel has no time namespaces")
def test_the_time_namespace_is_the_kernels_word_for_it() -> None:
    assert time_namespace() == str(Path("/proc/self/ns/time").readlink())
    assert time_namespace().startswith("time:[")


def test_a_kernel_without_time_namespaces_has_no_word_for_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clock, "_NAMESPACES", tmp_path)
    assert time_namespace() == ""
