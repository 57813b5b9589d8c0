"""Rows that are measured several times."""

from __future__ import annotations

import pytest

from hydra.model import Figure, KafkaSpec, Scenario, Settings, StepPlan, StepResult, SweepSpec
from hydra.sweep import for_scenario
from hydra.sweep.repeated import mean_and_interval, merged


def scenario(repeat: int) -> Scenario:
    sweep = SweepSpec(clients=(2, 4), duration_s=1.0, vary={"msg_batch": (10, 20)}, repeat=repeat)
    return Scenario("s", "kafka", "kafka-python", "batch", sweep, Settings(rate=100.0), kafka=KafkaSpec())


def result(epoch: int, plan: StepPlan, status: str = "ok", **figures: Figure) -> StepResult:
    assert status in ("ok", "failed", "skipped")
    return StepResult(epoch, plan, status, figures, "" if status == "ok" else "because")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("numbers", "mean", "half_width"),
    [
        ([5.0], 5.0, None),
        ([4.0, 6.0], 5.0, 12.706),  # t(1) · √2 / √2
        ([1.0, 2.0, 3.0], 2.0, 4.303 / 3**0.5),
        ([7.0] * 10, 7.0, 0.0),
    ],
)
def test_the_interval_is_students(numbers: list[float], mean: float, half_width: float | None) -> None:
    found, width = mean_and_interval(numbers)
    assert found == mean
    assert width == (None if half_width is None else pytest.approx(half_width, abs=1e-3))


def test_all_repetitions_of_a_client_count_come_together_with_the_settings_in_turn() -> None:
    sweep = for_scenario(scenario(2))
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        results.append(result(len(results) + 1, plan, avg_rx_rate_pps=float(len(results))))
    assert [(r.plan.clients, r.plan.settings.msg_batch) for r in results] == [
        (2, 10), (2, 20), (2, 10), (2, 20), (4, 10), (4, 20), (4, 10), (4, 20),
    ]  # fmt: skip
    rows = sweep.rows(results)
    assert [(r["clients"], r["msg_batch"], r["repeats"]) for r in rows] == [
        (2, 10, 2),
        (2, 20, 2),
        (4, 10, 2),
        (4, 20, 2),
    ]
    assert [r["avg_rx_rate_pps"] for r in rows] == [1.0, 2.0, 5.0, 6.0]
    assert rows[0]["avg_rx_rate_pps_ci95"] == pytest.approx(12.706)


def test_a_prefix_of_the_results_gives_the_same_next_step_and_partial_means() -> None:
    sweep = for_scenario(scenario(3))
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        assert for_scenario(scenario(3)).next(results) == plan
        results.append(result(len(results) + 1, plan, x=1.0))
    assert len(results) == 12
    assert [r["repeats"] for r in sweep.rows(results[:3])] == [2, 1]


def test_a_client_count_that_does_not_fit_is_not_tried_again() -> None:
    sweep = for_scenario(scenario(3))
    first = sweep.next([])
    assert first is not None
    results = [result(1, first, "skipped")]
    following = sweep.next(results)
    assert following is not None
    assert following.clients == 4


@pytest.mark.parametrize(
    ("rows", "merged_row"),
    [
        (
            [{"clients": 2, "x": 1.0, "held": True, "status": "ok", "reason": ""},
             {"clients": 2, "x": 3.0, "held": False, "status": "ok", "reason": ""}],
            {"clients": 2, "x": 2.0, "held": False, "status": "ok", "reason": "", "repeats": 2},
        ),
        (
            [{"clients": 2, "x": 1.0, "status": "ok", "reason": ""},
             {"clients": 2, "status": "failed", "reason": "broker"}],
            {"clients": 2, "x": 1.0, "x_ci95": None, "status": "failed", "reason": "broker", "repeats": 2},
        ),
        (
            [{"clients": 2, "verdict": "a", "x": None, "status": "ok", "reason": ""},
             {"clients": 2, "verdict": "b", "x": None, "status": "ok", "reason": ""}],
            {"clients": 2, "verdict": "a / b", "x": None, "status": "ok", "reason": "", "repeats": 2},
        ),
    ],
)  # fmt: skip
def test_rows_are_merged_without_inventing_anything(
    rows: list[dict[str, Figure]], merged_row: dict[str, Figure]
) -> None:
    found = merged(rows)
    assert {c: found.get(c) for c in merged_row} == merged_row
