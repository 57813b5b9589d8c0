"""The time that a sweep still takes, from what its steps took so far."""

from __future__ import annotations

import pytest

from hydra.measure.step_result import StepResult
from hydra.model import Scenario, Settings
from hydra.sweep import for_scenario
from hydra.sweep.grid import GridSweep
from hydra.sweep.interface import QUICK_DRAIN_S, StepPace

STEP_S = 2.0 + QUICK_DRAIN_S
SCENARIO = Scenario("s", "zmq", "pyzmq", "fixed", GridSweep(2.0, clients=(1, 2, 3, 4)), Settings(rate=10.0), warmup_s=0)


@pytest.mark.parametrize(
    ("took_s", "left_s"),
    [
        ((), 4 * STEP_S),
        ((STEP_S,), 3 * STEP_S),
        ((2 * STEP_S,), 6 * STEP_S),
        ((2 * STEP_S, 4 * STEP_S, 3 * STEP_S), 3 * STEP_S),
    ],
)
def test_steps_to_come_are_as_slow_as_those_that_were_watched(took_s: tuple[float, ...], left_s: float) -> None:
    sweep, results = for_scenario(SCENARIO), list[StepResult]()
    pace = StepPace(SCENARIO, sweep)
    for seconds in took_s:
        plan = sweep.next(results)
        assert plan is not None
        pace.took(plan, seconds)
        results.append(StepResult(len(results) + 1, plan, "ok"))
    coming = sweep.next(results)
    assert coming is not None
    assert pace.left_s(results, coming) == pytest.approx(left_s)
    # A run that continues has less left, and learns again.
    assert StepPace(SCENARIO, sweep).left_s(results, coming) == pytest.approx((4 - len(results)) * STEP_S)


@pytest.mark.parametrize(("repeat", "steps"), [(1, 4), (3, 12)])
def test_a_grid_knows_how_many_steps_it_has(repeat: int, steps: int) -> None:
    sweep = GridSweep(2.0, clients=(1, 2, 3, 4), repeat=repeat)
    assert for_scenario(Scenario("s", "zmq", "pyzmq", "fixed", sweep)).steps() == steps
