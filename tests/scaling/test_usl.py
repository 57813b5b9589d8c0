"""The scalability law: what its prediction intervals hold, simulated, and what they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.analysis.scaling_models import (
    KNEE,
    LAW,
    LEAST,
    ThroughputInterval,
    ThroughputPrediction,
    fit,
    throughputs_at,
)
from hydra.errors import UsageError
from tests.scaling.simulated import COUNTS, Cases, cases

pytestmark = pytest.mark.tier("test")  # each fit takes a third of a second

MANY = 60


def hold_out(simulated: Cases) -> list[ThroughputInterval]:
    """The prediction of the last count by the other counts of each run."""
    counts, y = simulated.counts, simulated.counts / simulated.throughputs
    return throughputs_at(counts[:-1], y[:, :-1], np.full(len(y), counts[-1]))


@pytest.fixture(params=[20, pytest.param(100, marks=pytest.mark.tier("all"))])
def many(request: pytest.FixtureRequest) -> int:
    """How many runs are drawn."""
    found: int = request.param
    return found


def held_out(kind: str, counts: str, many: int = MANY) -> tuple[float, float, float]:
    """The share of cases in the interval of the others, of those with a usable one, and the share of usable ones."""
    simulated = cases(kind, COUNTS[counts], many)
    found = hold_out(simulated)
    measured = simulated.throughputs[:, -1]
    inside = np.array([i.low <= x <= (i.high or np.inf) for i, x in zip(found, measured, strict=True)])
    usable = np.array([i.usable for i in found])
    return float(inside.mean()), float(inside[usable].mean()) if usable.any() else np.nan, float(usable.mean())


@pytest.mark.parametrize(
    ("counts", "narrow"),
    [("doubling from 1", 0.5), ("doubling from 30", 0.5), ("by half from 10", 0.85), ("twelve", 0.85)],
)
def test_the_held_out_largest_count_is_in_the_interval_in_nine_of_ten_cases(counts: str, narrow: float) -> None:
    """Where the next count is near, nearly every interval is narrow enough as well."""
    inside, when_usable, usable = held_out("law", counts)
    assert inside >= 0.9
    assert when_usable >= 0.9
    assert usable >= narrow


@pytest.mark.parametrize("kind", ["plateau", "saturating", "falls to a level"])
def test_what_saturates_otherwise_is_held_as_well(kind: str) -> None:
    inside, when_usable, _ = held_out(kind, "by half from 10")
    assert inside >= 0.85
    assert when_usable >= 0.85


@pytest.mark.parametrize("times", [5, 10])
@pytest.mark.parametrize("kind", ["law", "plateau", "falls to a level", "power", "slow fall"])
def test_far_away_nothing_is_used_on_the_word_of_one_model(many: int, kind: str, times: int) -> None:
    """By the best model alone a slow fall was held in a tenth of the runs, and nine tenths were called usable."""
    counts = COUNTS["by half from 10"]
    simulated = cases(kind, [*counts, times * counts[-1]], many)
    found = hold_out(simulated)
    inside = [i.low <= x <= (i.high or np.inf) for i, x in zip(found, simulated.throughputs[:, -1], strict=True)]
    assert np.mean(inside) >= 0.9
    wrong = sum(i.usable and not held for i, held in zip(found, inside, strict=True))
    assert wrong <= 0.05 * many


def test_where_the_models_agree_far_away_it_is_no_extrapolation() -> None:
    narrow, wide = ThroughputInterval(10.0, 8.0, 12.0), ThroughputInterval(10.0, 2.0, 40.0)
    messages = [ThroughputPrediction(9, its, beyond).extrapolated for its in (narrow, wide) for beyond in (2.0, 2.1)]
    assert messages == [False, False, False, True]


@pytest.mark.parametrize("seed", range(2))
def test_the_law_is_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    points = [(n, 500 * n / (1 + 0.02 * (n - 1) + 2e-4 * n * (n - 1)) * rng.lognormal(0, 0.02)) for n in counts]
    law = fit(points, [64, 2000])
    for found, true in ((law.rate, 500), (law.contention, 0.02), (law.coherency, 2e-4), (law.peak, 70)):
        assert found.low < true < (found.high or 0)
    inside, beyond = law.predictions
    assert inside.throughput.usable
    assert inside.beyond == 0.5
    assert beyond.beyond == pytest.approx(2000 / 128)
    assert law.held_out is not None
    assert law.held_out.clients == 128


def test_without_noise_the_parameters_are_exact_and_a_peak_is_named() -> None:
    points = [(n, 100 * n / (1 + 0.1 * (n - 1) + 0.001 * n * (n - 1))) for n in (1, 3, 10, 30, 100, 300)]
    law = fit(points)
    estimates = [each.estimate for each in (law.rate, law.contention, law.coherency, law.peak)]
    assert estimates == pytest.approx([100, 0.1, 0.001, 30])
    assert (law.better, law.held_out) == (LAW, None)


def test_a_plateau_is_a_knee_and_stays_one() -> None:
    law = fit([(n, 1000.0 * min(n, 16)) for n in (1, 2, 4, 8, 16, 32, 64, 128)], [256])
    assert law.better == KNEE
    assert law.knee == pytest.approx(16)
    assert law.predictions[0].throughput.estimate == pytest.approx(16_000, rel=0.01)
    assert law.predictions[0].throughput.usable


def test_a_throughput_that_only_grows_has_no_peak_and_no_upper_limit_of_it() -> None:
    law = fit([(n, 10.0 * n) for n in (1, 2, 4, 8, 16, 32)])
    assert (law.peak.estimate, law.peak.high, law.contention.low, law.coherency.low) == (None, None, 0.0, 0.0)


@pytest.mark.tier("quick")
@pytest.mark.parametrize(
    ("points", "text"),
    [
        *[([(2**n, 10.0) for n in range(count)], "too few for a fit") for count in (0, 3, LEAST - 1)],
        # Repeats are points, and no further counts.
        ([(n, 10.0 * n) for n in (1, 2, 4, 8, 16)] * 3, "5 different subscriber counts are too few"),
        ([(2**n, float(n)) for n in range(LEAST)], "above 0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(points: list[tuple[int, float]], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        fit(points)
