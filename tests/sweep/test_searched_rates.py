"""What a search may claim: its figures and intervals against systems whose answer is known.

Every test run plays some searches of each kind; ``make soak`` plays a thousand (HYDRA_SEARCHES), which is where the
bounds mean what they say: with few, they are as much wider as chance asks for.
"""

from __future__ import annotations

import os
from functools import cache
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from hydra.sweep import Row
from tests.sweep.simulated import FAMILIES, Family, System, replayed, searched, shallow

pytestmark = pytest.mark.tier("test")

SEARCHES: Final = int(os.environ.get("HYDRA_SEARCHES", "5"))
FIGURE: Final = "max_rate_below_0_5pct_drop_pps"
COVERAGE: Final = (0.92, 0.99)
"""Intervals of 95 % that hold the truth. 93 to 97 % is what is aimed at; docs/limits.md says what came out."""
BIAS: Final = 0.05
LARGER_BIAS: Final[dict[Family, float]] = {replayed: 0.12, shallow: 0.15}
"""Of the median figure, in logarithm, where a slope is far from the usual one: it ends abruptly, or hardly rises."""
ERRORS: Final = 3.0
"""Standard errors that chance is given."""


@cache
def rows_of(family: Family, step_s: float) -> list[tuple[System, Row]]:
    """What the searches of a kind came to."""
    systems = [System(family, seed) for seed in range(SEARCHES)]
    return [(system, searched(system, step_s)) for system in systems]


def outcomes(family: Family, step_s: float) -> tuple[npt.NDArray[np.float64], float]:
    """Log of each figure over the truth, where one was vouched for; and the share of intervals that hold it."""
    logs, held = [], 0
    for system, row in rows_of(family, step_s):
        low, high, figure = row["loss_low_pps"], row["loss_high_pps"], row[FIGURE]
        assert isinstance(low, float), row["loss_note"]
        assert isinstance(high, float)
        held += low <= system.rate <= high
        if isinstance(figure, float):
            logs.append(np.log(figure / system.rate))
        else:
            assert "it may be anywhere from" in str(row["loss_note"])
    return np.array(logs), held / SEARCHES


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("step_s", [1.0, pytest.param(5.0, marks=pytest.mark.tier("all"))])
def test_intervals_hold_the_truth_and_figures_are_near_it(family: Family, step_s: float) -> None:
    logs, coverage = outcomes(family, step_s)
    low, high = COVERAGE
    assert coverage >= low - ERRORS * sqrt(low * (1 - low) / SEARCHES)
    assert coverage <= high + ERRORS * sqrt(high * (1 - high) / SEARCHES)
    # Where the interval is wider than a factor of two either way, no rate is vouched for; else hardly any is that far.
    assert len(logs) >= 0.6 * SEARCHES
    assert (abs(logs) > np.log(2)).mean() <= 0.004
    error = 1.25 * float(logs.std()) / sqrt(len(logs))
    assert abs(float(np.median(logs))) <= LARGER_BIAS.get(family, BIAS) + ERRORS * error


@pytest.mark.tier("all")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_steps_of_one_and_of_five_seconds_agree_within_their_intervals(family: Family) -> None:
    disagree = 0
    for (_, short), (_, long) in zip(rows_of(family, 1.0), rows_of(family, 5.0), strict=True):
        lows, highs = (sorted(float(row[c] or 0) for row in (short, long)) for c in ("loss_low_pps", "loss_high_pps"))
        disagree += lows[1] > highs[0]
    # Two intervals of 95 % of the same figure hardly ever lie apart.
    assert disagree <= 0.02 * SEARCHES + ERRORS * sqrt(0.02 * SEARCHES)


@pytest.mark.tier("all")
def test_more_steps_leave_a_narrower_interval() -> None:
    widths = []
    for steps in (20, 60, 180):
        rows = [searched(System(replayed, seed), 1.0, steps=steps) for seed in range(5)]
        widths.append(np.median([float(r["loss_high_pps"] or 0) / float(r["loss_low_pps"] or 1) for r in rows]))
    assert widths[0] > widths[1] > widths[2]
