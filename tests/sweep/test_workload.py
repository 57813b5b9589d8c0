"""What a scenario's load and events make of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.measure.column import SystemColumns
from hydra.model import EventSpec, LoadSpec, Points, Rate, Scenario, Settings, StepPlan
from hydra.sweep.grid import GridSweep
from hydra.sweep.kind import columns_of
from hydra.sweep.step_workload import loaded, points_of, scaled
from hydra.wire.load_schedule import LoadSchedule
from tests.measure.observations import observed
from tests.suite.figures import figures

LENGTH_S = 100.0


def scenario(load: LoadSpec | None = None, *events: EventSpec, rate: Rate = 1000.0) -> Scenario:
    sweep = GridSweep(duration_s=LENGTH_S, clients=(10,))
    its = load or LoadSpec()
    return Scenario("s", "zmq", "pyzmq", "fixed", sweep, Settings(rate=rate), load=its, events=events)


def plan_of(scenario: Scenario) -> StepPlan:
    return loaded(StepPlan(10, scenario.settings, LENGTH_S), scenario)


def integral(points: Points) -> float:
    return LoadSchedule(points).total(LENGTH_S)


@pytest.mark.parametrize(
    ("load", "messages"),
    [
        (LoadSpec("ramp", low=0.0, high=1.0), 50_000),
        (LoadSpec("ramp", low=0.5, high=0.1), 30_000),
        (LoadSpec("steps", parts=(0.1, 0.0, 1.0, 0.5)), 40_000),
        (LoadSpec("daily", low=0.2, high=1.0, period_s=LENGTH_S), 60_000),
        (LoadSpec("daily", low=0.2, high=1.0, period_s=LENGTH_S / 4), 60_000),
        (LoadSpec("recorded", points=((0.0, 5.0), (100.0, 10.0))), 75_000),
    ],
)
def test_a_load_has_as_many_messages_as_its_shape_says_and_its_mean_is_the_rate(load: LoadSpec, messages: int) -> None:
    plan = plan_of(scenario(load))
    assert integral(plan.load) == pytest.approx(messages, rel=1e-3)
    assert plan.settings.rate == integral(plan.load) / LENGTH_S


def test_a_recorded_load_without_a_rate_is_as_it_was() -> None:
    plan = plan_of(scenario(LoadSpec("recorded", points=((0.0, 5.0), (100.0, 10.0))), rate="max"))
    assert (plan.load, plan.settings.rate) == (((0.0, 5.0), (100.0, 10.0)), 7.5)


def test_a_rate_that_does_not_change_needs_no_load() -> None:
    assert plan_of(scenario()) == StepPlan(10, Settings(rate=1000.0), LENGTH_S, course=True)


def test_the_daily_curve_begins_at_its_lowest() -> None:
    rates = dict(points_of(LoadSpec("daily", low=0.2, high=1.0, period_s=LENGTH_S), 100.0, LENGTH_S))
    assert (rates[0.0], rates[50.0]) == pytest.approx((20, 100))


@pytest.mark.parametrize(
    ("points", "begin_s", "end_s", "expected"),
    [
        ([(0.0, 10.0)], 2.0, 3.0, [(0.0, 10.0), (2.0, 10.0), (2.0, 50.0), (3.0, 50.0), (3.0, 10.0)]),
        ([(0.0, 0.0), (10.0, 10.0)], 4.0, 6.0, [(0, 0), (4, 4), (4, 20), (6, 30), (6, 6), (10, 10)]),
    ],
)
def test_a_burst_multiplies_the_rate_for_a_while(
    points: Points, begin_s: float, end_s: float, expected: Points
) -> None:
    assert scaled(points, begin_s, end_s, 5.0) == expected


def test_a_burst_adds_what_it_multiplies() -> None:
    plan = plan_of(scenario(None, EventSpec(20.0, "burst", for_s=10.0, factor=5.0)))
    assert integral(plan.load) == 100_000 + 4 * 10_000
    assert LoadSchedule(plan.load).count_by(25 * 10**9) == 20_000 + 25_000 + 1


def test_subscribers_that_are_slow_or_gone_are_one_cohort_with_spells() -> None:
    slow, ended = EventSpec(10.0, "slow", for_s=5.0, fraction=0.2), EventSpec(95.0, "gone", fraction=0.2)
    plan = plan_of(scenario(None, slow, ended))
    assert (plan.cohort.kind, plan.cohort.fraction) == ("spells", 0.2)
    assert [(s.kind, s.begin_s, s.end_s) for s in plan.spells] == [("slow", 10.0, 15.0), ("gone", 95.0, LENGTH_S)]
    assert plan.spells[0].rate == 500.0
    assert plan.course


def test_a_load_without_a_message_is_none() -> None:
    with pytest.raises(ValueError, match="no message"):
        plan_of(scenario(LoadSpec("recorded", points=((0.0, 0.0), (200.0, 0.0), (200.0, 1.0)))))


@pytest.mark.parametrize(
    ("load", "event", "rate"),
    [
        (None, None, 100.0),
        (None, EventSpec(1.0, "burst", for_s=2, factor=2), 100.0),
        (None, EventSpec(1.0, "slow", for_s=2, fraction=0.5), 100.0),
        (None, EventSpec(1.0, "gone", for_s=2, fraction=0.5), "max"),
        (LoadSpec("recorded", points=((0.0, 5.0), (100.0, 10.0))), None, "max"),
        (LoadSpec("ramp", low=0.5, high=1.0), EventSpec(1.0, "gone", for_s=2, fraction=0.5), 100.0),
    ],
)
def test_each_figure_of_a_step_with_a_load_or_events_has_a_column(
    load: LoadSpec | None, event: EventSpec | None, rate: Rate
) -> None:
    requests = scenario(load, *([event] if event else []), rate=rate)
    measured = figures(replace(observed(), plan=plan_of(requests)))
    assert set(measured) - set(columns_of(requests, SystemColumns())) == set()
