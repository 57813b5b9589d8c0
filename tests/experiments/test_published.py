"""The published experiments: what their flags change, and what golden files do not show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hydra.config.file_locations import experiments
from hydra.config.scenario import resolved_from
from hydra.events.value_formatting import MARK
from hydra.experiments.experiment import Experiment, find
from hydra.experiments.measured_rows import not_measured
from hydra.experiments.partition_formula import MeanRate
from hydra.experiments.published_figures import published
from hydra.model import Figure
from hydra.report import experiment_folder
from hydra.report.figure_texts import NOTED
from hydra.system.experiment import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

Rows = Mapping[str, Mapping[str, Figure]]
Clients = Mapping[str, Mapping[str, Any]]


def done(part: ExperimentPart, rows: Rows, clients: Clients | None = None) -> PartResult:
    """A part whose rows are these by their points; ``clients`` has the figures of each row's clients and servers."""
    of = [(clients or {}).get(point, {}) for point in rows]
    return PartResult(
        part,
        resolved_from(part.name, part.name, part.scenario).scenario,
        [{"point": point, "status": "ok", "account": "exact", **row} for point, row in rows.items()],
        publishers=[row.get("publishers", ()) for row in of],
        subscribers=[row.get("subscribers", ()) for row in of],
        servers=[row.get("servers", {}) for row in of],
    )


def next_of(experiment: Experiment, order: ExperimentOptions, before: Sequence[PartResult] = ()) -> ExperimentPart:
    part = experiment.next_part(order, before)
    assert part is not None
    return part


def points(name: str, **order: Any) -> list[dict[str, Any]]:
    """The points of an experiment's first part but the warm-up."""
    part = next_of(find("", name), ExperimentOptions(**order))
    return [point for point in part.scenario["sweep"]["points"] if point["name"] != "warm-up"]


def views(name: str, rows: Rows, **clients: Any) -> Sequence[ExperimentTable]:
    experiment, order = find("", name), ExperimentOptions(0.01)
    return experiment.views(order, [done(next_of(experiment, order), rows, dict.fromkeys(rows, clients))])


@pytest.mark.parametrize("name", experiments())
def test_every_part_is_a_scenario_at_the_original_scale(name: str) -> None:
    experiment, order = find("", name), ExperimentOptions(1.0)
    for part in experiment.parts(order) if experiment.parts else [next_of(experiment, order)]:
        assert resolved_from(part.name, part.name, part.scenario).scenario.sweep.rows


@pytest.mark.parametrize("name", experiments())
def test_there_are_tables_before_anything_is_measured(name: str) -> None:
    experiment = find("", name)
    tables = experiment.views(ExperimentOptions(experiment.scale), ())
    assert tables
    assert not any(view.rows for view in tables)
    for view in tables:
        names = [column.name for column in view.columns]
        assert len(set(names)) == len(names)
        assert not view.x or {view.x, *view.y} <= set(names)


def test_each_scenario_of_a_published_table_is_an_experiment_of_its_own() -> None:
    names = {str(row["scenario"]).replace("_", "-") for row in published("linkedin_2014.csv")}
    assert names == set(experiments()["linkedin-2014"].alone)


@pytest.mark.parametrize(
    ("order", "stored"),
    [
        ({"scale": 1}, 5_000_000_000_000),
        ({"scale": 1e-4}, 500_000_000),
        ({"scale": 0.01}, 500_000_000),
        ({"scale": 0.01, "options": {"stored_bytes": 80_000_000}}, 80_000_000),
    ],
)
def test_the_log_grows_to_the_requested_size(order: dict[str, Any], stored: int) -> None:
    growing = points("throughput-vs-stored-data", **order)
    assert sum(point["messages"] * point["message_size"] for point in growing) == stored


@pytest.mark.parametrize(("options", "producers"), [({}, 6), ({"producers": 4}, 4)])
def test_the_number_of_producers_is_an_option(options: dict[str, Any], producers: int) -> None:
    asked = points("partitions-compression", scale=0.01, options=options)
    assert {point["publishers"] for point in asked} == {producers}


@pytest.mark.parametrize(("hosts", "unique"), [(4, [False] * 3), (15, [True, True, False]), (25, [True] * 3)])
def test_producers_have_a_host_each_if_there_are_so_many(hosts: int, unique: list[bool]) -> None:
    experiment = find("", "dcos-producers")
    assert experiment.parts is not None
    parts = experiment.parts(ExperimentOptions(0.001, hosts=hosts))
    assert ["publisher" in part.scenario for part in parts] == unique


LATENCY: dict[str, Figure] = {"latency_p50_us": 140, "latency_p99_us": 6000, "latency_p999_us": None}


@pytest.mark.parametrize(
    ("name", "point", "shown"),
    [
        ("single-consumer", "single-consumer", [None, None, 0.14, 6.0]),
        ("dcos-tuning", "baseline/1", [0.003, 0.009, 0.14, 6.0]),
        ("partitions-compression", "lz4/6", [0.003, 0.009, 0.14, 6.0]),
    ],
)
def test_a_row_of_a_published_table_has_latencies_and_a_mark_with_its_reason(
    name: str, point: str, shown: list[float | None]
) -> None:
    figures: dict[str, Figure] = {**LATENCY, "requested_rate": "max", "passed": False, "late_pct": 3.0}
    figures |= {"ack_p50_us": 3, "ack_p99_us": 9} if shown[0] else {}
    producer = {"records_per_sec": 1000.0}
    view = views(name, {point: figures}, publishers=[producer], subscribers=[producer])[0]
    assert [view.rows[0][each] for each in ("ack_p50_ms", "ack_p99_ms", "receipt_p50_ms", "receipt_p99_ms")] == shown
    assert f"{MARK} {point}: not clean: 3 % late" in view.notes
    table = experiment_folder.table(view, lambda column, value: f"{column.title} {value}")
    assert [(row.mark, row.hint) for row in table.rows] == [(MARK, "3 % late")] * len(view.rows)
    assert ("latency p99, ms" in table.heads, "why" in table.heads) == (True, False)


