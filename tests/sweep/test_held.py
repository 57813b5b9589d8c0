"""The rates that were held: which rungs are tried, the text of an answer, and its distance from a world's limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hydra.measure.column import SystemColumns
from hydra.model import Figure, Scenario, StepPlan, StepResult
from hydra.sweep import HeldSpec, HeldSweep, Row, SearchSpec, for_scenario, kind_of
from hydra.sweep.cleanness import why_not_clean
from hydra.sweep.interface import LadderProgress
from hydra.sweep.row_columns import columns_of
from tests.sweep.held_worlds import ALL, rungs_off

RATE = "max_rate_below_0_5pct_drop_pps"
System = Callable[[StepPlan], Mapping[str, Figure]]
OVERHEAD_S = 1.0


def scenario(
    clients: tuple[int, ...] = (30,), publishers: int = 1, search: SearchSpec | None = None, **held: object
) -> Scenario:
    own = search or SearchSpec(start_rate=1000.0, series=("loss",))
    sweep = HeldSweep(clients=clients, duration_s=10.0, held=HeldSpec(**held), search=own)  # type: ignore[arg-type]
    return Scenario("z", "zmq", "pyzmq", "rates", sweep, publishers=publishers)


def rate_of(plan: StepPlan) -> float:
    return 200_000.0 if plan.settings.rate == "max" else plan.settings.rate


def carries(capacity: float, fastest: float = 200_000.0) -> System:
    """Loses what is above a capacity; its publisher is no faster than ``fastest``."""

    def system(plan: StepPlan) -> Mapping[str, Figure]:
        requests = rate_of(plan)
        sent = min(requests, fastest)
        lost = max(1 - capacity / sent, 0.0)
        full, held = plan.settings.rate == "max", sent >= 0.99 * requests
        return {
            "requested_rate": "max" if full else requests,
            "rate_held": None if full else held,
            "rate_sent": None if full else held,
            "passed": lost <= 0.005,
            "loss_target_pct": 0.5,
            "client_loss_pct": 100 * lost,
            "avg_tx_rate_pps": sent,
            "avg_rx_rate_pps": sent * (1 - lost),
            "aggregate_pps": plan.clients * sent * (1 - lost),
            "generator_limited": not held,
            "latency_p50_us": 100.0,
            "latency_p99_us": 900.0,
        }

    return system


def play(spec: Scenario, system: System, wall_s: Callable[[StepPlan], float] | None = None) -> list[StepResult]:
    sweep, results = for_scenario(spec), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        took_s = wall_s(plan) if wall_s else plan.duration_s + OVERHEAD_S
        results.append(StepResult(len(results) + 1, plan, "ok", {**system(plan), "wall_s": took_s}))
    return results


def row_of(spec: Scenario, system: System) -> tuple[Row, list[StepResult]]:
    results = play(spec, system)
    (row,) = for_scenario(spec).rows(results)
    return row, results


@pytest.mark.parametrize("capacity", [900.0, 7_100.0, 20_000.0, 33_000.0, 99_000.0])
@pytest.mark.parametrize("saturation", [True, False])
def test_the_answer_is_the_rung_below_a_capacity_and_the_one_above_it(capacity: float, saturation: bool) -> None:
    row, results = row_of(scenario(saturation=saturation), carries(capacity))
    held, beyond = float(str(row[RATE])), float(str(row["loss_not_held_pps"]))
    assert held <= capacity * 1.005 < beyond <= 1.3 * held
    assert (row["loss_answer"], row["loss_held_s"], row["loss_not_held_cause"]) == ("held", 10.0, "lost")
    assert row["loss_not_held_amount"] == pytest.approx(100 * (1 - capacity / beyond))
    assert (row["loss_p50_us"], row["loss_p99_us"], row["loss_loss_pct"]) == (100.0, 900.0, 0.0)
    assert why_not_clean(row) == ""
    assert sum(result.plan.duration_s == 10.0 for result in results) <= 3
    assert row["wall_s"] == sum(float(str(result.figures["wall_s"])) for result in results) < 60
    assert set(row) - set(columns_of(scenario(saturation=saturation), SystemColumns())) == set()
    assert ("aggregate_max_pps" in row) == saturation


def test_a_rung_counts_as_not_held_after_two_steps() -> None:
    _, results = row_of(scenario(), carries(20_000.0))
    assert [rate_of(result.plan) for result in results].count(25_000.0) == 2


def test_the_total_is_that_of_all_publishers() -> None:
    row, _ = row_of(scenario(publishers=3), carries(20_000.0))
    assert (row[RATE], row["loss_total_pps"]) == (20_000.0, 60_000.0)


def test_where_the_publisher_ends_the_answer_is_at_least() -> None:
    row, _ = row_of(scenario(), carries(1e9, fastest=23_100.0))
    assert (row["loss_answer"], row[RATE]) == ("at_least", 20_000.0)
    assert (row["loss_not_held_cause"], row["loss_not_held_amount"]) == ("unsent", 23_100.0)
    kind = kind_of(scenario())
    assert kind.in_place(row, RATE) == "at least 20,000"
    assert kind.in_place(row, "loss_not_held_pps") == "25,000 (publisher reached 23,100/s)"
    assert why_not_clean(row) == ""
    assert [warning.kind for warning in kind.warnings(row)] == ["held_at_least"]


def test_at_the_top_of_the_ladder_nothing_above_was_tried() -> None:
    search = SearchSpec(start_rate=1000.0, max_doublings=1, series=("loss",))
    row, _ = row_of(scenario(search=search, saturation=False), carries(1e9))
    assert (row["loss_answer"], row[RATE], row["loss_not_held_pps"]) == ("held", 2000.0, None)
    assert kind_of(scenario()).in_place(row, "loss_not_held_pps") == "nothing above tried"


def test_none_is_held_if_the_lowest_rung_is_not() -> None:
    search = SearchSpec(start_rate=1000.0, floor_rate=500.0, series=("loss",))
    spec = scenario(search=search)
    row, results = row_of(spec, carries(100.0))
    assert (row["loss_answer"], row[RATE], row["loss_not_held_pps"]) == ("none_held", None, 500.0)
    assert [rate_of(result.plan) for result in results].count(500.0) == 2
    assert why_not_clean(row) == "loss: no rate was held"
    (warning,) = kind_of(spec).warnings(row)
    assert warning.kind == "none_held"
    assert str(warning).startswith("loss: no rate was held: at 500/s, the lowest one, lost 80 %; ")


def test_time_that_ends_first_leaves_an_answer_that_is_not_confirmed() -> None:
    spec = scenario(within_s=25.0)
    row, results = row_of(spec, carries(20_000.0))
    assert sum(float(str(result.figures["wall_s"])) for result in results) <= 25.0
    assert (row["loss_answer"], row[RATE]) == ("unconfirmed", None)
    assert why_not_clean(row) == "loss: not confirmed"
    assert [warning.kind for warning in kind_of(spec).warnings(row)] == ["not_confirmed"]


def test_slow_steps_leave_out_what_would_exceed_the_limit() -> None:
    results = play(scenario(), carries(20_000.0), wall_s=lambda plan: plan.duration_s + 6.0)
    assert sum(float(str(result.figures["wall_s"])) for result in results) <= 66.0
    (row,) = for_scenario(scenario()).rows(results)
    assert row["loss_answer"] == "held"


def test_every_step_has_enough_messages() -> None:
    search = SearchSpec(start_rate=4.0, series=("loss",))
    _, results = row_of(scenario(search=search, saturation=False, within_s=600.0), carries(2.5))
    assert all(rate_of(result.plan) * result.plan.duration_s >= 20 for result in results)


def test_the_same_results_lead_to_the_same_steps() -> None:
    spec = scenario(clients=(10, 30))
    results = play(spec, carries(20_000.0))
    sweep = for_scenario(spec)
    for n, result in enumerate(results):
        assert sweep.next(results[:n]) == result.plan
    assert [row["clients"] for row in sweep.rows(results)] == [10, 30]


def test_an_interrupted_row_keeps_the_bracket_so_far() -> None:
    spec = scenario()
    results = play(spec, carries(20_000.0))[:3]
    sweep = for_scenario(spec)
    (row,) = sweep.rows(results)
    assert (row["status"], row["loss_answer"], row["loss_why"]) == ("partial", "unconfirmed", "interrupted")
    progress = sweep.progress(results)
    assert isinstance(progress, LadderProgress)
    assert (progress.low, progress.high) == (row["loss_low_pps"], row["loss_high_pps"])
    assert progress.low is not None or progress.high is not None
    (warning,) = kind_of(spec).warnings(row)
    assert warning.kind == "search_interrupted"


def test_all_series_have_their_published_columns() -> None:
    spec = scenario(search=SearchSpec(), short_s=10.0, within_s=60.0)
    row, results = row_of(spec, carries(20_000.0))
    assert list(row)[:6] == [
        *("clients", "max_rate_with_drop_pps", "aggregate_max_pps", RATE),
        *("max_rate_10pct_clients_half_rate_pps", "max_rate_10pct_clients_reconnecting_pps"),
    ]
    cohorts = {result.plan.series: result.plan.cohort for result in results}
    assert cohorts["slow"].kind == "slow"
    assert cohorts["slow"].rate == pytest.approx(10_000)
    assert cohorts["reconnecting"].rate == 2.0
    for series in ("loss", "slow", "reconnecting"):
        assert sum(result.plan.series == series for result in results) <= 7
    assert set(row) - set(columns_of(spec, SystemColumns())) == set()


@pytest.mark.tier("test")
@pytest.mark.parametrize("name", sorted(set(ALL) - {"shallow", "Proportional", "BufferedStalls", "Stalls"}))
def test_the_answer_is_at_most_one_rung_from_the_limit_of_a_world(name: str) -> None:
    found = [rungs_off(name, seed, of=200) for seed in range(4)]
    assert sum(rungs is not None and abs(rungs) <= 1 for _, rungs, _ in found) >= 2
    assert all(seconds <= 60 for *_, seconds in found)
