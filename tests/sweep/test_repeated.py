"""Rows that are measured several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hydra.columns import columns_of
from hydra.columns.step import SystemColumns, step_columns
from hydra.measure.shortfall import written
from hydra.model import (
    Figure,
    Histogram,
    Scenario,
    SearchSpec,
    Settings,
    StepPlan,
    StepResult,
    SweepSpec,
    value_of,
)
from hydra.sweep import Repeated, Turn, for_scenario, search
from hydra.sweep.repeated import MERGED_IN_REPEATS, mean_and_interval, merged
from hydra.sweep.sweep import check_plan


def scenario(repeat: int) -> Scenario:
    sweep = SweepSpec(clients=(2, 4), duration_s=1.0, vary={"msg_batch": (10, 20)}, repeat=repeat)
    return Scenario("s", "kafka", "kafka-python", "batch", sweep, Settings(rate=100.0))


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
        # t(99) = 1.984, where 1.96 is the normal distribution's.
        ([1.0, 3.0] * 50, 2.0, 1.98422 * (100 / 99) ** 0.5 / 10),
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
    assert [(r.plan.clients, value_of(r.plan.settings, "msg_batch")) for r in results] == [
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
    assert rows[0]["avg_rx_rate_pps_ci95"] == pytest.approx(12.7062, abs=1e-4)


def test_a_prefix_of_the_results_gives_the_same_next_step_and_partial_means() -> None:
    sweep = for_scenario(scenario(3))
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        assert for_scenario(scenario(3)).next(results) == plan
        results.append(result(len(results) + 1, plan, x=1.0))
    assert len(results) == 12
    assert [r["repeats"] for r in sweep.rows(results[:3])] == [2, 1]


def test_a_resumed_run_tries_the_failed_repeats_once_more() -> None:
    sweep, results = for_scenario(scenario(2)), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        failed = len(results) in (0, 1)
        results.append(result(len(results) + 1, plan, "failed" if failed else "ok", x=float(len(results))))
    assert [(r["status"], r["repeats"]) for r in sweep.rows(results)] == [("failed", 2), *[("ok", 2)] * 3]
    left_out = sweep.offered_again(results)
    kept = [r for r in results if r.epoch not in left_out]
    assert len(kept) == len(results) - 1
    again = sweep.next(kept)
    assert again is not None
    assert (again.clients, value_of(again.settings, "msg_batch")) == (2, 10)
    done = [*kept, result(99, again, x=7.0)]
    assert sweep.next(done) is None
    assert [(r["status"], r["repeats"]) for r in sweep.rows(done)] == [("ok", 2)] * 4


def searching(repeat: int, clients: tuple[int, ...] = (2, 4)) -> Scenario:
    spec = SearchSpec(series=("loss",), steps=12, start_rate=8000.0)
    return Scenario(
        "s", "zmq", "pyzmq", "rates", SweepSpec(clients=clients, duration_s=1.0, search=spec, repeat=repeat)
    )


def carrying(*lossless: float) -> Callable[[StepPlan, int], StepResult]:
    """Steps of a system that can carry this much, another each time that it is searched."""
    begun = 0
    start = searching(1).sweep.search

    def measure(plan: StepPlan, epoch: int) -> StepResult:
        nonlocal begun
        assert plan.settings.rate != "max"
        assert start is not None
        begun += plan.settings.rate == start.start_rate
        short = 1 - lossless[begun - 1] / plan.settings.rate
        return result(epoch, plan, bursts_s=written([short]) if short > 0 else "")

    return measure


def test_a_repeated_search_has_the_mean_of_its_figures_and_counts_those_that_have_none() -> None:
    spec = searching(3, (2,))
    sweep, measure, results = for_scenario(spec), carrying(5000.0, 5100.0, 0.0), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        results.append(measure(plan, len(results) + 1))
    (row,) = sweep.rows(results)
    column = "max_rate_below_0_5pct_drop_pps"
    figure, half = row[column], row[f"{column}_ci95"]
    assert isinstance(figure, float)
    assert isinstance(half, float)
    assert figure == pytest.approx(5050, rel=0.03)
    # t(1) · |difference| / 2: between the two that have a figure.
    assert half == pytest.approx(12.706 * 50, rel=0.5)
    assert (row[f"{column}_n"], row["repeats"], row["step_s"], row["status"]) == (2, 3, 1.0, "ok")
    assert row["loss_note"] == "no rate down to 1/s is within the target (1 of 3 repeats)"


def test_a_repeated_search_goes_on_without_playing_its_steps_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay costs up to a second; only one more result is taken with every step."""
    spec = searching(2)
    sweep, measure, results = for_scenario(spec), carrying(*[3000.0, 4000.0] * 2), list[StepResult]()
    played = 0

    def counted(plan: StepPlan, result: StepResult) -> None:
        nonlocal played
        played += 1
        check_plan(plan, result)

    monkeypatch.setattr(search, "check_plan", counted)
    while (plan := sweep.next(results)) is not None:
        results.append(measure(plan, len(results) + 1))
        sweep.rows(results)
        assert played == len(results)
    assert [row["repeats"] for row in sweep.rows(results)] == [2, 2]
    # Whatever it was asked before, the same results give the same answer.
    fresh = for_scenario(spec)
    for k in (len(results) // 3, len(results) - 1, 5, len(results)):
        assert (
            sweep.next(results[:k]) == fresh.next(tuple(results[:k])) == (results[k].plan if k < len(results) else None)
        )
        assert sweep.rows(results[:k]) == for_scenario(spec).rows(results[:k])
    with pytest.raises(ValueError, match="more results"):
        sweep.next([*results, results[0]])
    strange = [*results[:-1], replace(results[-1], plan=replace(results[-1].plan, clients=7))]
    for _ in range(2):
        with pytest.raises(ValueError, match="another scenario"):
            sweep.next(strange)
    assert sweep.next(results) is None


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_search_that_was_given_up_goes_on_when_the_run_is_resumed(repeat: int) -> None:
    sweep, measure, results = for_scenario(searching(repeat)), carrying(*[3000.0] * 9), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        broken = 2 <= len(results) < 5
        epoch = len(results) + 1
        results.append(result(epoch, plan, "failed") if broken else measure(plan, epoch))
    assert [row["status"] for row in sweep.rows(results)] == ["failed", "ok"]
    left_out = sweep.offered_again(results)
    # One step of a search; a search that is a repeat is made again as a whole.
    assert left_out == ({5} if repeat == 1 else {1, 2, 3, 4, 5})
    kept = [r for r in results if r.epoch not in left_out]
    while (plan := sweep.next(kept)) is not None:
        assert plan.clients == 2
        kept.append(measure(plan, 1 + max(r.epoch for r in [*results, *kept])))
    rows = sweep.rows(kept)
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert len(kept) > len(results) - len(left_out)


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
            {"clients": 2, "x": 1.0, "x_ci95": None, "x_n": 1, "status": "failed", "reason": "broker", "repeats": 2},
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


def of(**columns: Figure) -> dict[str, Figure]:
    return {"clients": 2, **columns, "status": "ok", "reason": ""}


def test_a_figure_of_some_repeats_only_says_of_how_many() -> None:
    row = merged([of(x=5000.0, y=1.0), of(x=None, y=2.0), of(x=None, y=3.0)])
    assert (row["x"], row["x_ci95"], row["x_n"], row["repeats"]) == (5000.0, None, 1, 3)
    assert "y_n" not in row


@pytest.mark.parametrize(
    ("flags", "together"),
    [((True, True), True), ((True, False), False), ((True, None), None), ((None, False), False), ((None, None), None)],
)
def test_a_flag_holds_if_it_holds_in_every_repeat(flags: tuple[bool | None, ...], together: bool | None) -> None:
    assert merged([of(passed=flag) for flag in flags])["passed"] is together


def test_a_censored_repeat_is_counted_with_what_was_said_of_it() -> None:
    rows = [of(loss_note="still rising"), of(loss_note="no rate passes"), of(loss_note="still rising"), of()]
    row = merged(rows, columns_of(searching(4), SystemColumns()))
    assert row["loss_note"] == "still rising (2 of 4 repeats); no rate passes (1 of 4 repeats)"


def test_an_order_statistic_is_the_median_with_its_range() -> None:
    row = merged([of(rx_p99=100), of(rx_p99=110), of(rx_p99=900_000)])
    assert (row["rx_p99"], row["rx_p99_low"], row["rx_p99_high"]) == (110, 100, 900_000)
    assert "rx_p99_ci95" not in row


def test_percentiles_are_of_the_merged_histograms() -> None:
    """p99 of 100, 110 and 900,000 µs; merged, 2 of 301 messages took longer than 110 µs: fewer than one in 100."""
    of_steps = [
        Histogram([100, 100], 100, 100),
        Histogram([110, 199], 110, 110),
        Histogram([22_000, 2], 900_000, 900_000),
    ]
    results: list[StepResult] = []
    spec = scenario(3)
    sweep = for_scenario(spec)
    while (plan := sweep.next(results)) is not None and plan.clients == 2:
        h = of_steps[len(results) // 2]
        columns = ("latency_p50_us", "latency_p99_us", "latency_max_us", "tx_lag_p99_us")
        figures: dict[str, Figure] = dict.fromkeys(columns, h.max_us)
        results.append(StepResult(len(results) + 1, plan, "ok", figures, histograms={"latency": h, "lag": h}))
    for row in sweep.rows(results):
        assert (row["latency_p50_us"], row["latency_p99_us"], row["tx_lag_p99_us"]) == (110, 110, 110)
        assert (row["latency_max_us"], row["latency_p99_us_low"], row["latency_p99_us_high"]) == (900_000, 100, 900_000)
        assert "latency_p99_us_ci95" not in row


def test_the_bound_of_the_clocks_has_the_range_of_its_repeats() -> None:
    row = merged([of(latency_bound_us=30.0), of(latency_bound_us=31.0), of(latency_bound_us=500.0)])
    ends = (row["latency_bound_us_low"], row["latency_bound_us_high"])
    assert (row["latency_bound_us"], *ends) == (31.0, 30.0, 500.0)


def test_every_column_that_is_of_the_merged_histograms_is_made_of_them() -> None:
    columns = [column.name for column in step_columns() if column.repeats == "merged"]
    assert len(columns) == 15
    h = Histogram([7, 10], 7, 7)
    row = merged([of(**dict.fromkeys(columns, 1000))] * 2, histograms=[dict.fromkeys(MERGED_IN_REPEATS, h)] * 2)
    assert {row[name] for name in columns} == {7}


def test_runs_without_histograms_get_medians() -> None:
    row = merged([of(latency_p99_us=100), of(latency_p99_us=110), of(latency_p99_us=900_000)])
    assert row["latency_p99_us"] == 110


def test_a_repeat_that_failed_gives_no_histogram_and_shifts_none() -> None:
    sweep, results = for_scenario(scenario(2)), list[StepResult]()
    for us in (None, None, 20, 100, 30):
        plan = sweep.next(results)
        assert plan is not None
        h = Histogram([us, 10], us, us) if us else Histogram()
        results.append(
            StepResult(len(results) + 1, plan, "ok", {"latency_p50_us": us}, histograms={"latency": h})
            if us
            else StepResult(1, plan, "failed", reason="broker")
        )
    first, second = sweep.rows(results)
    assert (first["latency_p50_us"], first["latency_p50_us_n"], first["repeats"]) == (100, 1, 2)
    assert (second["latency_p50_us"], second["latency_p50_us_low"], second["latency_p50_us_high"]) == (20, 20, 30)


@pytest.mark.parametrize("batch", [10, 20])
@pytest.mark.parametrize("failed_in", [0, 1, 2])
def test_a_resumed_run_comes_back_to_a_row_that_failed_in_any_of_its_repeats(batch: int, failed_in: int) -> None:
    spec = scenario(3)
    sweep = for_scenario(spec)
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        before = sum(r.plan == plan and r.status == "ok" for r in results)
        failures = sum(r.plan == plan and r.status == "failed" for r in results)
        fails = value_of(plan.settings, "msg_batch") == batch and before == failed_in and failures < 2
        results.append(result(len(results) + 1, plan, "failed" if fails else "ok"))
    assert [row["msg_batch"] for row in sweep.rows(results) if row["status"] == "failed"] == [batch, batch]

    resumed = for_scenario(spec)
    again = resumed.offered_again(results)
    kept = [r for r in results if r.epoch not in again]
    asked: list[StepPlan] = []
    while (plan := resumed.next(kept)) is not None:
        asked.append(plan)
        kept.append(result(100 + len(kept), plan))
    assert sorted((p.clients, value_of(p.settings, "msg_batch")) for p in asked) == [(2, batch), (4, batch)]
    assert {(row["status"], row["repeats"]) for row in resumed.rows(kept)} == {("ok", 3)}


def test_a_turn_is_one_repetition_of_a_client_count_and_rows_have_their_repeats() -> None:
    sweep = for_scenario(scenario(3))
    assert isinstance(sweep, Repeated)
    assert sweep.turns == [Turn(part, repeat) for part in range(2) for repeat in range(3)]
    results: list[StepResult] = []
    turns: list[Turn | None] = [sweep.turn(results)]
    while (plan := sweep.next(results)) is not None:
        # The first one fails once, and is asked for again in the same turn.
        how = "failed" if not results else "ok"
        results.append(result(len(results) + 1, plan, how, avg_rx_rate_pps=float(len(results))))
        turns.append(sweep.turn(results))
    assert turns == [sweep.turns[0], *(turn for turn in sweep.turns for _ in range(2)), None]
    repeats = sweep.repeats(results)
    assert [len(its) for its in repeats] == [3] * 4
    assert [[row["avg_rx_rate_pps"] for row in its] for its in repeats][:2] == [[1, 3, 5], [2, 4, 6]]
    assert [row["avg_rx_rate_pps"] for row in sweep.rows(results)][:2] == [3, 4]


def test_what_does_not_fit_has_no_further_turn() -> None:
    sweep = for_scenario(scenario(3))
    assert isinstance(sweep, Repeated)
    plan = sweep.next([])
    assert plan is not None
    assert sweep.turn([result(1, plan, "skipped")]) == Turn(1, 0)