@pytest.mark.parametrize(("name", "point"), [("single-consumer", "single-consumer"), ("design-goals", "paced")])
def test_a_clean_row_on_a_disturbed_host_has_a_mark_and_a_note(name: str, point: str) -> None:
    trouble = "other processes used 30 % of a host's CPU"
    figures: dict[str, Figure] = {**LATENCY, "requested_rate": "max", "passed": True, "host_others_pct": 30.0}
    view, *others = views(name, {point: figures})
    assert f"{point}: {trouble}" in view.notes
    table = experiment_folder.table(view, lambda column, value: f"{column.title} {value}")
    assert [(row.mark, row.hint.removeprefix(f"{point}: ")) for row in table.rows] == [(NOTED, trouble)]
    assert "host_trouble" not in table.heads
    assert not any(row.mark for other in others for row in experiment_folder.table(other, lambda *_: "").rows)


def test_a_row_without_time_for_its_records_has_a_note() -> None:
    row = {"messages": 1000, "publishers": 3, "total_tx": 2999}
    rows: Rows = {"short": row, "whole": {**row, "total_tx": 3000}, "free": {"total_tx": 5}}
    part = next_of(find("", "single-consumer"), ExperimentOptions(1.0))
    messages = ["short: 2,999 of 3,000 records were acknowledged within its time"]
    assert not_measured([done(part, rows)]) == messages


def test_figures_of_the_documents_are_those_of_their_lines() -> None:
    publishers = [{"records_per_sec": 100_000.0}]
    rows: Rows = {f"{size}-bytes/1": {} for size in (250, 500, 1000)}
    table = views("dcos-record-size", rows, publishers=publishers)[0]
    at = {(row["record_bytes"], row["published"]): row for row in table.rows}
    assert at[250, "9 August"]["records_per_sec_published"] == pytest.approx(256_172.38, abs=0.01)
    # The document prints the MB/s of these two as their latency.
    assert at[500, "13 August"]["avg_latency_ms_published"] == pytest.approx(503.06, abs=0.01)
    assert at[1000, "13 August"]["avg_latency_ms_published"] == pytest.approx(744.74, abs=0.01)


def test_traffic_of_brokers_stands_beside_the_algebra_with_its_deviation() -> None:
    # 3 MB/s of payload over three brokers with two replicas: 2 MB/s in, 1 MB/s out.
    counted = {"in_bytes_per_s": 1.05e6, "replication_in_bytes_per_s": 1.05e6, "replication_out_bytes_per_s": 1e6}
    rows: Rows = {"p3-r2-c0": {"sent": 9000, "records_per_batch": 100.0}}
    table, each = views("network-in-out", rows, servers=dict.fromkeys("123", counted))
    (found,) = table.rows
    assert found["in_deviation_pct"] == pytest.approx(5)
    assert found["out_deviation_pct"] == pytest.approx(0)
    assert found["record_overhead_pct"] == pytest.approx(0.9, abs=0.1)  # 8 or 9 of 1000, and 61 in a hundredth
    assert len(each.rows) == 3
    assert "interface_in_mb_s" not in {column.name for column in table.columns}


# --- the partition formula -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "half", "target", "needed"),
    [
        (330_000, 0.0, 10e6, (30.3, 30.3, 30.3)),  # the document's example
        (100, 50, 1000, (10, 6.67, 20)),
        (100, 100, 1000, (10, 5, math.inf)),
        (100, None, 1000, (10, 0, math.inf)),
    ],
)
def test_the_interval_of_a_rate_becomes_that_of_the_partitions(
    mean: float, half: float | None, target: float, needed: tuple[float, float, float]
) -> None:
    assert MeanRate(mean, half).needed(target) == pytest.approx(needed, rel=0.01)


@pytest.mark.parametrize(("most", "run"), [(None, 4), (3, 3)])
def test_the_planned_partitions_are_run_up_to_the_largest_number(most: int | None, run: int) -> None:
    experiment = find("", "partition-formula")
    order = ExperimentOptions(0.01, {"target_rate": 1000.0, **({"most_partitions": most} if most else {})})
    first = next_of(experiment, order)
    names = [point["name"] for point in first.scenario["sweep"]["points"]]
    reported = {"publishers": [{"records_per_sec": 300.0}], "subscribers": [{"records_per_sec": 500.0}]}
    measured = [done(first, {name: {} for name in names}, dict.fromkeys(names, reported))]
    second = next_of(experiment, order, measured)
    assert {point["partitions"] for point in second.scenario["sweep"]["points"]} == {run}
    resolved_from(second.name, second.name, second.scenario)
    measured.append(done(second, {"producers": {}}, {"producers": {"publishers": [{"records_per_sec": 150.0}] * run}}))
    assert experiment.next_part(order, measured) is None
    formula, needs, others = experiment.views(order, measured)
    assert formula.rows[-1]["partitions"] == pytest.approx(1000 / 300)
    assert needs.rows[0]["in_mb_s"] == pytest.approx(1000 * 250 / 3 / 2**20)
    assert (others.rows[0]["predicted"], others.rows[0]["share"]) == (run * 300, 0.5)
