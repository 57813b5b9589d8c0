"""Rows that are measured several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hydra.kafkatest.settings import KafkaSettings
from hydra.measure.column import Differences, LossBursts, SystemColumns, Unsteadiness, Values
from hydra.measure.connection_columns import Connecting
from hydra.measure.latency import MERGED_IN_REPEATS
from hydra.measure.step_part import columns_of as part_columns
from hydra.measure.step_result import StepFigures, StepResult, step_columns
from hydra.model import Figure, Histogram, Scenario, Settings, StepPlan, value_of
from hydra.sweep import RepeatTurn, Sweep, for_scenario, scripted_sweep
from hydra.sweep.grid import GridSweep
from hydra.sweep.interface import check_plan
from hydra.sweep.kind import columns_of
from hydra.sweep.repetition import mean_and_interval, merge_repeats
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec


def scenario(repeat: int) -> Scenario:
    sweep = GridSweep(clients=(2, 4), duration_s=1.0, vary={"msg_batch": (10, 20)}, repeat=repeat)
    return Scenario("s", "kafka", "kafka-python", "batch", sweep, Settings(rate=100.0, system=KafkaSettings()))


def result(epoch: int, plan: StepPlan, status: str = "ok", **figures: Figure) -> StepResult:
    assert status in ("ok", "failed", "skipped")
    return StepResult(epoch, plan, status, StepFigures.of(figures), "" if status == "ok" else "because")  # type: ignore[arg-type]


Measure = Callable[[StepPlan, int], StepResult]


def numbered(plan: StepPlan, epoch: int) -> StepResult:
    return result(epoch, plan, avg_rx_rate_pps=float(epoch - 1))


def play(sweep: Sweep, measure: Measure = numbered, begun: Sequence[StepResult] = ()) -> list[StepResult]:
    """Every step until the sweep is done; each is numbered by how many there are."""
    results = list(begun)
    while (plan := sweep.next(results)) is not None:
        results.append(measure(plan, len(results) + 1))
    return results


def point(plan: StepPlan) -> tuple[int, Figure]:
    return plan.clients, value_of(plan.settings, "msg_batch")


def resumed(sweep: Sweep, results: Sequence[StepResult]) -> list[StepResult]:
    """What is left of the results of a run that continues."""
    again = sweep.offered_again(results)
    return [r for r in results if r.epoch not in again]


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
    results = play(sweep)
    assert [point(r.plan) for r in results] == [(c, batch) for c in (2, 4) for batch in (10, 20) * 2]
    rows = sweep.rows(results)
    shown = [(r["clients"], r["msg_batch"], r["repeats"], r["avg_rx_rate_pps"]) for r in rows]
    assert shown == [(2, 10, 2, 1.0), (2, 20, 2, 2.0), (4, 10, 2, 5.0), (4, 20, 2, 6.0)]
    assert rows[0]["avg_rx_rate_pps_ci95"] == pytest.approx(12.7062, abs=1e-4)
    assert [r["repeats"] for r in sweep.rows(results[:3])] == [2, 1]
    assert [for_scenario(scenario(2)).next(results[:k]) for k in range(len(results))] == [r.plan for r in results]


SEARCH = SearchSpec(series=("loss",), steps=12, start_rate=8000.0)


def searching(repeat: int, clients: tuple[int, ...] = (2, 4)) -> Scenario:
    sweep = SearchSweep(clients=clients, duration_s=1.0, search=SEARCH, repeat=repeat)
    return Scenario("s", "zmq", "pyzmq", "rates", sweep)


def carrying(*lossless: float) -> Measure:
    """Steps of a system that can carry this much, another each time that it is searched."""
    begun = 0

    def measure(plan: StepPlan, epoch: int) -> StepResult:
        nonlocal begun
        assert plan.settings.rate != "max"
        begun += plan.settings.rate == SEARCH.start_rate
        short = 1 - lossless[begun - 1] / plan.settings.rate
        return result(epoch, plan, bursts_s=LossBursts((short,) if short > 0 else ()))

    return measure


def test_a_repeated_search_has_the_mean_of_its_figures_and_counts_those_that_have_none() -> None:
    sweep = for_scenario(searching(3, (2,)))
    (row,) = sweep.rows(play(sweep, carrying(5000.0, 5100.0, 0.0)))
    column = "max_rate_below_0_5pct_drop_pps"
    assert row[column] == pytest.approx(5050, rel=0.03)
    # t(1) · |difference| / 2: between the two that have a figure.
    assert row[f"{column}_ci95"] == pytest.approx(12.706 * 50, rel=1.0)
    assert (row[f"{column}_n"], row["repeats"], row["step_s"], row["status"]) == (2, 3, 1.0, "ok")
    assert "no rate down to 1/s is within the loss target (1 of 3 repeats)" in str(row["loss_note"])


@pytest.mark.tier("test")
def test_a_repeated_search_goes_on_without_playing_its_steps_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay costs up to a second; only one more result is taken with every step."""
    spec = searching(2)
    sweep, carry, results, played = for_scenario(spec), carrying(*[3000.0, 4000.0] * 2), list[StepResult](), []

    def counted(plan: StepPlan, result: StepResult) -> None:
        played.append(plan)
        check_plan(plan, result)

    monkeypatch.setattr(scripted_sweep, "check_plan", counted)
    while (plan := sweep.next(results)) is not None:
        results.append(carry(plan, len(results) + 1))
        sweep.rows(results)
        assert len(played) == len(results)
    assert [row["repeats"] for row in sweep.rows(results)] == [2, 2]
    # Whatever it was asked before, the same results give the same answer.
    fresh, plans = for_scenario(spec), [*(r.plan for r in results), None]
    for k in (len(results) // 3, len(results) - 1, 5, len(results)):
        assert sweep.next(results[:k]) == fresh.next(tuple(results[:k])) == plans[k]
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
    sweep, carry = for_scenario(searching(repeat)), carrying(*[3000.0] * 9)
    results = play(sweep, lambda plan, n: result(n, plan, "failed") if 3 <= n < 6 else carry(plan, n))
    assert [row["status"] for row in sweep.rows(results)] == ["failed", "ok"]
    # One step of a search; a search that is a repeat is made again as a whole.
    assert sweep.offered_again(results) == ({5} if repeat == 1 else {1, 2, 3, 4, 5})
    kept = resumed(sweep, results)
    done = play(sweep, lambda plan, n: carry(plan, n + len(results)), kept)
    assert {r.plan.clients for r in done[len(kept) :]} == {2}
    assert [row["status"] for row in sweep.rows(done)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("rows", "merged_row"),
    [
        ([{"x": 1.0, "held": True}, {"x": 3.0, "held": False}], {"x": 2.0, "held": False, "status": "ok"}),
        (
            [{"x": 1.0}, {"status": "failed", "reason": "broker"}],
            {"x": 1.0, "x_ci95": None, "x_n": 1, "status": "failed", "reason": "broker"},
        ),
        (
            [{"verdict": "a", "x": None}, {"verdict": "b", "x": None}],
            {"verdict": Values(("a", "b")), "x": None, "reason": ""},
        ),
    ],
)
def test_rows_are_merged_without_inventing_anything(
    rows: list[dict[str, Figure]], merged_row: dict[str, Figure]
) -> None:
    found = merge_repeats([{**of(), **row} for row in rows])
    expected = {"clients": 2, "repeats": 2, **merged_row}
    assert {c: found.get(c) for c in expected} == expected


def of(**columns: Figure) -> dict[str, Figure]:
    return {"clients": 2, **columns, "status": "ok", "reason": ""}


def test_a_figure_of_some_repeats_only_says_of_how_many() -> None:
    row = merge_repeats([of(x=5000.0, y=1.0), of(x=None, y=2.0), of(x=None, y=3.0)])
    assert (row["x"], row["x_ci95"], row["x_n"], row["repeats"]) == (5000.0, None, 1, 3)
    assert "y_n" not in row


@pytest.mark.parametrize(
    ("flags", "together"),
    [((True, True), True), ((True, False), False), ((True, None), None), ((None, False), False), ((None, None), None)],
)
def test_a_flag_holds_if_it_holds_in_every_repeat(flags: tuple[bool | None, ...], together: bool | None) -> None:
    assert merge_repeats([of(passed=flag) for flag in flags])["passed"] is together


def test_a_censored_repeat_is_counted_with_what_was_said_of_it() -> None:
    rows = [of(loss_note="still rising"), of(loss_note="no rate passes"), of(loss_note="still rising"), of()]
    row = merge_repeats(rows, columns_of(searching(4), SystemColumns()))
    assert row["loss_note"] == "still rising (2 of 4 repeats); no rate passes (1 of 4 repeats)"


@pytest.mark.parametrize("column", ["rx_p99", "latency_bound_us", "latency_p99_us"])
def test_order_statistics_bounds_and_percentiles_without_histograms_are_medians_with_their_range(column: str) -> None:
    row = merge_repeats([of(**{column: us}) for us in (100, 110, 900_000)])
    assert (row[column], row[f"{column}_low"], row[f"{column}_high"]) == (110, 100, 900_000)
    assert f"{column}_ci95" not in row


@pytest.mark.parametrize(
    ("figures", "middle", "highest"),
    [((5.0, 7.0, 6.0), 6.0, 7.0), ((5.0, None, 6.0), 6.0, None), ((5.0, None, None), None, None)],
)
def test_a_percentile_on_a_client_that_was_never_let_in_is_above_those_of_other_repeats(
    figures: tuple[float | None, ...], middle: float | None, highest: float | None
) -> None:
    rows = [of(ready_p99_ms=ms, never_connected=int(ms is None)) for ms in figures]
    row = merge_repeats(rows, {column.name: column for column in part_columns(Connecting)})
    assert (row["ready_p99_ms"], row["ready_p99_ms_low"], row["ready_p99_ms_high"]) == (middle, 5.0, highest)


def test_percentiles_are_of_the_merged_histograms() -> None:
    """p99 of 100, 110 and 900,000 µs; merged, 2 of 301 messages took longer than 110 µs: fewer than one in 100."""
    of_steps = [
        Histogram([100, 100], 100, 100), Histogram([110, 199], 110, 110), Histogram([22_000, 2], 900_000, 900_000),
    ]  # fmt: skip
    columns = ("latency_p50_us", "latency_p99_us", "latency_max_us", "tx_lag_p99_us")

    def measure(plan: StepPlan, epoch: int) -> StepResult:
        h = of_steps[(epoch - 1) // 2 % 3]
        figures = dict.fromkeys(columns, h.max_us)
        return StepResult(epoch, plan, "ok", StepFigures.of(figures), histograms={"latency": h, "lag": h})

    sweep = for_scenario(scenario(3))
    for row in sweep.rows(play(sweep, measure)):
        assert (row["latency_p50_us"], row["latency_p99_us"], row["tx_lag_p99_us"]) == (110, 110, 110)
        assert (row["latency_max_us"], row["latency_p99_us_low"], row["latency_p99_us_high"]) == (900_000, 100, 900_000)
        assert "latency_p99_us_ci95" not in row


def test_a_slow_first_repeat_is_named_before_what_single_repeats_say() -> None:
    rows = [of(aggregate_pps=pps, steady=pps != 99.0, unsteady=None) for pps in (80.0, 100.0, 99.0, 101.0)]
    rows[2]["unsteady"] = Differences((Unsteadiness("second", 3, -0.5),))
    found = merge_repeats(rows)
    assert (found["steady"], str(found["unsteady"])) == (False, "first 0 -0.2; second 3 -0.5 (1 of 4 repeats)")
    # The first one that is known is not the first.
    assert merge_repeats([of(aggregate_pps=None, steady=True), *rows[:2], *rows[3:]])["steady"] is True


def test_every_column_that_is_of_the_merged_histograms_is_made_of_them() -> None:
    columns = [column.name for column in step_columns() if column.repeats == "merged"]
    assert len(columns) == 15
    h = Histogram([7, 10], 7, 7)
    row = merge_repeats([of(**dict.fromkeys(columns, 1000))] * 2, histograms=[dict.fromkeys(MERGED_IN_REPEATS, h)] * 2)
    assert {row[name] for name in columns} == {7}


def test_a_repeat_that_failed_gives_no_histogram_and_shifts_none() -> None:
    def measure(plan: StepPlan, epoch: int) -> StepResult:
        us = [None, None, 20, 100, 30, 1, 1, 1, 1][epoch - 1]
        if us is None:
            return result(epoch, plan, "failed")
        return replace(result(epoch, plan, latency_p50_us=us), histograms={"latency": Histogram([us, 10], us, us)})

    sweep = for_scenario(scenario(2))
    first, second, *_ = sweep.rows(play(sweep, measure))
    assert (first["latency_p50_us"], first["latency_p50_us_n"], first["repeats"]) == (100, 1, 2)
    assert (second["latency_p50_us"], second["latency_p50_us_low"], second["latency_p50_us_high"]) == (20, 20, 30)


@pytest.mark.parametrize("batch", [10, 20])
@pytest.mark.parametrize("failed_in", [0, 1, 2])
def test_a_resumed_run_comes_back_to_a_row_that_failed_in_any_of_its_repeats(batch: int, failed_in: int) -> None:
    tries: Counter[StepPlan] = Counter()

    def measure(plan: StepPlan, epoch: int) -> StepResult:
        """Fails twice in a row."""
        tries[plan] += 1
        fails = point(plan)[1] == batch and tries[plan] - 1 in (failed_in, failed_in + 1)
        return result(epoch, plan, "failed" if fails else "ok")

    sweep = for_scenario(scenario(3))
    results = play(sweep, measure)
    assert [point(r.plan) for r in results if r.status == "failed"] == [(2, batch)] * 2 + [(4, batch)] * 2
    failed = [(row["msg_batch"], row["repeats"]) for row in sweep.rows(results) if row["status"] == "failed"]
    assert failed == [(batch, 3)] * 2

    again = for_scenario(scenario(3))
    kept = resumed(again, results)
    done = play(again, lambda plan, n: result(100 + n, plan), kept)
    assert sorted(map(point, (r.plan for r in done[len(kept) :]))) == [(2, batch), (4, batch)]
    assert {(row["status"], row["repeats"]) for row in again.rows(done)} == {("ok", 3)}


def test_a_turn_is_one_repetition_of_a_client_count_and_rows_have_their_repeats() -> None:
    sweep = for_scenario(scenario(3))
    assert sweep.turns == [RepeatTurn(part, repeat) for part in range(2) for repeat in range(3)]
    # The first one fails once, and is asked for again in the same turn.
    results = play(sweep, lambda plan, n: numbered(plan, n) if n > 1 else result(n, plan, "failed"))
    turns = [sweep.turn(results[:k]) for k in range(len(results) + 1)]
    assert turns == [sweep.turns[0], *(turn for turn in sweep.turns for _ in range(2)), None]
    repeats = sweep.repeats(results)
    assert [len(its) for its in repeats] == [3] * 4
    assert [[row["avg_rx_rate_pps"] for row in its] for its in repeats][:2] == [[1, 3, 5], [2, 4, 6]]
    assert [row["avg_rx_rate_pps"] for row in sweep.rows(results)][:2] == [3, 4]


def test_what_does_not_fit_is_not_tried_again_and_has_no_further_turn() -> None:
    sweep = for_scenario(scenario(3))
    results = play(sweep, lambda plan, n: result(n, plan, "skipped" if plan.clients == 2 else "ok"))
    assert [r.plan.clients for r in results] == [2] + [4] * 6
    assert sweep.turn(results[:1]) == RepeatTurn(1, 0)
