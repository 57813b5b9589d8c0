"""Preferred numbers: the series of the standard, and the rungs beside a rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra.sweep.ladder import Ladder, RungsPerDecade

SERIES: dict[RungsPerDecade, tuple[float, ...]] = {
    5: (1, 1.6, 2.5, 4, 6.3),
    10: (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    20: (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
}
"""Decades of ISO 3."""


@pytest.mark.parametrize(("rungs", "decade"), SERIES.items())
def test_a_decade_is_that_of_the_standard_and_goes_on_in_all_others(
    rungs: RungsPerDecade, decade: tuple[float, ...]
) -> None:
    ladder = Ladder(rungs)
    assert tuple(ladder.rate(n) for n in range(rungs)) == decade
    assert [ladder.rate(n) for n in range(3 * rungs, 4 * rungs)] == [round(1000 * rate) for rate in decade]
    assert ladder.rate(-1) == decade[-1] / 10


def test_the_finest_series_has_every_rung_of_the_coarser_ones() -> None:
    finest = {Ladder(40).rate(n) for n in range(40)}
    assert all(finest.issuperset(decade) for decade in SERIES.values())
    steps = [Ladder(40).rate(n + 1) / Ladder(40).rate(n) for n in range(80)]
    assert 1.04 < min(steps) < max(steps) < 1.08


@given(st.sampled_from([5, 10, 20, 40]), st.integers(-20, 240))
def test_a_rung_is_its_own_neighbour(rungs: RungsPerDecade, rung: int) -> None:
    ladder = Ladder(rungs)
    assert ladder.at_most(ladder.rate(rung)) == ladder.at_least(ladder.rate(rung)) == rung


@given(st.sampled_from([5, 10, 20, 40]), st.floats(0.5, 1e9))
def test_a_rate_lies_between_its_rungs(rungs: RungsPerDecade, rate: float) -> None:
    ladder = Ladder(rungs)
    low, high = ladder.at_most(rate), ladder.at_least(rate)
    assert ladder.rate(low) <= rate * (1 + 1e-9)
    assert ladder.rate(high) >= rate * (1 - 1e-9)
    assert high - low in (0, 1)


@pytest.mark.parametrize(
    ("rate", "low", "high"), [(2100, 2000, 2500), (999.9, 800, 1000), (1000, 1000, 1000), (3149, 2500, 3150)]
)
def test_the_rungs_around_a_rate(rate: float, low: float, high: float) -> None:
    ladder = Ladder(10)
    assert (ladder.rate(ladder.at_most(rate)), ladder.rate(ladder.at_least(rate))) == (low, high)
