"""The trend of a subscriber's lag."""

from __future__ import annotations

import random

import pytest

from hydra.client.lag import LagTrend

SECOND = 1_000_000_000


def trend(ages_s: list[float], rate: float = 1000.0, window_s: float = 10.0) -> LagTrend:
    """A trend over a window in which messages of these ages arrive at even distances."""
    t = LagTrend(0, int(window_s * SECOND), rate)
    for i, age in enumerate(ages_s):
        t.add(int((i + 0.5) * window_s / len(ages_s) * SECOND), int(age * SECOND))
    return t


@pytest.mark.parametrize(
    ("ages", "slope"),
    [
        ([0.01] * 100, 0.0),
        ([0.1 * i / 100 * 10 for i in range(100)], 100.0),
        ([1.0 - 0.05 * i / 100 * 10 for i in range(100)], -50.0),
    ],
)
def test_the_slope_is_the_growth_of_the_lag_in_messages_per_second(ages: list[float], slope: float) -> None:
    fitted = trend(ages).slope()
    assert fitted is not None
    assert fitted.value == pytest.approx(slope, abs=1e-6)
    assert fitted.error == pytest.approx(0, abs=1e-3)


def test_noise_without_a_trend_stays_within_three_standard_errors() -> None:
    for seed in range(50):
        draw = random.Random(seed)
        fitted = trend([draw.uniform(0.001, 0.02) for _ in range(400)]).slope()
        assert fitted is not None
        assert abs(fitted.value) < 4 * fitted.error


@pytest.mark.parametrize(("ages", "rate"), [([0.1] * 100, 0.0), ([0.1] * 3, 1000.0), ([], 1000.0)])
def test_a_slope_that_cannot_be_known_is_none(ages: list[float], rate: float) -> None:
    assert trend(ages, rate).slope() is None


def test_what_arrives_outside_the_window_does_not_count() -> None:
    t = trend([0.01] * 100)
    t.add(-5, 10**12)
    t.add(11 * SECOND, 10**12)
    fitted = t.slope()
    assert fitted is not None
    assert fitted.value == 0
