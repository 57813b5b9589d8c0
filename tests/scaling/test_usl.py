"""The scalability law: what its prediction intervals hold, simulated, and what they cannot."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hydra.errors import UsageError
from hydra.scaling.usl import KNEE, LAW, LEAST, fit, hold_out
from tests.scaling.simulated import COUNTS, cases

MANY = 60


@cache
def held_out(kind: str, counts: str, many: int = MANY) -> tuple[float, float, float]:
    """The share of cases in the interval of the others, of those with a usable one, and the share of usable ones."""
    simulated = cases(kind, COUNTS[counts], many)
    found = hold_out(simulated.counts, simulated.throughputs)
    measured = simulated.throughputs[:, -1]
    inside = np.array([i.low <= x <= (i.high or np.inf) for i, x in zip(found, measured, strict=True)])
    usable = np.array([i.usable for i in found])
    return float(inside.mean()), float(inside[usable].mean()) if usable.any() else np.nan, float(usable.mean())


@pytest.mark.parametrize("counts", COUNTS)
def test_the_held_out_largest_count_is_in_the_interval_in_nine_of_ten_cases(counts: str) -> None:
    inside, when_usable, usable = held_out("law", counts)
    assert inside >= 0.9
    assert when_usable >= 0.9
    assert usable >= 0.5


@pytest.mark.parametrize("counts", ["by half from 10", "twelve"])
def test_where_the_next_count_is_near_nearly_every_interval_is_narrow_enough(counts: str) -> None:
    assert held_out("law", counts)[2] >= 0.85


@pytest.mark.parametrize("kind", ["plateau", "saturating", "falls to a level"])
def test_what_saturates_otherwise_is_held_as_well(kind: str) -> None:
    inside, when_usable, _ = held_out(kind, "by half from 10")
    assert inside >= 0.85
    assert when_usable >= 0.85


@pytest.mark.parametrize("seed", range(3))
def test_the_law_is_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    points = [(n, 500 * n / (1 + 0.02 * (n - 1) + 2e-4 * n * (n - 1)) * rng.lognormal(0, 0.02)) for n in counts]
    law = fit(points, [64, 2000])
    assert law.rate.low < 500 < (law.rate.high or 0)
    assert law.contention.low < 0.02 < (law.contention.high or 0)
    assert law.coherency.low < 2e-4 < (law.coherency.high or 0)
    assert law.peak.low < 70 < (law.peak.high or 0)
    inside, beyond = law.predictions
    assert inside.throughput.usable
    assert inside.beyond == 0.5
    assert beyond.beyond == pytest.approx(2000 / 128)
    assert law.held_out is not None
    assert law.held_out.clients == 128


def test_without_noise_the_parameters_are_exact_and_a_peak_is_named() -> None:
    points = [(n, 100 * n / (1 + 0.1 * (n - 1) + 0.001 * n * (n - 1))) for n in (1, 3, 10, 30, 100, 300)]
    law = fit(points)
    assert law.rate.estimate == pytest.approx(100)
    assert law.contention.estimate == pytest.approx(0.1)
    assert law.coherency.estimate == pytest.approx(0.001)
    assert law.peak.estimate == pytest.approx(30)
    assert law.better == LAW
    assert law.held_out is None


def test_a_plateau_is_a_knee_and_stays_one() -> None:
    law = fit([(n, 1000.0 * min(n, 16)) for n in (1, 2, 4, 8, 16, 32, 64, 128)], [256])
    assert law.better == KNEE
    assert law.knee == pytest.approx(16)
    assert law.predictions[0].throughput.estimate == pytest.approx(16_000, rel=0.01)
    assert law.predictions[0].throughput.usable


def test_a_throughput_that_only_grows_has_no_peak_and_no_upper_limit_of_it() -> None:
    law = fit([(n, 10.0 * n) for n in (1, 2, 4, 8, 16, 32)])
    assert law.peak.estimate is None
    assert law.peak.high is None
    assert (law.contention.low, law.coherency.low) == (0.0, 0.0)


def test_repeats_of_a_count_are_points_and_no_further_counts() -> None:
    with pytest.raises(UsageError, match="5 different client counts are too few"):
        fit([(n, 10.0 * n) for n in (1, 2, 4, 8, 16)] * 3)


@pytest.mark.parametrize("count", [0, 3, LEAST - 1])
def test_fewer_than_six_counts_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="too few for a fit"):
        fit([(2**n, 10.0) for n in range(count)])


def test_a_count_without_any_message_is_refused() -> None:
    with pytest.raises(UsageError, match="above 0"):
        fit([(2**n, float(n)) for n in range(LEAST)])
