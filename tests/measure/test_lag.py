"""Whether a growing backlog is distinguished from a disturbed one, with lags as real steps had them.

``lag_bins.json`` holds the lags of ten subscribers in each of some steps of ``hydra zmqfixed`` and ``kafka-fixed`` on a
busy machine with two cores: several rates, up to one that could not be carried; in those marked ``stopped``, some
processes were stopped for 100 to 300 ms again and again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hydra.measure import lag
from hydra.measure.lag import BacklogGrowth, Lags, growth, growth_of, holm, sen_slopes
from hydra.wire.report_batch import NULL

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("lag_bins.json").read_text())
CALM_S = 0.01
"""Shared swings of the lag (standard deviation) up to which 1 % of growth in 5 s, 50 ms, is detected."""
TIMES = (np.arange(20) + 0.5) * 0.25


def lags_of(step: dict[str, Any]) -> Lags:
    return np.array(step["lag_us"], np.float64) / 1e6


def swing_s(lags: Lags) -> float:
    pooled = np.nanmedian(lags, axis=0)
    line = np.polyval(np.polyfit(TIMES, pooled, 1), TIMES)
    return float(np.std(pooled - line))


FIVE_SECONDS = [lags_of(s) for s in RECORDED if s["window_s"] == 5]
SATURATED = [lags for lags in FIVE_SECONDS if np.polyfit(TIMES, np.nanmedian(lags, axis=0), 1)[0] > 0.02]
STEADY = [lags for lags in FIVE_SECONDS if not any(lags is s for s in SATURATED)]
CALM = [lags for lags in STEADY if swing_s(lags) < CALM_S]
RESTLESS = [lags for lags in STEADY if swing_s(lags) >= CALM_S]


def trendless(steps: list[Lags], subscribers: int, rng: np.random.Generator) -> Lags:
    """A recorded step without its trend: blocks of the window in another order, the same one for all subscribers.

    What they share stays shared; what is each one's own is drawn from all subscribers of some step, begun anywhere.
    """
    step, other = (steps[i] for i in rng.integers(len(steps), size=2))
    if rng.integers(2):
        step = step[:, ::-1]
    block = int(rng.choice([2, 4]))
    order = rng.permutation(20 // block)[:, np.newaxis] * block + np.arange(block)
    shared = np.nanmedian(np.roll(step, rng.integers(20), axis=1)[:, order.ravel()], axis=0)
    own = other - np.nanmedian(other, axis=0)
    rows = rng.integers(len(own), size=subscribers)[:, np.newaxis]
    columns = (np.arange(20) + rng.integers(20, size=subscribers)[:, np.newaxis]) % 20
    lags: Lags = shared + own[rows, columns]
    return lags


def caught(steps: list[Lags], subscribers: int, seeds: int, everyone: float = 0.0, one: float = 0.0) -> float:
    """The share of simulated steps with a reported backlog."""
    found = 0
    for seed in range(seeds):
        rng = np.random.default_rng([subscribers, seed])
        lags = trendless(steps, subscribers, rng) + everyone * TIMES
        lags[rng.integers(subscribers)] += one * TIMES
        found += growth_of(lags, 5.0).falling_behind > 0
    return found / seeds


def test_there_are_records_of_every_kind() -> None:
    assert (len(CALM) >= 15, len(RESTLESS) >= 10, len(SATURATED) >= 1) == (True, True, True)


TEST, ALL = pytest.mark.tier("test"), pytest.mark.tier("all")
SIMULATED = pytest.mark.parametrize(
    ("subscribers", "seeds"),
    [
        *(pytest.param(*few, marks=TEST) for few in [(10, 150), (2_000, 50)]),
        *(pytest.param(*many, marks=ALL) for many in [(10, 500), (2_000, 200)]),
    ],
)


@SIMULATED
@pytest.mark.parametrize("steps", [CALM, RESTLESS], ids=["calm", "restless"])
def test_steps_without_a_trend_pass(steps: list[Lags], subscribers: int, seeds: int) -> None:
    assert caught(steps, subscribers, seeds) <= 0.01


@SIMULATED
@pytest.mark.parametrize(("everyone", "one"), [(0.01, 0.0), (0.0, 0.05)], ids=["all by 1 %", "one by 5 %"])
def test_a_growing_backlog_is_caught_in_five_seconds(subscribers: int, seeds: int, everyone: float, one: float) -> None:
    assert caught(CALM, subscribers, seeds, everyone, one) >= 0.95


@pytest.mark.parametrize("seeds", [pytest.param(150, marks=TEST), pytest.param(500, marks=ALL)])
def test_a_backlog_that_grows_by_more_than_a_restless_lag_swings_is_caught(seeds: int) -> None:
    """Growth of 1 % is 50 ms in 5 s and drowns in such swings: docs/measurements.md states how often it is seen."""
    assert caught(RESTLESS, 10, seeds, everyone=0.1) >= 0.95


@pytest.mark.parametrize("lags", SATURATED)
def test_a_recorded_step_that_could_not_be_carried_is_caught(lags: Lags) -> None:
    found = growth_of(lags, 5.0)
    assert (found.pooled, found.falling_behind) == (True, len(lags))
    assert (found.share or 0) > 0.1


def column(bins: list[list[int | None]]) -> npt.NDArray[np.int64]:
    """Lags of subscribers as a table holds them."""
    known = [lag for row in bins for lag in row or [None] * 20]
    return np.array([NULL if lag is None else lag for lag in known], np.int64)


@pytest.mark.parametrize("step", [s for s in RECORDED if s["window_s"] == 1])
def test_windows_of_one_second_and_of_sixty_are_judged_by_the_same_share(step: dict[str, Any]) -> None:
    bins = step["lag_us"]
    assert growth(column(bins), 1.0) == BacklogGrowth(0.0)
    for window_s in (1.0, 60.0):
        rising = [[lag + round(0.1 * window_s / 20 * i * 1e6) for i, lag in enumerate(row)] for row in bins]
        found = growth(column(rising), window_s)
        assert found.share == pytest.approx(0.1, abs=0.01)
        assert (found.pooled, found.falling_behind) == (True, len(bins))


FLAT = [1000 + i % 3 for i in range(20)]
RISING = [1000 + i % 3 + 10_000 * i for i in range(20)]
"""10 ms more in each twentieth of a window of 2 s: 10 % of the rate."""
SELDOM = [lag if i % 4 == 0 else None for i, lag in enumerate(RISING)]
LATER = [lag if i % 4 == 2 else None for i, lag in enumerate(RISING)]


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        ([], BacklogGrowth(None)),
        ([[], []], BacklogGrowth(None)),
        ([[None] * 13 + FLAT[:7]], BacklogGrowth(None)),
        # Who reads much at a time has no lag in many parts; together they know enough, alone none of them.
        ([SELDOM, LATER] * 2, BacklogGrowth(0.1, 4, pooled=True)),
        # Each was heard once: that the later ones lag more is no slope of any of them.
        ([[lag if i == n else None for i, lag in enumerate(RISING)] for n in range(20)], BacklogGrowth(None)),
        ([SELDOM, *[FLAT] * 4], BacklogGrowth(0.0)),
        ([FLAT] * 4, BacklogGrowth(0.0)),
        ([[*FLAT[:5], None, None, *FLAT[7:]]] * 4, BacklogGrowth(0.0)),
        ([RISING, FLAT, FLAT, FLAT], BacklogGrowth(0.025, 1)),
        ([[*RISING[:5], None, None, *RISING[7:]], FLAT, FLAT, []], BacklogGrowth(0.1 / 3, 1)),
        ([RISING] * 3 + [FLAT], BacklogGrowth(0.075, 3, pooled=True)),
        ([RISING[::-1]] * 4, BacklogGrowth(0.0)),
    ],
)
def test_growth_is_the_mean_share_over_subscribers(bins: list[list[int | None]], expected: BacklogGrowth) -> None:
    found = growth(column(bins), 2.0)
    assert found.share == (None if expected.share is None else pytest.approx(expected.share, rel=0.01))
    assert (found.falling_behind, found.pooled) == (expected.falling_behind, expected.pooled)


def test_the_slope_is_the_median_of_all_pairs() -> None:
    lags = np.array([[0.0, 1.0, 2.0, 30.0], [5.0, np.nan, 1.0, -1.0]])
    assert sen_slopes(lags, np.arange(4.0)).tolist() == [(1 + 10) / 2, -2.0]


def test_the_slopes_of_many_are_found_in_parts_and_of_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    lags, times = rng.normal(size=(50, 12)), np.sort(rng.random(12))
    lags[rng.random(lags.shape) < 0.4] = np.nan
    lags[:, :2] = rng.normal(size=(50, 2))
    pairs = list(combinations(range(12), 2))
    slopes = np.array([(lags[:, b] - lags[:, a]) / (times[b] - times[a]) for a, b in pairs])
    whole = growth_of(lags, 1.0)
    monkeypatch.setattr(lag, "_AT_ONCE", 7)
    assert sen_slopes(lags, times) == pytest.approx(np.nanmedian(slopes, axis=0))
    assert growth_of(lags, 1.0) == whole


@pytest.mark.tier("test")
def test_a_command_that_measures_nothing_does_not_wait_for_scipy() -> None:
    program = "import sys, hydra.cli.main, hydra.run.runner; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_holm_rejects_step_by_step() -> None:
    assert holm(np.array([0.012, 0.04, 0.001, 0.02]), 0.05).tolist() == [True, True, True, True]
    assert holm(np.array([0.012, 0.06, 0.001, 0.03]), 0.05).tolist() == [True, False, True, False]
