"""The tables: published headings, and marks where a row is not what it seems."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hydra.errors import HydraError
from hydra.events.value_formatting import MARK
from hydra.measure.step_result import StepFigures, StepResult
from hydra.measure.verdict import BUSY_HOST_PCT
from hydra.model import Scenario, Settings, SettingValue, StepPlan, TableKind
from hydra.report import tables
from hydra.report.figure_texts import NOTED
from hydra.report.run_setup import COLUMN
from hydra.store.stored_scenario import published_columns
from hydra.sweep import Row, steps_of
from hydra.sweep.grid import GridSweep
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec

REFERENCE = Path(__file__).parents[2] / "conf" / "reference"
GOOD: Row = {
    "clients": 30, "msg_batch": 100, "avg_tx_rate_pps": 5780.5911, "avg_rx_rate_pps": 3486.2949,
    "client_loss_pct": 0.0, "failed_clients": 0, "total_tx": 57806, "total_rx": 57806.0, "aggregate_pps": 104588.8,
    "rx_clients": 30, "requested_rate": "max", "passed": True, "loss_target_pct": 0.5, "status": "ok", "reason": "",
}  # fmt: skip
NOT_PASSED: Row = {"passed": False}


def grid(table: TableKind = "batch") -> Scenario:
    vary: dict[str, tuple[SettingValue, ...]] = {"msg_batch": (100, 200)} if table == "batch" else {}
    sweep = GridSweep(clients=(30, 60), duration_s=10.0, vary=vary)
    return Scenario("kafka-batch", "kafka", "c", table, sweep, Settings(rate=6000.0), description="What batching does.")


def search(**rules: Any) -> Scenario:
    sweep = SearchSweep(clients=(30,), duration_s=60.0, search=SearchSpec(**rules))
    return Scenario("zmqrate", "zmq", "pyzmq", "rates", sweep)


def with_rates(*rates: SettingValue) -> Scenario:
    return replace(grid("fixed"), sweep=GridSweep(clients=(30,), duration_s=10.0, vary={"rate": rates}))


RATES = [
    *("Tx rate (msg/s)", "Rx rate (msg/s)", "Loss (%)", "Failed subscribers", "Tx total (msg)", "Rx total (msg)"),
    *("Latency p50 (ms)", "Latency p99 (ms)"),
]
AT_MAX = [RATES[1], RATES[0], *RATES[2:]]
"""Where a row has the rate ``max``, what was received comes first."""


def header(name: str) -> list[str]:
    with (REFERENCE / name).open() as f:
        return next(csv.reader(f))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def heading_line(text: str) -> list[str]:
    return cells(next(line for line in text.splitlines() if line.startswith("|")))


FIXED = ["Avrg Tx Rate", "Avrg Rx Rate", "Client Loss[%]", "Failed Clients", "Total pckts Tx", "Total pckts Rx"]
SEARCHED = ["MaxRate at SUB With Drop", "Aggregate Max pps", "MaxRate at Sub (< 0.5% Drop)"]
OF_COHORTS = ["10% of clients at Half Rate", "10% of clients Reconnecting"]
LATENCIES = ["Latency p50 (ms)", "Latency p99 (ms)"]


@pytest.mark.parametrize(
    ("scenario", "reference", "headings"),
    [
        (grid(), "hydra_kafka_batch.csv", ["Client #", "Batch", *FIXED]),
        (grid("fixed"), "hydra_kafka_fixed_rate.csv", ["Client #", *FIXED]),
        (search(), "hydra_zmq_python.csv", ["Client Count", *SEARCHED, *OF_COHORTS]),
    ],
)
def test_columns_and_headings_are_the_published_ones(scenario: Scenario, reference: str, headings: list[str]) -> None:
    assert [column.name for column in published_columns(scenario)] == header(reference)
    published = replace(scenario, published=True)
    assert heading_line(tables.RunTables(published, []).markdown) == [*headings, *LATENCIES]


@pytest.mark.parametrize(
    ("scenario", "headings"),
    [
        (grid("fixed"), ["Subscribers", *RATES]),
        (with_rates(1000.0, "max"),
         ["Subscribers", "rate (msg/s)", *AT_MAX, "Latency from send p50 (ms)", "Latency from send p99 (ms)"]),
        (search(series=("max_rate", "loss", "slow"), cohort_fraction=0.2),
         ["Subscribers", "Highest rate, drops allowed (msg/s)", "Highest aggregate rate (msg/s)",
          "Highest rate within 0.5 % loss (msg/s)", "20 % of the subscribers read at half of the rate (msg/s)",
          *LATENCIES]),
    ],
)  # fmt: skip
def test_headings_have_units_and_every_table_has_latencies(scenario: Scenario, headings: list[str]) -> None:
    assert heading_line(tables.RunTables(scenario, []).markdown) == headings


def test_a_column_without_a_figure_in_any_row_is_left_out_of_tables_and_kept_in_csv_and_json() -> None:
    known = {"latency_p50_us": 152.0, "latency_p99_us": 2140.0}
    rows: list[Row] = [{"clients": 30, "status": "failed", "total_rx": None}, {**GOOD, **known}]
    assert heading_line(tables.RunTables(grid("fixed"), rows).markdown) == ["Subscribers", *RATES]
    failed = rows[:1]
    assert heading_line(tables.RunTables(grid("fixed"), failed).markdown) == ["Subscribers"]
    assert "total_rx" in tables.RunTables(grid("fixed"), failed).csv.partition("\n")[0].split(",")
    assert "avg_tx_rate_pps" in json.loads(tables.RunTables(grid("fixed"), failed).json)["rows"][0]


@pytest.mark.parametrize(("late_pct", "more"), [((0.0, None), []), ((0.0, 2.5), ["Late (%)"])])
def test_a_table_with_late_messages_has_a_column_for_them(late_pct: tuple[float | None, ...], more: list[str]) -> None:
    rows: list[Row] = [{**GOOD, "late_pct": pct} for pct in late_pct]
    assert heading_line(tables.RunTables(grid("fixed"), rows).markdown) == ["Subscribers", *RATES[:-2], *more]


@pytest.mark.parametrize("published", [False, True])
def test_a_row_at_rate_max_names_first_what_was_received_except_under_published_headings(published: bool) -> None:
    scenario = replace(with_rates("max"), published=published)
    first, second = heading_line(tables.RunTables(scenario, [{**GOOD, "rate": "max"}]).markdown)[2:4]
    assert (first, second) == (("Avrg Tx Rate", "Avrg Rx Rate") if published else (RATES[1], RATES[0]))


@pytest.mark.parametrize(
    ("bound_us", "expected_cells"),
    [(0.0, ["0.152", "2.14"]), (153.0, ["< 0.305", "2.14 ± 0.153"]), (None, ["0.152", "2.14"])],
)
def test_a_latency_is_in_milliseconds_with_the_bound_of_the_clocks(
    bound_us: float | None, expected_cells: list[str]
) -> None:
    row = {**GOOD, "latency_p50_us": 152.0, "latency_p99_us": 2140.0, "latency_bound_us": bound_us}
    assert cells(tables.RunTables(grid(), [row]).markdown.splitlines()[-1])[-2:] == expected_cells


def test_further_columns_follow_the_published_ones(tmp_path: Path) -> None:
    rows = list(csv.DictReader(tables.RunTables(grid(), [GOOD, {**GOOD, "verdict": "broker"}]).csv.splitlines()))
    columns = list(rows[0])
    assert columns[:8] == header("hydra_kafka_batch.csv")
    others = ["aggregate_pps", "requested_rate", "rx_clients", "passed", "loss_target_pct", "verdict"]
    assert sorted(columns[8 : columns.index("status")]) == sorted(others)
    of_setup = [name for name in columns if name.startswith(COLUMN)]
    assert columns[-len(of_setup) - 4 :] == ["status", "reason", "clean", "why", *of_setup]
    assert (rows[0]["avg_tx_rate_pps"], rows[0]["verdict"], rows[1]["verdict"]) == ("5780.5911", "", "broker")


def test_a_good_row_reads_like_the_published_one() -> None:
    line = tables.RunTables(grid(), [GOOD]).markdown.splitlines()[-1]
    assert cells(line) == ["30", "100", "5780.59", "3486.29", "0", "0", "57806", "57806"]


@pytest.mark.parametrize(
    ("row", "output"),
    [
        ({**NOT_PASSED, "client_loss_pct": 2.457131}, "LOSS: 2.46 %"),
        ({"clients": 30, "msg_batch": 100, "status": "skipped", "reason": "needs 9 GB"}, "SKIPPED: needs 9 GB"),
        ({"clients": 30, "msg_batch": 100, "status": "failed", "reason": "broker died"}, "FAILED: broker died"),
        (
            {"rate_held": False, "rate_sent": False, "requested_rate": 30_000.0},
            "requested rate of 30,000/s; the mean rate was 5,781/s",
        ),
        ({"failed_dead": 2, "failed_silent": 1}, "2 died, 1 never answered"),
        ({"undrained": 7}, "7 messages were still waiting in a server"),
        ({"unknown": 7}, "7 messages had not arrived when the drain reached its time limit"),
        ({**NOT_PASSED, "client_loss_pct": 39.6, "undrained": 9}, "39.6 % of the messages were lost"),
        (
            {"passed": None, "client_loss_pct": None, "client_loss_low_pct": 0.1, "client_loss_high_pct": 2.5},
            "LOSS: 0.1 to 2.5 %",
        ),
        ({"passed": None}, "unknown whether messages were lost or late"),
        # 28.7 % of 57,806 messages to each of 30, in a window of 10 s.
        (
            {**NOT_PASSED, "late_pct": 20.0, "undrained_pct": 8.7},
            "backlog: when the window ended, 497,710 messages (28.7 % of the messages due, about 2.87 s of traffic)",
        ),
        (
            {"rate_held": False, "rate_sent": False, "requested_rate": 6000.0, "repeats": 3},
            "in at least one of 3 repeats a publisher did not reach",
        ),
    ],
)
def test_a_row_that_is_not_clean_is_marked_and_explained(row: Row, output: str) -> None:
    text = tables.RunTables(grid(), [row if "status" in row else {**GOOD, **row}]).markdown
    assert f"30 {MARK}" in text
    line = next(line for line in text.splitlines() if output in line)
    assert line.startswith(f"- {MARK} **30 subscribers, Batch 100**")


@pytest.mark.parametrize(
    ("row", "output"),
    [
        ({"client_loss_pct": 0.01}, "LOSS: 0.01 %"),
        ({"host_cpu_mean_pct": 99.2}, "no CPU left"),
        ({"generator_limited": True}, "generator-limited: the clients limited"),
        # The same bound as for the verdict "subscriber hosts".
        ({"host_cpu_mean_pct": BUSY_HOST_PCT}, "no CPU left"),
        ({"repeats": 3, "total_tx_n": 1}, "only 1 of 3 repeats have a figure for total_tx"),
    ],
)
def test_a_clean_row_with_a_warning_has_another_mark(row: Row, output: str) -> None:
    text = tables.RunTables(grid(), [{**GOOD, **row}]).markdown
    assert f"30 {NOTED}" in text
    assert MARK not in text
    assert next(line for line in text.splitlines() if output in line).startswith("- **30 subscribers, Batch 100**")


@pytest.mark.parametrize(
    "more", [{}, {"host_cpu_mean_pct": BUSY_HOST_PCT - 1}, {"late_pct": 0.9}, {"lost": 0, "undrained": 0}]
)
def test_a_good_row_has_no_mark(more: Row) -> None:
    assert MARK not in tables.RunTables(grid(), [{**GOOD, **more}]).markdown


def test_messages_that_wait_are_no_loss() -> None:
    row: Row = {**GOOD, "client_loss_pct": 0.0, "lost": 0, "undrained": 41}
    text = tables.RunTables(grid(), [row]).markdown
    assert "41 messages were still waiting in a server" in text
    assert "LOSS" not in text
    assert "were lost" not in text


def test_a_cell_says_of_how_many_repeats_it_is() -> None:
    row = {**GOOD, "avg_rx_rate_pps_ci95": 12.5, "avg_rx_rate_pps_n": 2, "repeats": 3}
    assert "3486 ± 12 (2 of 3)" in tables.RunTables(grid(), [row]).markdown


def test_a_search_says_what_its_figures_lack() -> None:
    row: Row = {"clients": 30, "status": "partial", "loss_why": "too short", "slow_cohort_felt": False}
    text = tables.RunTables(search(), [row]).markdown
    for output in (
        "not finished",
        "loss: no answer: too few seconds were measured",
        "buffers of the slow subscribers never filled",
    ):
        assert output in text


FOUND: Row = {
    "clients": 30, "max_rate_with_drop_pps": 87286.123, "aggregate_max_pps": 2618583.7,
    "max_rate_below_0_5pct_drop_pps": 28113.4, "max_rate_10pct_clients_half_rate_pps": None,
    "max_rate_10pct_clients_reconnecting_pps": 3.456, "status": "ok", "reason": "", "step_s": 1.0, "max_rate_steps": 9,
    "loss_low_pps": 24010.2, "loss_high_pps": 33419.8, "loss_steps": 31, "loss_note": "",
    "slow_low_pps": 100.0, "slow_high_pps": 900.0, "slow_steps": 60, "slow_answer": "unknown", "slow_why": "too short",
    "slow_needed_s": 90.0, "slow_note": "in words",
    "reconnecting_low_pps": 3.0, "reconnecting_high_pps": 4.0, "reconnecting_steps": 20, "failed_steps": 2,
}  # fmt: skip


def test_a_searched_rate_has_its_interval_and_what_it_took() -> None:
    lines = tables.RunTables(search(), [FOUND]).markdown.splitlines()
    row = next(line for line in lines if line.startswith("|") and "87286" in line)
    assert cells(row) == [
        f"30 {MARK}",
        "87286",
        "2618584",
        "28100 [24000 – 33400]",
        "unknown",
        "3.46 [3 – 4]",
    ]
    assert (
        "In brackets: the 95 % confidence interval of the highest rate at which on average over time at most 0.5 % of "
        "the messages are lost or added to the backlog."
    ) in lines
    assert (
        "- 30 subscribers: steps of 1 s: max_rate 9, loss 31, slow 60, reconnecting 20; failed and measured again: 2"
    ) in lines
    assert (
        f"- {MARK} **30 subscribers**: slow: no answer: too few seconds were measured, and the rate may be anywhere "
        "from 100 to 900/s; use --search-steps 90 or more in a new run (at least 90 s of measuring, about 4 min)"
    ) in lines


def test_where_no_rate_holds_the_table_says_what_is_lost() -> None:
    none: Row = {"clients": 30, "status": "ok", "loss_answer": "none", "loss_floor_pct": 2.0, "loss_why": None}
    text = tables.RunTables(search(series=("loss",)), [none]).markdown
    assert cells(next(line for line in text.splitlines() if "|" in line and MARK in line)) == [
        f"30 {MARK}",
        "none: loses 2 %",
    ]
    assert "loss: no rate holds: 2 % of the messages are lost at every rate tried; " in text


def test_a_search_without_an_answer_has_no_latency() -> None:
    its = search(series=("loss",))
    step = StepResult(
        1, StepPlan(30, Settings(rate=100.0), 1.0), "ok", StepFigures.of({"passed": True, "latency_p50_us": 7.0})
    )
    rows: tuple[tuple[Row, float | None], ...] = (
        ({"clients": 30, "max_rate_below_0_5pct_drop_pps": 100.0}, 7.0),
        ({"clients": 30, "loss_answer": "unknown"}, None),
    )
    steps = steps_of(its)
    for row, p50 in rows:
        assert steps.latency_row(row, [step]).get("latency_p50_us") == p50
        assert [found["latency_p50_us"] for found, _ in steps.with_latency([(row, "")], [step], "")] == [p50] * bool(
            p50
        )


def test_a_target_of_0_is_told_as_what_it_is_taken_for() -> None:
    row = {**FOUND, "max_rate_without_drop_pps": 500.0}
    assert "at most 0.05 % of the messages" in tables.RunTables(search(loss_target=0.0), [row]).markdown


def test_a_repeated_search_has_the_interval_of_its_repeats() -> None:
    column = "max_rate_below_0_5pct_drop_pps"
    row = {**FOUND, "repeats": 3, f"{column}_ci95": 812.5, f"{column}_n": 2, "loss_steps": 30.5, "failed_steps": 0.0}
    text = tables.RunTables(search(), [row]).markdown
    assert "28110 ± 810 (2 of 3)" in text
    assert "In brackets" not in text
    assert "steps of 1 s, on average of 3 repeats: max_rate 9, loss 30.5," in text
    assert "measured again" not in text


def test_a_search_without_any_interval_has_no_legend() -> None:
    row: Row = {"clients": 30, "max_rate_below_0_5pct_drop_pps": 66409.0, "loss_highest_passed_pps": 66409.0}
    text = tables.RunTables(search(), [row]).markdown
    assert "66409" in text
    assert "In brackets" not in text
    assert "- 30 clients: steps of" not in text


def test_several_publishers_have_a_sentence_about_their_rates() -> None:
    text = tables.RunTables(replace(grid(), publishers=2), [GOOD]).markdown
    assert "2 publishers: Tx rate is the mean over publishers, and Tx total the sum over publishers; Rx rate" in text
    assert "2 publishers:" not in tables.RunTables(grid(), [GOOD]).markdown
    assert "2 publishers:" not in tables.RunTables(replace(search(), publishers=2), []).markdown


def test_other_settings_change_the_headings_and_the_columns() -> None:
    scenario = search(loss_target=0.01, cohort_fraction=0.2)
    of_cohorts = [heading.replace("10%", "20%") for heading in OF_COHORTS]
    headings = heading_line(tables.RunTables(replace(scenario, published=True), []).markdown)
    assert headings[3:] == ["MaxRate at Sub (< 1% Drop)", *of_cohorts, *LATENCIES]


def test_writing_leaves_the_three_files_and_nothing_else(tmp_path: Path) -> None:
    tables.RunTables(grid(), [GOOD]).write(tmp_path)
    tables.RunTables(grid(), [GOOD, GOOD]).write(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.json", "table.csv", "table.md"]
    loaded = json.loads((tmp_path / "rows.json").read_text())
    assert loaded["scenario"] == "kafka-batch"
    assert loaded["rows"][1] == {**GOOD, "clean": True, "why": None}


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HydraError, match=r"cannot write .*run\.db"):
        tables.RunTables(grid(), [GOOD]).write(tmp_path / "gone")
