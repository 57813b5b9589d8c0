"""A grid asks for every point once, in the order of the published tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.model import Scenario, Settings, StepPlan, StepResult, SweepSpec
from hydra.sweep import Sweep, for_scenario

SCENARIO = Scenario(
    name="k",
    system="kafka",
    client="c",
    table="batch",
    settings=Settings(rate=30_000.0, acks="all"),
    sweep=SweepSpec(clients=(60, 30), duration_s=10, vary={"msg_batch": (100, 200), "linger_ms": (0.0, 5.0)}),
)


def play(sweep: Sweep, skip: int = 0) -> list[StepResult]:
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        if plan.clients == skip:
            results.append(StepResult(len(results) + 1, plan, "skipped", reason="needs 9 GB"))
        else:
            results.append(StepResult(len(results) + 1, plan, "ok", {"total_tx": len(results)}))
    return results


def point(plan: StepPlan) -> tuple[int, int, float]:
    return plan.clients, plan.settings.msg_batch, plan.settings.linger_ms


def test_clients_ascend_in_the_outer_loop_and_vary_follows_the_file() -> None:
    inner = [(100, 0.0), (100, 5.0), (200, 0.0), (200, 5.0)]
    assert [point(r.plan) for r in play(for_scenario(SCENARIO))] == [(c, *i) for c in (30, 60) for i in inner]


def test_what_does_not_vary_is_the_scenarios() -> None:
    plan = for_scenario(SCENARIO).next([])
    assert plan is not None
    assert (plan.settings.rate, plan.settings.acks, plan.duration_s, plan.series) == (30_000.0, "all", 10, "grid")


def test_a_row_has_clients_and_what_varies_before_its_figures() -> None:
    sweep = for_scenario(SCENARIO)
    row = sweep.rows(play(sweep))[1]
    assert list(row) == ["clients", "msg_batch", "linger_ms", "total_tx", "status", "reason"]
    assert row["linger_ms"] == 5.0


def test_a_skipped_client_count_is_asked_once_and_the_others_go_on() -> None:
    sweep = for_scenario(SCENARIO)
    results = play(sweep, skip=30)
    assert [r.plan.clients for r in results] == [30, 60, 60, 60, 60]
    rows = sweep.rows(results)
    assert [r["status"] for r in rows] == ["skipped"] * 4 + ["ok"] * 4
    assert {r["reason"] for r in rows[:4]} == {"needs 9 GB"}


def test_a_grid_without_vary_is_one_step_a_client_count() -> None:
    sweep = for_scenario(replace(SCENARIO, sweep=SweepSpec(clients=(1, 2), duration_s=3)))
    assert [r.plan.clients for r in play(sweep)] == [1, 2]


def test_results_of_another_sweep_are_refused() -> None:
    sweep = for_scenario(SCENARIO)
    results = play(sweep)
    with pytest.raises(ValueError, match="another scenario"):
        sweep.next([results[1]])
    with pytest.raises(ValueError, match="more results"):
        sweep.rows([*results, results[0]])


@pytest.mark.parametrize(("drain", "bound"), [(None, 8 * 25 + 2), (2.0, 8 * 12 + 2)])
def test_the_bound_counts_windows_drains_and_warmups(drain: float | None, bound: float) -> None:
    sweep = for_scenario(replace(SCENARIO, drain_max_s=drain))
    assert sweep.bound_s() == bound
    assert sweep.expected_s() <= bound
