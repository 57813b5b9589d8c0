"""Slopes: on logarithmic axes of growth, and of memory in runs of an hour."""

from __future__ import annotations

import numpy as np
import pytest

from bench.growth import Growth, slope
from bench.hours import of_minutes, slope_of


@pytest.mark.parametrize("power", [0.5, 1.0, 1.4])
def test_a_power_of_the_size_has_its_slope(power: float) -> None:
    assert slope([(size, 3 * size**power) for size in (100, 1000, 10_000)]) == pytest.approx(power)


def test_sizes_below_the_last_two_decades_do_not_count() -> None:
    late = [(100.0, 1.0), (1000.0, 10.0), (10_000.0, 100.0)]
    assert slope([(1.0, 500.0), (10.0, 900.0), *late]) == pytest.approx(1.0)


def test_growth_has_a_slope_for_each_cost_and_the_points_of_the_first() -> None:
    found = Growth((10, 100, 1000), lambda size: (2.0 * size, 7.0))
    assert found.slopes() == pytest.approx((1.0, 0.0))
    assert found.points() == [(10, 20.0), (100, 200.0), (1000, 2000.0)]


def test_the_means_of_whole_minutes_behind_the_first_third_count() -> None:
    assert of_minutes([(float(second), second // 60) for second in range(6 * 60 + 30)]) == [2, 3, 4, 5]


@pytest.mark.parametrize("correlation", [0.0, 0.6])
@pytest.mark.parametrize("mb_an_hour", [0.0, 3.0])
def test_the_interval_contains_the_planted_slope(correlation: float, mb_an_hour: float) -> None:
    rng = np.random.default_rng(5)
    runs, within = 300, 0
    for _ in range(runs):
        noise = rng.normal(0, 1, 40)
        for minute in range(1, 40):
            noise[minute] += correlation * noise[minute - 1]
        found = slope_of((130 + mb_an_hour * np.arange(40) / 60 + noise).tolist())
        within += found.low <= mb_an_hour <= found.high
    # 95 % if minutes are independent; the estimate of a correlation from 40 minutes is a little too low.
    assert within >= (0.92 if correlation == 0 else 0.86) * runs


def test_memory_that_does_not_change_has_the_slope_0_exactly() -> None:
    assert slope_of([12.5] * 10) == pytest.approx((0, 0, 0), abs=1e-9)
