"""How well the loss of a step is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from hydra.measure.loss_interval import of_bursts


@pytest.mark.parametrize("count", [1, 3, 40])
def test_bursts_of_one_size_have_the_interval_of_a_poisson_count_and_some_room_above(count: int) -> None:
    size, length = 0.02, 10.0
    limits = of_bursts([size] * count, length)
    assert limits is not None
    low, high = (k * size / length for k in (chi2.ppf(0.025, 2 * count) / 2, chi2.ppf(0.975, 2 * count + 2) / 2))
    assert limits.low == pytest.approx(low)
    assert high < limits.high < high * (1 + 4 / count)


@pytest.mark.parametrize(
    ("bursts", "length", "next_burst", "expected"),
    [
        ([], 10.0, None, None),  # nothing is known of what a burst would cost
        ([], 10.0, 0.02, (0.0, 3.689 * 0.002)),
        ([0.0], 10.0, 0.02, (0.0, 3.689 * 0.002)),
        ([0.5], 1.0, None, (0.01266, 1.0)),  # more than everything cannot be lost
        ([0.5], 0.0, None, None),
    ],
)
def test_what_there_was_no_burst_of_and_what_cannot_be(
    bursts: list[float], length: float, next_burst: float | None, expected: tuple[float, float] | None
) -> None:
    assert of_bursts(bursts, length, next_burst) == (None if expected is None else pytest.approx(expected, rel=0.01))


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Bursts by chance, of sizes by chance: 4 in a step, 0.05 s each on average."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(1000):
        limits = of_bursts(random.exponential(0.05, random.poisson(4.0)).tolist(), 10.0, 0.05)
        assert limits is not None
        held += limits.low <= 0.02 <= limits.high
    assert 0.91 <= held / 1000 <= 0.99
