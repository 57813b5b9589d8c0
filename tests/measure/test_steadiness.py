"""Which steps are called steady, in simulations of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from hydra.measure.column import Unsteadiness
from hydra.measure.steadiness import (
    received_of,
    settled,
    slow_first,
    unsteady,
)
from hydra.model import TimeSeriesFacts, TimeSeriesInterval

Floats = npt.NDArray[np.float64]
SIMULATED = 200


def noise(dice: np.random.Generator, seconds: int, spread: float, neighbours: float) -> Floats:
    """Around 0, each correlated with the one before."""
    found = dice.standard_normal(seconds) * spread
    for at in range(1, seconds):
        found[at] = neighbours * found[at - 1] + (1 - neighbours**2) ** 0.5 * found[at]
    return found


@pytest.mark.parametrize(("neighbours", "most"), [(0.0, 0.02), (0.5, 0.08), (0.8, 0.16)])
@pytest.mark.parametrize("seconds", [8, 10, 30])
@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
@pytest.mark.tier("test")
def test_a_steady_step_is_rarely_called_otherwise(seconds: int, spread: float, neighbours: float, most: float) -> None:
    dice = np.random.default_rng(2)
    steps = (1000 * np.maximum(1 + noise(dice, seconds, spread, neighbours), 0) for _ in range(SIMULATED))
    kinds = [{each.kind for each in unsteady(step.tolist()) or ()} for step in steps]
    assert sum("change" in its or "beginning" in its for its in kinds) <= most * SIMULATED
    assert sum("second" in its for its in kinds) <= 0.06 * SIMULATED


@pytest.mark.parametrize(
    ("shape", "kind", "at_s"),
    [
        (lambda at: np.where(at < 6, -0.3, 0.0), "beginning", 6),
        (lambda at: np.where(at < 15, 0.0, -0.3), "change", 15),
        (lambda at: np.where(at == 12, -0.7, 0.0), "second", 12),
        (lambda at: np.where(at == 0, -0.7, 0.0), "second", 0),
    ],
)
def test_what_is_not_steady_is_found_and_named(shape: Callable[[Floats], Floats], kind: str, at_s: int) -> None:
    dice, at = np.random.default_rng(4), np.arange(30.0)
    for _ in range(20):
        found = unsteady((1000 * (1 + shape(at) + noise(dice, 30, 0.02, 0.0))).tolist())
        assert found is not None
        assert [each.kind for each in found][:1] == [kind]
        assert abs(found[0].at_s - at_s) <= 1
        assert found[0].by < -0.2


@pytest.mark.parametrize("seconds", [8, 10, 30])
@pytest.mark.tier("test")
def test_ramps_and_a_slow_first_second_are_found(seconds: int) -> None:
    dice, at = np.random.default_rng(9), np.arange(float(seconds))
    for shape in (0.5 + at / seconds, 1.5 - at / seconds, np.where(at == 0, 0.5, 1.0)):
        steps = [(1000 * shape * (1 + noise(dice, seconds, 0.02, 0.0))).tolist() for _ in range(SIMULATED // 2)]
        assert sum(bool(unsteady(step)) for step in steps) >= 0.95 * len(steps)


def test_many_seconds_apart_are_found_where_no_change_explains_them() -> None:
    received = [150, 150, 150, 0, 0, 0, 0, 750, 150, 150]
    assert unsteady(received) == [Unsteadiness("stop", 3, -1.0, 4.0), Unsteadiness("second", 7, 4.0)]
    received = [100, 101, 99, 300, 100, 300, 101, 300, 99, 100]
    assert [each.at_s for each in unsteady(received) or ()] == [3, 5, 7]


@pytest.mark.parametrize(
    ("received", "found"),
    [
        ([1000.0] * 7, None),  # too few
        ([0.0] * 20, None),
        ([1000.0] * 20, []),
        ([1000.0] * 10 + [1010.0] * 10, []),  # too little
        ([1000.0] * 10 + [2000.0] * 10, [Unsteadiness("change", 10, 1.0)]),
        ([0.0] * 9 + [1.0], []),  # a part of nothing
        ([0.0] * 4 + [5.0] * 8, [Unsteadiness("beginning", 4, -1.0)]),
    ],
)
def test_what_needs_no_statistics(received: Sequence[float], found: list[Unsteadiness] | None) -> None:
    assert unsteady(received) == found


def test_only_whole_seconds_of_a_complete_step_count() -> None:
    series = [TimeSeriesInterval(second, 100, received=second) for second in range(12)]
    assert received_of(TimeSeriesFacts(0, 9.5, 1, 2.0, complete=True), series) == list(range(9))
    assert received_of(TimeSeriesFacts(0, 9.5, 1, 2.0), series) == []


@pytest.mark.parametrize(
    ("received", "warm"), [([], False), ([100], False), ([10, 100], False), ([10, 96, 100], True), ([0, 0], True)]
)
def test_a_warm_up_ends_when_two_parts_of_it_are_alike(received: Sequence[int], warm: bool) -> None:
    assert settled(received) == warm


@pytest.mark.parametrize("steps", [3, 5, 10])
@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_a_first_step_that_is_like_the_others_is_rarely_called_slow(steps: int, spread: float) -> None:
    dice = np.random.default_rng(7)
    found = sum(slow_first((1 + spread * dice.standard_normal(steps)).tolist()) is not None for _ in range(2000))
    assert found <= 0.016 * 2000


@pytest.mark.parametrize(
    ("received", "found"),
    [
        ([80.0, 100.0], None),  # who knows which is usual
        ([80.0, 100.0, 100.0], Unsteadiness("first", 0, -0.2)),
        ([96.0, 100.0, 100.0], None),  # too little
        ([120.0, 100.0, 100.0], None),
        ([80.0, 100.0, 90.0, 110.0], None),
        ([80.0, 100.0, 99.0, 101.0], Unsteadiness("first", 0, -0.2)),
        ([0.0, 0.0, 0.0], None),
    ],
)
def test_a_slow_first_step_is_found_beside_the_others(received: Sequence[float], found: Unsteadiness | None) -> None:
    slow = slow_first(received)
    assert (slow and slow.kind, slow and round(slow.by, 9)) == (found and found.kind, found and found.by)
