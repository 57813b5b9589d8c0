"""A sweep that lists its points asks for them in the order of the file, and for each by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.kafkatest.settings import KafkaSettings
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Scenario, Settings, StepPlan, value_of
from hydra.sweep import Sweep, for_scenario
from hydra.sweep.interface import expected_step_s
from hydra.sweep.points import PointSweep, SweepPoint

POINTS = (
    SweepPoint("large", clients=20, settings={"acks": "1"}),
    SweepPoint("one", publishers=1, duration_s=2.0),
    SweepPoint("small", clients=1, settings={"message_size": 100}),
    SweepPoint("one again", publishers=1, duration_s=2.0),
)
SCENARIO = Scenario(
    name="k",
    system="kafka",
    client="c",
    table="fixed",
    publishers=3,
    settings=Settings(rate=1000.0, system=KafkaSettings(acks="all")),
    sweep=PointSweep(duration_s=10, points=POINTS),
)
NAMES = [point.name for point in POINTS]


def play(sweep: Sweep, outcome: dict[str, list[str]] | None = None) -> list[StepResult]:
    """Every step until the sweep is done; ``outcome``: the first statuses of a point's steps."""
    results: list[StepResult] = []
    left = {name: list(statuses) for name, statuses in (outcome or {}).items()}
    while (plan := sweep.next(results)) is not None:
        assert len(results) < 100
        queued = left.get(plan.point)
        status = queued.pop(0) if queued else "ok"
        figures = {"total_tx": len(results)} if status == "ok" else {}
        results.append(StepResult(len(results) + 1, plan, status, StepFigures.of(figures), "" if figures else "why"))  # type: ignore[arg-type]
    return results


def test_points_come_in_the_order_of_the_file_with_what_is_their_own() -> None:
    plans = [result.plan for result in play(for_scenario(SCENARIO))]

    def facts(p: StepPlan) -> tuple[object, ...]:
        return p.point, p.clients, p.publishers, p.duration_s, p.settings.message_size, value_of(p.settings, "acks")

    assert list(map(facts, plans)) == [
        ("large", 20, 3, 10, 24, "1"),
        ("one", 0, 1, 2.0, 24, "all"),
        ("small", 1, 3, 10, 100, "all"),
        ("one again", 0, 1, 2.0, 24, "all"),
    ]


def test_every_row_has_its_name_its_publishers_and_all_that_varies() -> None:
    sweep = for_scenario(SCENARIO)
    first = sweep.rows(play(sweep))[1]
    expected = {"point": "one", "clients": 0, "publishers": 1, "acks": "all", "message_size": 24, "total_tx": 1}
    assert list(first.items())[:6] == list(expected.items())


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        ({"large": ["skipped"]}, ["skipped", "ok", "ok", "ok"]),
        ({"one": ["skipped"]}, ["ok", "skipped", "ok", "ok"]),
        ({"one": ["failed"]}, ["ok", "ok", "ok", "ok"]),
        ({"one": ["failed", "failed"]}, ["ok", "failed", "ok", "ok"]),
    ],
)
def test_a_point_that_cannot_be_measured_keeps_no_other_from_it(
    outcome: dict[str, list[str]], statuses: list[str]
) -> None:
    sweep = for_scenario(SCENARIO)
    rows = sweep.rows(play(sweep, outcome))
    assert [(row["point"], row["status"]) for row in rows] == list(zip(NAMES, statuses, strict=True))


def test_a_resumed_run_asks_for_what_failed_and_for_nothing_else() -> None:
    sweep = for_scenario(SCENARIO)
    results = play(sweep, {"one": ["failed", "failed"]})
    again = sweep.offered_again(results)
    left = [result for result in results if result.epoch not in again]
    plan = sweep.next(left)
    assert plan is not None
    assert (plan.point, sweep.next([*left, StepResult(9, plan, "ok", StepFigures())])) == ("one", None)


@pytest.mark.parametrize("repeat", [2, 3])
def test_each_point_is_repeated_before_the_next_begins(repeat: int) -> None:
    sweep = for_scenario(replace(SCENARIO, sweep=replace(SCENARIO.sweep, repeat=repeat)))
    results = play(sweep)
    assert [result.plan.point for result in results] == [name for name in NAMES for _ in range(repeat)]
    rows = [(row["point"], row["publishers"], row["repeats"]) for row in sweep.rows(results)]
    assert rows == [(name, publishers, repeat) for name, publishers in zip(NAMES, (3, 1, 3, 1), strict=True)]
    # What does not fit is not tried at every repeat, and every prefix leads to the step that followed it.
    results = play(sweep, {"large": ["skipped"], "small": ["failed"]})
    assert [r.plan.point for r in results[:2]] == ["large", "one"]
    assert [sweep.next(results[:count]) for count in range(len(results))] == [r.plan for r in results]


def test_results_of_a_point_that_is_not_listed_are_refused_and_the_time_is_that_of_all_points() -> None:
    sweep = for_scenario(SCENARIO)
    (first, *_) = play(sweep)
    with pytest.raises(ValueError, match="another scenario"):
        sweep.next([replace(first, plan=replace(first.plan, point="another"))])
    assert 24 <= sweep.expected_s() <= sweep.bound_s()


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        (Settings(rate=1000.0), 10.0),
        (Settings(rate=1000.0, messages=4000), 4.0),
        (Settings(rate=1000.0, messages=400_000), 10.0),
        (Settings(rate="max", messages=100_000), 3.0),
    ],
    ids=["its length", "its messages at their rate", "its length at most", "three publishers at the usual rate"],
)
def test_a_step_with_a_number_of_messages_usually_ends_before_its_time(settings: Settings, seconds: float) -> None:
    assert expected_step_s(SCENARIO, StepPlan(1, settings, 10.0)) == seconds


def test_steps_that_end_with_their_messages_are_not_expected_to_last_to_their_limit() -> None:
    points = [replace(point, duration_s=3600.0) for point in POINTS]
    settings = replace(SCENARIO.settings, messages=1000, rate=500.0)
    listed = [replace(point, settings={**point.settings, "messages": 1000, "rate": 500.0}) for point in points]
    sweep = for_scenario(replace(SCENARIO, settings=settings, sweep=PointSweep(10, points=tuple(listed))))
    assert 2 * len(points) <= sweep.expected_s() <= 4 * len(points) + SCENARIO.warmup_s * len(SCENARIO.sizes)
    assert sweep.bound_s() >= 3600 * len(points)
