"""A grid asks for every point once, in the order of the published tables."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from hydra.kafkatest.settings import KafkaSettings
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import SKIPPED_BY, USER, Figure, Scenario, Settings, SettingValue, StepPlan, value_of
from hydra.sweep import Sweep, for_scenario, plan_of, steps_of
from hydra.sweep.grid import GridSweep

SCENARIO = Scenario(
    name="k",
    system="kafka",
    client="c",
    table="batch",
    settings=Settings(rate=30_000.0, system=KafkaSettings(acks="all")),
    sweep=GridSweep(clients=(60, 30), duration_s=10, vary={"msg_batch": (100, 200), "linger_ms": (0.0, 5.0)}),
)

THREE = replace(SCENARIO, sweep=GridSweep(clients=(5,), duration_s=1, vary={"msg_batch": (100, 200, 300)}))

NOTHING: Mapping[str, Figure] = {}


def play(
    sweep: Sweep, skips: Callable[[StepPlan], bool] = lambda _: False, figures: Mapping[str, Figure] = NOTHING
) -> list[StepResult]:
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        skipped = StepResult(len(results) + 1, plan, "skipped", StepFigures.of(figures), "needs 9 GB")
        measured = StepResult(len(results) + 1, plan, "ok", StepFigures.of({"total_tx": len(results)}))
        results.append(skipped if skips(plan) else measured)
    return results


def batch(plan: StepPlan) -> int:
    value = value_of(plan.settings, "msg_batch")
    assert isinstance(value, int)
    return value


def test_clients_ascend_in_the_outer_loop_and_vary_follows_the_file() -> None:
    inner = [(100, 0.0), (100, 5.0), (200, 0.0), (200, 5.0)]
    plans = [r.plan for r in play(for_scenario(SCENARIO))]
    found = [(p.clients, batch(p), value_of(p.settings, "linger_ms")) for p in plans]
    assert found == [(c, *i) for c in (30, 60) for i in inner]
    # What does not vary is the scenario's.
    own = KafkaSettings(acks="all", msg_batch=100, linger_ms=0.0)
    assert plans[0] == StepPlan(30, Settings(rate=30_000.0, system=own), 10, "grid")
    without = for_scenario(replace(SCENARIO, sweep=GridSweep(clients=(1, 2), duration_s=3)))
    assert [r.plan.clients for r in play(without)] == [1, 2]


@pytest.mark.parametrize("other", ["msg_batch", "topics"])
def test_publishers_vary_like_a_setting(other: str) -> None:
    vary: Mapping[str, tuple[SettingValue, ...]] = {"publishers": (3, 1), other: (100, 200)}
    scenario = replace(SCENARIO, sweep=GridSweep(clients=(5, 10), duration_s=1, vary=vary))
    scenario = plan_of(scenario).completed()
    assert (scenario.publishers, scenario.sizes) == (3, ((1, 5), (3, 5), (1, 10), (3, 10)))
    sweep = for_scenario(scenario)
    results = play(sweep)
    assert [(r.plan.clients, r.plan.publishers, value_of(r.plan.settings, other)) for r in results[:4]] == [
        (5, 3, 100), (5, 3, 200), (5, 1, 100), (5, 1, 200)
    ]  # fmt: skip
    assert "publishers" not in results[0].plan.settings.system.values()
    rows = sweep.rows(results)
    assert [(row["clients"], row["publishers"], row[other]) for row in rows[2:5]] == [
        (5, 1, 100), (5, 1, 200), (10, 3, 100)
    ]  # fmt: skip
    assert steps_of(scenario).of_row(rows[2], results) == [results[2]]


def test_a_row_has_clients_and_what_varies_before_its_figures() -> None:
    sweep = for_scenario(SCENARIO)
    row = sweep.rows(play(sweep))[1]
    assert list(row) == ["clients", "msg_batch", "linger_ms", "total_tx", "status", "reason"]
    assert row["linger_ms"] == 5.0


def test_a_skipped_client_count_is_asked_once_and_the_others_go_on() -> None:
    sweep = for_scenario(SCENARIO)
    results = play(sweep, lambda plan: plan.clients == 30)
    assert [r.plan.clients for r in results] == [30, 60, 60, 60, 60]
    rows = sweep.rows(results)
    assert [r["status"] for r in rows] == ["skipped"] * 4 + ["ok"] * 4
    assert {r["reason"] for r in rows[:4]} == {"needs 9 GB"}


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_step_that_the_user_skipped_skips_its_row_alone(repeat: int) -> None:
    sweep = for_scenario(replace(THREE, sweep=replace(THREE.sweep, repeat=repeat)))
    results = play(sweep, lambda plan: batch(plan) == 200, {SKIPPED_BY: USER})
    assert batches(results) == [100, 200, 300] * repeat
    # A repeat asks for the very same step: so the step is known to be unwanted.
    assert len({r.plan for r in results if r.passed_over}) == 1
    found = [(row["status"], row.get(SKIPPED_BY)) for row in sweep.rows(results)]
    assert found == [("ok", None), ("skipped", USER), ("ok", None)]


def test_results_of_another_sweep_are_refused() -> None:
    sweep = for_scenario(SCENARIO)
    results = play(sweep)
    with pytest.raises(ValueError, match="another scenario"):
        sweep.next([replace(results[1], plan=replace(results[1].plan, clients=31))])
    with pytest.raises(ValueError, match="more results"):
        sweep.rows([*results, results[0]])


# --- failed steps ----------------------------------------------------------------------------------------------------


def failing(sweep: Sweep, times: Mapping[int, int], results: Sequence[StepResult] = ()) -> list[StepResult]:
    """Plays to the end from these results; steps with this batch fail so often, then they are good."""
    left, played = Counter(times), list(results)
    epochs = itertools.count(1 + max((r.epoch for r in results), default=0))
    while (plan := sweep.next(played)) is not None:
        epoch, ok = next(epochs), left[batch(plan)] <= 0
        left[batch(plan)] -= 1
        played.append(
            StepResult(epoch, plan, "ok" if ok else "failed", StepFigures(), "" if ok else f"because {epoch}")
        )
    return played


SECOND = "measured at the second try; the first failed: because "


def batches(results: Sequence[StepResult]) -> list[int]:
    return [batch(r.plan) for r in results]


@pytest.mark.parametrize(
    ("times", "steps", "statuses", "reasons"),
    [
        ({}, [100, 200, 300], ["ok", "ok", "ok"], ["", "", ""]),
        ({200: 1}, [100, 200, 200, 300], ["ok", "ok", "ok"], ["", SECOND + "2", ""]),
        ({200: 9}, [100, 200, 200, 300], ["ok", "failed", "ok"], ["", "because 3", ""]),
        ({300: 1}, [100, 200, 300, 300], ["ok", "ok", "ok"], ["", "", SECOND + "3"]),
    ],
)  # fmt: skip
def test_a_failed_step_is_tried_once_more_and_the_row_is_that_of_the_last_try(
    times: dict[int, int], steps: list[int], statuses: list[str], reasons: list[str]
) -> None:
    sweep = for_scenario(THREE)
    results = failing(sweep, times)
    assert batches(results) == steps
    found = [(row["status"], row["reason"]) for row in sweep.rows(results)]
    assert found == list(zip(statuses, reasons, strict=True))
    # In the middle of it a row is there once as well.
    for k in range(len(results) + 1):
        shown = [row["msg_batch"] for row in sweep.rows(results[:k])]
        assert shown == sorted(set(batches(results[:k])))


def test_a_resumed_run_tries_each_failed_row_once_more() -> None:
    sweep = for_scenario(THREE)
    results = failing(sweep, {100: 9, 300: 9})
    assert [row["status"] for row in sweep.rows(results)] == ["failed", "ok", "failed"]
    for again, status in ((9, "failed"), (0, "ok")):
        left_out = sweep.offered_again(results)
        kept = [r for r in results if r.epoch not in left_out]
        # Nothing is lost from the table until then.
        assert [row["status"] for row in sweep.rows(kept)] == ["failed", "ok", "failed"]
        results = failing(sweep, {100: again, 300: again}, kept)
        assert batches(results[len(kept) :]) == [100, 300]
        assert [row["status"] for row in sweep.rows(results)] == [status, "ok", status]
    assert not sweep.offered_again(results)


def test_a_run_of_a_version_that_tried_nothing_twice_goes_on_with_its_failed_row() -> None:
    sweep = for_scenario(THREE)
    first, failed, _, last = failing(sweep, {200: 1})
    results = [first, failed, last]
    assert [row["status"] for row in sweep.rows(results)] == ["ok", "failed", "ok"]
    assert batches(failing(sweep, {}, results)[3:]) == [200]


@pytest.mark.parametrize(("drain", "bound"), [(None, 2 * 8 * 25 + 2), (2.0, 2 * 8 * 12 + 2)])
def test_the_bound_counts_windows_drains_warmups_and_second_tries(drain: float | None, bound: float) -> None:
    sweep = for_scenario(replace(SCENARIO, drain_max_s=drain))
    assert sweep.bound_s() == bound
    assert sweep.expected_s() <= bound


def test_a_long_sweep_compares_no_plan_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    equal = Settings.__eq__

    def counted(one: Settings, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(one, other)

    monkeypatch.setattr(Settings, "__eq__", counted)
    many = GridSweep(clients=(5,), duration_s=1, vary={"msg_batch": tuple(range(1, 201))})
    assert len(play(for_scenario(replace(SCENARIO, sweep=many)))) == 200
    assert compared <= 1000
