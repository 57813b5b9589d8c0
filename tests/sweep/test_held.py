"""The rates that were held: which rungs are tried, the text of an answer, and its distance from a world's limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hydra.measure.column import SystemColumns, Values
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Figure, Scenario, StepPlan
from hydra.sweep import Row, for_scenario, rows_of, texts_of
from hydra.sweep.cleanness import why_not_clean
from hydra.sweep.held import HeldSweep
from hydra.sweep.held_columns import RungRates
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.held_warnings import of_held
from hydra.sweep.interface import LadderProgress
from hydra.sweep.kind import columns_of
from hydra.sweep.search_spec import SearchSpec
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


def loses(whole: Callable[[float], float], short_until: float) -> System:
    """Loses this share at a rate in steps of 10 s, and nothing in shorter ones up to a rate."""

    def system(plan: StepPlan) -> Mapping[str, Figure]:
        rate = rate_of(plan)
        lost = whole(rate) if plan.duration_s >= 10 else float(rate > short_until) * 0.2
        return {**carries(1e9)(plan), "passed": lost <= 0.005 + 1e-9, "client_loss_pct": 100 * lost}

    return system


def whole_steps(results: list[StepResult]) -> list[float]:
    return [rate_of(result.plan) for result in results if result.plan.duration_s >= 10]


def play(
    spec: Scenario, system: System, wall_s: Callable[[StepPlan], float] | None = None, failing: int | None = None
) -> list[StepResult]:
    """All steps; those of the client count ``failing`` fail, but for the one at full speed."""
    sweep, results = for_scenario(spec), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        took_s = wall_s(plan) if wall_s else plan.duration_s + OVERHEAD_S
        fails = plan.clients == failing and plan.settings.rate != "max"
        figures = StepFigures.of({**system(plan), "wall_s": took_s})
        results.append(StepResult(len(results) + 1, plan, "failed" if fails else "ok", figures))
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


@pytest.mark.parametrize(
    ("lost", "rates"), [(0.02, [20_000.0, 16_000.0, 12_500.0]), (0.15, [20_000.0, 12_500.0, 16_000.0])]
)
def test_below_a_rung_that_is_not_held_follows_the_next_or_after_a_great_loss_the_one_below(
    lost: float, rates: list[float]
) -> None:
    search = SearchSpec(start_rate=16_000.0, series=("loss",))
    row, results = row_of(
        scenario(search=search, saturation=False), loses(lambda rate: lost * (rate > 12_500), short_until=20_000.0)
    )
    assert whole_steps(results)[:3] == rates
    assert (row[RATE], row["loss_not_held_pps"]) == (12_500.0, 16_000.0)


def test_two_losses_on_a_line_lead_to_the_rung_that_meets_the_target() -> None:
    search = SearchSpec(start_rate=16_000.0, series=("loss",))
    stalls = loses(lambda rate: max(0.02 - 0.015 * 2000 / rate, 0.0), short_until=20_000.0)
    row, results = row_of(scenario(search=search, saturation=False), stalls)
    assert whole_steps(results)[:4] == [20_000.0, 16_000.0, 2000.0, 12_500.0]
    assert (row[RATE], row["loss_not_held_pps"]) == (2000.0, 12_500.0)


@pytest.mark.parametrize(("column", "pct", "steps"), [
    *(("host_others_pct", 2.0, 1), ("host_others_pct", 30.0, 2), ("client_loss_pct", 0.3, 2), ("late_pct", 0.9, 1)),
])  # fmt: skip
def test_a_rung_that_chance_may_have_held_is_held_once_more(column: str, pct: float, steps: int) -> None:
    def system(plan: StepPlan) -> Mapping[str, Figure]:
        figures = carries(20_000.0)(plan)
        return figures if figures.get(column) else {**figures, column: pct}

    row, results = row_of(scenario(), system)
    assert (row["loss_answer"], row[RATE], whole_steps(results)) == ("held", 20_000.0, [20_000.0] * steps)


def test_the_last_whole_step_of_a_rung_counts() -> None:
    seen: list[float] = []

    def system(plan: StepPlan) -> Mapping[str, Figure]:
        seen.extend([rate_of(plan)] if plan.duration_s >= 10 else [])
        figures = carries(19_000.0 if seen.count(20_000.0) > 1 else 20_000.0)(plan)
        return {**figures, "host_others_pct": 30.0}

    search = SearchSpec(start_rate=16_000.0, series=("loss",))
    row, results = row_of(scenario(search=search, saturation=False), system)
    assert whole_steps(results) == [20_000.0, 20_000.0, 16_000.0, 16_000.0]
    assert (row["loss_answer"], row[RATE], row["loss_not_held_pps"]) == ("held", 16_000.0, 20_000.0)


def test_without_full_speed_a_count_begins_with_the_total_of_the_count_before() -> None:
    results = play(scenario(clients=(10, 30), saturation=False), carries(20_000.0))
    first = {clients: next(r for r in results if r.plan.clients == clients) for clients in (10, 30)}
    assert {clients: rate_of(result.plan) for clients, result in first.items()} == {10: 1000.0, 30: 6300.0}


@pytest.mark.parametrize("saturation", [True, False])
def test_without_full_speed_the_counts_after_a_failed_one_are_measured_again(saturation: bool) -> None:
    spec = scenario(clients=(10, 30), saturation=saturation)
    results = play(spec, carries(20_000.0), failing=10)
    of_last = {result.epoch for result in results if result.plan.clients == 30}
    failed = next(result.epoch for result in reversed(results) if result.plan.clients == 10)
    assert for_scenario(spec).offered_again(results) == {failed, *(() if saturation else of_last)}


def test_on_its_way_up_no_step_asks_for_more_than_half_a_decade_above_what_was_held() -> None:
    _, results = row_of(scenario(saturation=False), carries(90_000.0))
    rates = [rate_of(result.plan) for result in results]
    assert rates[:5] == [1000.0, 1250.0, 2000.0, 5000.0, 16_000.0]
    assert max(rates) <= 3.2 * 80_000


def test_the_total_is_that_of_all_publishers() -> None:
    row, _ = row_of(scenario(publishers=3), carries(20_000.0))
    assert (row[RATE], row["loss_total_pps"]) == (20_000.0, 60_000.0)


def test_where_the_publisher_ends_the_answer_is_at_least() -> None:
    row, _ = row_of(scenario(), carries(1e9, fastest=23_100.0))
    assert (row["loss_answer"], row[RATE]) == ("at_least", 20_000.0)
    assert (row["loss_not_held_cause"], row["loss_not_held_amount"]) == ("unsent", 23_100.0)
    rows = rows_of(scenario())
    assert rows.in_place(row, RATE) == "at least 20,000"
    assert rows.in_place(row, "loss_not_held_pps") == "25,000 (publisher reached 23,100/s)"
    assert why_not_clean(row) == ""
    (warning,) = rows.warnings(row)
    assert (warning.kind, warning.remedy) == (
        "held_at_least",
        "use more publishers, or native clients if these are not",
    )
    (figure, _) = texts_of(scenario()).headline([row], lambda row: "30 subscribers")
    assert (figure.label, figure.value) == ("held at least", "20,000/s")
    assert figure.detail == "to 30 subscribers for 10 s; not held: 25,000/s (publisher reached 23,100/s)"


def test_at_the_top_of_the_ladder_nothing_above_was_tried() -> None:
    search = SearchSpec(start_rate=1000.0, max_doublings=1, series=("loss",))
    row, _ = row_of(scenario(search=search, saturation=False), carries(1e9))
    assert (row["loss_answer"], row[RATE], row["loss_not_held_pps"]) == ("held", 2000.0, None)
    assert rows_of(scenario()).in_place(row, "loss_not_held_pps") == "nothing above tried"


def test_none_is_held_if_the_lowest_rung_is_not() -> None:
    search = SearchSpec(start_rate=1000.0, floor_rate=500.0, series=("loss",))
    spec = scenario(search=search)
    row, results = row_of(spec, carries(100.0))
    assert (row["loss_answer"], row[RATE], row["loss_not_held_pps"]) == ("none_held", None, 500.0)
    assert [rate_of(result.plan) for result in results].count(500.0) == 2
    assert why_not_clean(row) == "no rate was held"
    (warning,) = rows_of(spec).warnings(row)
    assert warning.kind == "none_held"
    assert str(warning).startswith("no rate was held: at 500/s, the lowest one, lost 80 %; ")


def test_time_that_ends_first_leaves_an_answer_that_is_not_confirmed() -> None:
    spec = scenario(within_s=14.0)
    row, results = row_of(spec, carries(20_000.0))
    assert sum(float(str(result.figures["wall_s"])) for result in results) <= 14.0
    assert (row["loss_answer"], row[RATE]) == ("unconfirmed", None)
    assert why_not_clean(row) == "not confirmed"
    assert [warning.kind for warning in rows_of(spec).warnings(row)] == ["not_confirmed"]


@pytest.mark.parametrize(("within_s", "kind", "held"), [(37.0, "held", (1, 2)), (60.0, "held", (2, 2))])
def test_a_rate_that_half_of_the_whole_steps_held_is_the_answer_if_no_lower_one_was_tried_in_time(
    within_s: float, kind: str, held: tuple[int, int]
) -> None:
    whole = {12_500.0: iter([0.004, 0.02, 0.02])}
    system = loses(lambda rate: next(whole[rate]) if rate in whole else 0.0, short_until=12_500.0)
    spec = scenario(search=SearchSpec(start_rate=12_500.0, series=("loss",)), saturation=False, within_s=within_s)
    row, _ = row_of(spec, lambda plan: {**system(plan), "host_others_pct": 6.0})
    assert (row["loss_answer"], row["loss_held_steps"], row["loss_held_of_steps"]) == (kind, *held)
    assert row[RATE] == (12_500.0 if held == (1, 2) else 10_000.0)
    assert [warning.kind for warning in rows_of(spec).warnings(row)] == (["held_in_part"] if held == (1, 2) else [])


@pytest.mark.parametrize(
    ("delivered_per_s", "messages"),
    [(40_000.0, [6_666]), (1e6, [6_666, 166_667]), (1e8, [6_666, 4_166_666]), (None, [6_666, 166_650])],
)
def test_at_full_speed_as_many_messages_are_sent_as_arrive_soon(
    delivered_per_s: float | None, messages: list[int]
) -> None:
    """A broker that keeps what it cannot deliver would deliver it during the steps that follow."""

    def system(plan: StepPlan) -> Mapping[str, Figure]:
        each = delivered_per_s and delivered_per_s / plan.clients
        arriving = {"total_rx": plan.settings.messages, "avg_rx_rate_pps": each}
        full = (
            {**arriving, "aggregate_pps": delivered_per_s, "client_loss_pct": 0.0}
            if plan.settings.rate == "max"
            else {}
        )
        return {**carries(20_000.0)(plan), **full}

    row, results = row_of(scenario(), system)
    sent = [result.plan.settings.messages for result in results if result.plan.settings.rate == "max"]
    assert sent == messages
    assert (row["max_rate_steps"], row["aggregate_max_pps"]) == (len(messages), delivered_per_s)


def test_a_rate_that_was_held_without_a_higher_one_that_was_not_is_an_answer() -> None:
    spec = scenario(search=SearchSpec(start_rate=16_000.0, series=("loss",)), saturation=False, within_s=20.0)
    row, _ = row_of(spec, carries(1e9))
    assert row["loss_answer"] == "at_least"
    assert (row["loss_not_held_pps"], row["loss_p99_us"], row["loss_held_s"]) == (None, 900.0, 10.0)
    assert why_not_clean(row) == ""
    rows = rows_of(spec)
    assert rows.in_place(row, RATE).startswith("at least ")
    assert rows.in_place(row, "loss_not_held_pps") == "not found in time"
    assert [warning.kind for warning in rows.warnings(row)] == ["next_rate_unknown"]


def test_a_rate_that_one_step_did_not_hold_is_marked_and_steps_of_a_held_rate_are_counted() -> None:
    row: Row = {
        "loss_answer": "held",
        RATE: 8000.0,
        "loss_held_s": 10.0,
        "loss_held_steps": 1,
        "loss_held_of_steps": 2,
        "loss_not_held_pps": 10_000.0,
        "loss_not_held_cause": "late",
        "loss_not_held_amount": 8.63,
        "loss_not_held_steps": 1,
    }
    rows = rows_of(scenario())
    assert rows.in_place(row, "loss_not_held_pps") == "10,000 (late 8.63 %, once)"
    assert rows.in_place({**row, "loss_not_held_steps": 2}, "loss_not_held_pps") == "10,000 (late 8.63 %)"
    assert [warning.kind for warning in rows.warnings(row)] == ["held_in_part"]
    assert rows.warnings({**row, "loss_held_of_steps": 1}) == []


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
    (warning,) = rows_of(spec).warnings(row)
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
@pytest.mark.parametrize("name", sorted(set(ALL) - {"shallow", "Proportional", "Stalls"}))
def test_the_answer_is_at_most_one_rung_from_the_limit_of_a_world(name: str) -> None:
    found = [rungs_off(name, seed, of=200) for seed in range(4)]
    assert sum(rungs is not None and abs(rungs) <= 1 for _, rungs, _ in found) >= 2
    assert all(seconds <= 60 for *_, seconds in found)


def test_a_repeated_row_names_the_rates_that_failed_in_any_repeat() -> None:
    repeats = Values((RungRates((6300.0, 8000.0)), RungRates((5000.0, 8000.0))))
    (warning,) = of_held({"loss_failed_below_pps": repeats}, "loss")
    assert warning.sentence.startswith("5,000, 6,300, 8,000/s was not held")
