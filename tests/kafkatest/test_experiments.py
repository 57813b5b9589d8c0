"""The experiments, published and our own: what they ask for, and their tables from made-up rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hydra.config.scenario import load_scenario, resolved_from
from hydra.errors import ConfigError
from hydra.events.value_formatting import MARK
from hydra.kafkatest.experiments import (
    EXPERIMENTS,
    compression,
    dcos,
    design_goals,
    linkedin,
    network,
    partition_formula,
)
from hydra.kafkatest.experiments.common import WARM_UP, not_measured, published
from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.settings import KafkaSettings
from hydra.model import Figure, Scenario, value_of, with_values
from hydra.report import experiment_folder
from hydra.report.marks import NOTED
from hydra.sweep import PointSweep
from hydra.system import Experiment, ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

Rows = Mapping[str, Mapping[str, Figure]]


def done(
    part: ExperimentPart, rows: Rows | Sequence[str], clients: Mapping[str, Mapping[str, Any]] | None = None
) -> PartResult:
    """A part whose rows are these, by their points; a point by itself has no figures of its own.

    ``clients`` has the figures of each row's clients and servers.
    """
    given = rows if isinstance(rows, Mapping) else {point: {} for point in rows}
    messages = [{"point": point, "status": "ok", "account": "exact", **row} for point, row in given.items()]
    of = [(clients or {}).get(point, {}) for point in given]
    return PartResult(
        part,
        resolved_from(part.name, part.name, part.scenario).scenario,
        messages,
        publishers=[row.get("publishers", ()) for row in of],
        subscribers=[row.get("subscribers", ()) for row in of],
        servers=[row.get("servers", {}) for row in of],
    )


def part_of(experiment: Experiment, order: ExperimentOptions, before: Sequence[PartResult] = ()) -> ExperimentPart:
    """The experiment's next part."""
    found = experiment.next_part(order, before)
    assert found is not None
    return found


BY_NAME = {each.name: each for each in EXPERIMENTS}


def the_parts(experiment: Experiment, order: ExperimentOptions) -> Sequence[ExperimentPart]:
    if experiment.parts is not None:
        return experiment.parts(order)
    return [part_of(experiment, order)]


ANY = the_parts(EXPERIMENTS[0], ExperimentOptions(1.0))[0]


def points(name: str, **order: Any) -> list[dict[str, Any]]:
    experiment = BY_NAME[name]
    options = ExperimentOptions(**{"scale": experiment.scale, **order})
    listed = [point for part in the_parts(experiment, options) for point in part.scenario["sweep"]["points"]]
    return [point for point in listed if point["name"] != WARM_UP]


def views(
    name: str, rows: Rows | Sequence[str], part: ExperimentPart = ANY, **clients: Any
) -> Sequence[ExperimentTable]:
    """An experiment's tables of rows; the figures of each row's clients are by its place."""
    points = list(rows)
    reported = {point: {role: each[n] for role, each in clients.items()} for n, point in enumerate(points)}
    return BY_NAME[name].views(ExperimentOptions(0.01), [done(part, rows, reported)])


@pytest.mark.parametrize("name", ["linkedin-2014", "dcos-record-size", "dcos-tuning", "dcos-producers"])
def test_a_warm_up_comes_first_and_stands_in_no_table(name: str) -> None:
    experiment = BY_NAME[name]
    for part in the_parts(experiment, ExperimentOptions(experiment.scale)):
        first, *others = part.scenario["sweep"]["points"]
        assert (first["name"], first["publishers"], first["messages"] <= 300_000) == (WARM_UP, 1, True)
        assert WARM_UP not in [point["name"] for point in others]
    publishers = [{"records": 1, "records_per_sec": 1.0}]
    warm = [done(ANY, {WARM_UP: {"records_per_sec": 1.0}}, {WARM_UP: {"publishers": publishers}})]
    assert not any(view.rows for view in experiment.views(ExperimentOptions(experiment.scale), warm))
    assert not experiment.lines(warm)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_every_part_is_a_scenario_that_can_be_run(experiment: Experiment) -> None:
    for part in the_parts(experiment, ExperimentOptions(1.0)):
        scenario = resolved_from(part.name, part.name, part.scenario).scenario
        assert isinstance(scenario.sweep, PointSweep)
        for point in scenario.sweep.points:
            KafkaSettings(**{k: v for k, v in point.settings.items() if k in KafkaSettings.__dataclass_fields__})  # type: ignore[arg-type]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_there_are_tables_before_anything_is_measured(experiment: Experiment) -> None:
    views = experiment.views(ExperimentOptions(experiment.scale), ())
    assert views
    assert not any(view.rows for view in views)
    for view in views:
        names = [column.name for column in view.columns]
        assert len(set(names)) == len(names)
        assert not view.x or {view.x, *view.y} <= set(names)


def test_linkedins_scenarios_are_all_there_by_their_names() -> None:
    names = {str(row["scenario"]).replace("_", "-") for row in published(linkedin.FILE)}
    assert names == {each.name for each in linkedin.EXPERIMENTS} - {linkedin.ALL}


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("single-producer-no-replication", {"publishers": 1, "replication_factor": 1, "batch_bytes": 8196}),
        ("single-producer-sync-replication", {"replication_factor": 3, "acks": "all", "batch_bytes": 64_000}),
        ("three-producers-async-replication", {"publishers": 3, "replication_factor": 3, "acks": "1"}),
        ("three-consumers", {"clients": 3, "read": "stored", "messages": 50_000_000}),
        ("end-to-end-latency", {"clients": 1, "messages": 5000}),
    ],
)
def test_linkedin_is_asked_as_it_was_published(name: str, requests: dict[str, object]) -> None:
    (point,) = points(name, scale=1)
    assert {key: point.get(key) for key in requests} == requests


def test_sizes_are_those_of_the_document_but_for_the_header() -> None:
    sweep = points("message-size-sweep", scale=1)
    assert [point["message_size"] for point in sweep] == [24, 100, 1000, 10_000, 100_000]
    assert [point["messages"] for point in sweep] == [1000 * 2**20 // size for size in (10, 100, 1000, 10_000, 100_000)]
    (view,) = BY_NAME["message-size-sweep"].views(ExperimentOptions(1), ())
    assert "10-byte records are 24 bytes here, the size of the header that accounts for each" in view.notes


@pytest.mark.parametrize(
    ("order", "stored"),
    [
        ({"scale": 1}, 5_000_000_000_000),
        ({"scale": 1e-4}, 500_000_000),
        ({"scale": 0.01}, 500_000_000),
        ({"scale": 0.01, "options": {"stored_bytes": 80_000_000}}, 80_000_000),
    ],
)
def test_the_log_grows_as_far_as_its_user_says(order: dict[str, Any], stored: int) -> None:
    growing = points("throughput-vs-stored-data", **order)
    assert sum(point["messages"] * point["message_size"] for point in growing) == stored
    assert all(point["keep"] for point in growing)


def test_linkedins_table_has_the_published_figures_beside() -> None:
    producer = {"records_per_sec": 400_000.0, "mb_per_sec": 38.0}
    consumer = {"records_per_sec": 1_307_984.0, "mb_per_sec": 125.0}
    points = ["single-producer-no-replication", "three-consumers"]
    publishers, subscribers = [[producer], [producer]], [[], [consumer, consumer]]
    one, three = views("linkedin-2014", points, publishers=publishers, subscribers=subscribers)[0].rows
    assert (one["records_per_sec"], one["records_per_sec_published"]) == (400_000.0, 821_557)
    assert three["records_per_sec_ratio"] == pytest.approx(1.0)
    assert three["records"] == 500_000


def test_stored_data_is_drawn_over_all_replicas_with_the_page_cache() -> None:
    producer = {"records_per_sec": 1000.0, "records": 1_000_000}
    name = "throughput-vs-stored-data"
    rows = {f"{name}/{n}": {"host_memory_available_min_bytes": 8e9 / n} for n in (1, 2)}
    (view,) = views(name, rows, publishers=[[producer]] * 2)
    assert [row["stored_bytes"] for row in view.rows] == [3e8, 6e8]
    assert (view.x, view.y, view.marks) == ("stored_bytes", ("records_per_sec",), {"page cache": 8e9})


LATENCY: dict[str, Figure] = {"latency_p50_us": 1000, "latency_p99_us": 6000, "latency_p999_us": None}


def test_latency_is_beside_the_note_of_the_published_row() -> None:
    (view,) = views("end-to-end-latency", {"end-to-end-latency": LATENCY})
    (row,) = view.rows
    assert [row[f"{name}_ratio"] for name in ("p50_ms", "p99_ms", "p99_9_ms")] == [0.5, 2.0, None]


@pytest.mark.parametrize(
    ("name", "point", "p50_us", "below"),
    [
        ("end-to-end-latency", "end-to-end-latency", 140, True),
        ("design-goals", "paced", 140, True),
        ("end-to-end-latency", "end-to-end-latency", 153, False),
    ],
)
def test_a_latency_below_the_bound_of_the_clocks_is_told_below_the_table(
    name: str, point: str, p50_us: int, below: bool
) -> None:
    figures = {**LATENCY, "latency_p50_us": p50_us, "latency_bound_us": 152.3, "ack_p50_us": 3}
    notes = [note for note in views(name, {point: figures})[0].notes if "clocks" in note]
    assert (
        notes == [f"{point}: a latency of at most 0.292 ms is shorter than the clocks of the hosts can measure"] * below
    )


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
    figures: dict[str, Figure] = {**LATENCY, "latency_p50_us": 140, "requested_rate": "max", "passed": False}
    figures |= {"late_pct": 3.0, **({"ack_p50_us": 3, "ack_p99_us": 9} if shown[0] else {})}
    producer = {"records_per_sec": 1000.0}
    view = views(name, {point: figures}, publishers=[[producer]], subscribers=[[producer]])[0]
    assert [view.rows[0][each] for each in ("ack_p50_ms", "ack_p99_ms", "receipt_p50_ms", "receipt_p99_ms")] == shown
    assert f"{MARK} {point}: not clean: 3 % late" in view.notes
    table = experiment_folder.table(view, lambda column, value: f"{column.title} {value}")
    assert [(row.mark, row.hint) for row in table.rows] == [(MARK, "3 % late")] * len(view.rows)
    assert ("latency p99, ms" in table.heads, "why" in table.heads) == (True, False)


@pytest.mark.parametrize(("name", "point"), [("single-consumer", "single-consumer"), ("design-goals", "paced")])
def test_a_clean_row_on_a_disturbed_host_has_a_mark_and_a_note(name: str, point: str) -> None:
    trouble = "other processes used 30 % of a host's CPU"
    figures: dict[str, Figure] = {**LATENCY, "requested_rate": "max", "passed": True, "host_others_pct": 30.0}
    view, *others = views(name, {point: figures}, publishers=[[]], subscribers=[[]])
    assert f"{point}: {trouble}" in view.notes
    table = experiment_folder.table(view, lambda column, value: f"{column.title} {value}")
    assert [(row.mark, row.hint.removeprefix(f"{point}: ")) for row in table.rows] == [(NOTED, trouble)]
    assert "host_trouble" not in table.heads
    assert [
        row.mark for other in others for row in experiment_folder.table(other, lambda *_: "").rows if row.mark
    ] == []


def test_rows_that_failed_are_told_below_the_table() -> None:
    (view,) = views("single-consumer", {"single-consumer": {"status": "failed", "reason": "the broker is gone"}})
    assert not view.rows
    assert "single-consumer failed: the broker is gone" in view.notes


def test_record_sizes_have_mean_and_spread_beside_both_documents() -> None:
    runs = [[{"records_per_sec": 100_000.0 + n, "avg_latency_ms": 5.0}] for n in range(15)]
    points = [f"{size}-bytes/{run}" for size in (250, 500, 1000) for run in range(1, 6)]
    table, every = views("dcos-record-size", points, publishers=runs)
    assert len(every.rows) == 15
    at = {(row["record_bytes"], row["published"]): row for row in table.rows}
    assert len(at) == 6
    first = at[250, "9 August"]
    assert (first["runs"], first["records_per_sec"], first["records_per_sec_min"]) == (5, 100_002.0, 100_000.0)
    assert first["records_per_sec_published"] == pytest.approx(256_172.38, abs=0.01)
    # The document prints the MB/s of these two as their latency.
    assert at[500, "13 August"]["avg_latency_ms_published"] == pytest.approx(503.06, abs=0.01)
    assert at[1000, "13 August"]["avg_latency_ms_published"] == pytest.approx(744.74, abs=0.01)


def test_the_gain_over_the_baseline_is_beside_the_published_one() -> None:
    runs = [[{"records_per_sec": rate}] for rate in (100.0, 150.0, 140.0)]
    table, _ = views("dcos-tuning", ["baseline/1", "lower/1", "upper/1"], publishers=runs)
    gains = {(row["setting"], row["published"]): (row["gain_pct"], row["gain_pct_published"]) for row in table.rows}
    assert gains["lower", "13 August"] == pytest.approx((50.0, 60.87), abs=0.01)
    assert gains["upper", "9 August"] == pytest.approx((40.0, 35.22), abs=0.01)


def test_a_consumer_is_beside_its_document() -> None:
    consumer = {"records_per_sec": 543_557.03725, "rebalance_ms": 0.0, "messages": 15_000_000}
    (view,) = views("dcos-consumer", ["fetch-min-bytes-1"], subscribers=[[consumer]])
    assert [row["records_per_sec_ratio"] for row in view.rows] == [pytest.approx(0.5), pytest.approx(1.2377, abs=1e-4)]


@pytest.mark.parametrize(("hosts", "unique"), [(4, [False] * 3), (15, [True, True, False]), (25, [True] * 3)])
def test_producers_have_a_host_each_where_there_are_so_many(hosts: int, unique: list[bool]) -> None:
    parts = the_parts(BY_NAME["dcos-producers"], ExperimentOptions(0.001, hosts=hosts))
    assert [part.scenario["server"]["count"] for part in parts] == [3, 6, 9]
    assert ["publisher" in part.scenario for part in parts] == unique


def test_totals_add_rates_up_and_say_where_producers_were() -> None:
    part = the_parts(BY_NAME["dcos-producers"], ExperimentOptions(0.001))[1]
    producers = [{"records_per_sec": 100.0, "avg_latency_ms": float(n), "agent": f"agent-{n % 2}"} for n in range(3)]
    table, every = views("dcos-producers", ["3-producers-10-partitions"], part, publishers=[producers])
    (row,) = table.rows
    assert (row["records_per_sec"], row["avg_latency_ms"], row["published"]) == (300.0, 1.0, "13 August")
    assert row["records_per_sec_published"] == pytest.approx(2_191_825.22, abs=0.01)
    assert len(every.rows) == 3
    assert any("agent-0 2, agent-1 1" in note for note in table.notes)


def test_what_is_published_of_setups_is_found() -> None:
    """Every tuned line of both documents stands beside a setup, but for those on 15 brokers."""
    others = sum(len(lines) for setup in dcos.SETUPS for lines in dcos._published_of(setup).values())
    tuned = [row for row in published(dcos.PRODUCERS) if row["batch_size_bytes"] == 100_000 and row["brokers"] != 15]
    assert others == len(tuned)


def settings_with(preset: str, **more: object) -> Scenario:
    return load_scenario("kafka-fixed", {"preset": preset, **more})


@pytest.mark.parametrize(
    ("more", "acks", "replicas"),
    [({}, "all", 3), ({"settings.acks": "1"}, "1", 3), ({"kafka.replication_factor": 2}, "all", 2)],
)
def test_a_preset_goes_before_the_file_and_behind_other_flags(
    more: dict[str, object], acks: str, replicas: int
) -> None:
    scenario = settings_with("durability", **more)
    assert (value_of(scenario.settings, "acks"), scenario.tables["kafka"].replication_factor) == (acks, replicas)
    assert scenario.tables["kafka"].topic["min.insync.replicas"] == "2"
    assert (scenario.preset, scenario.server.count) == ("durability", 3)


def written(**keys: Any) -> Scenario:
    file: dict[str, Any] = {"system": "kafka", "client": "native", "table": "fixed"}
    file |= {"sweep": {"clients": [1], "duration_s": 1.0}, **keys}
    given = file.pop("given", {})
    return resolved_from("mine", "mine", file, given).scenario


def test_a_file_goes_before_the_preset_that_it_names() -> None:
    own = {"kafka": {"topic": {"min.insync.replicas": "3"}}, "settings": {"retries": 7}}
    scenario = written(preset="durability", **own)
    assert scenario.tables["kafka"].topic["min.insync.replicas"] == "3"
    assert [value_of(scenario.settings, name) for name in ("retries", "acks")] == [7, "all"]
    # A preset that is given takes its place, and goes before what the file sets itself.
    scenario = written(preset="durability", settings={"linger_ms": 5.0}, given={"preset": "throughput"})
    assert [value_of(scenario.settings, name) for name in ("linger_ms", "acks")] == [10.0, "1"]
    assert scenario.preset == "throughput"


@pytest.mark.parametrize("preset", ["throughput", "latency", "durability", "availability"])
@pytest.mark.parametrize("bootstrap", ["", "mine:9092"])
def test_every_preset_is_usable_with_any_cluster(preset: str, bootstrap: str) -> None:
    assert settings_with(preset, **{"kafka.bootstrap": bootstrap}).preset == preset


def test_what_a_preset_adds_to_an_empty_table_is_not_the_users(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    tables = "[sweep]\nclients = [1]\nduration_s = 1.0\n[server]\n[kafka]\nbootstrap = 'mine:9092'\n"
    file.write_text(f"system = 'kafka'\nclient = 'native'\npreset = 'availability'\ntable = 'fixed'\n{tables}")
    assert load_scenario(str(file)).preset == "availability"


def test_a_whole_number_that_a_sweep_varies_is_like_the_one_that_was_stored() -> None:
    settings = load_scenario("kafka-batch").settings
    changed = with_values(settings, {"rate": 100, "linger_ms": 5, "msg_batch": 10})
    values = [value_of(changed, name) for name in ("rate", "linger_ms", "msg_batch")]
    assert list(map(repr, values)) == ["100.0", "5.0", "10"]


def test_settings_of_the_users_brokers_are_theirs() -> None:
    more = {"kafka.bootstrap": "mine:9092", "kafka.broker.num.io.threads": 4}
    with pytest.raises(ConfigError, match="Hydra changes no settings of your brokers"):
        settings_with("durability", **more)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("durabilty", "has no preset 'durabilty'; did you mean durability"),
        (3, "has no preset 3"),
        ("x", "presets of this system: "),
    ],
)
def test_an_unknown_preset_is_one_line(preset: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        written(preset=preset)


def test_a_system_without_presets_says_so() -> None:
    with pytest.raises(ConfigError, match="system zmq has no preset 'latency'; this system has no presets"):
        load_scenario("zmqfixed", {"preset": "latency"})


def test_a_row_that_ran_out_of_time_says_how_far_it_came() -> None:
    row = {"messages": 1000, "publishers": 3, "total_tx": 2999}
    rows = {"short": row, "whole": {**row, "total_tx": 3000}, "free": {"total_tx": 5}}
    messages = ["short: 2,999 of 3,000 records were acknowledged within its time"]
    assert not_measured([done(ANY, rows)]) == messages


def alone(module: ModuleType, **options: Any) -> tuple[Experiment, ExperimentOptions, ExperimentPart]:
    """A module's only experiment, as it is asked for, and its first part."""
    (experiment,) = module.EXPERIMENTS
    order = ExperimentOptions(experiment.scale, options)
    return experiment, order, part_of(experiment, order)


# --- design goals ----------------------------------------------------------------------------------------------------


def test_every_design_goal_is_a_run_with_its_preset_and_a_broker_that_is_killed() -> None:
    (experiment,) = design_goals.EXPERIMENTS
    assert experiment.parts is not None
    parts = experiment.parts(ExperimentOptions(experiment.scale))
    assert [part.scenario["preset"] for part in parts] == list(PRESETS)
    for part in parts:
        killed = [point for point in part.scenario["sweep"]["points"] if "kill_broker_at" in point]
        assert len(killed) == 1
        assert resolved_from(part.name, part.name, part.scenario).scenario.server.count == 3


def test_what_was_acknowledged_and_lost_stands_in_the_goals_row() -> None:
    experiment, order, part = alone(design_goals)
    killed = {"sent": 30_000, "total_tx": 29_990, "lost": 3, "duplicates": 2, "latency_p999_us": 9_000_000}
    measured = done(part, {"paced": {"ack_p50_us": 1500}, "broker-killed": killed})
    row = experiment.views(order, [measured])[0].rows[0]
    assert row["ack_p50_ms"] == 1.5
    assert (row["killed_acknowledged"], row["killed_refused"], row["killed_lost"]) == (29_990, 10, 3)
    assert row["killed_p999_ms"] == 9000


# --- partitions against compression ----------------------------------------------------------------------------------


def test_brokers_stand_beside_what_was_published_for_snappy_only() -> None:
    experiment, order, part = alone(compression, producers=4)
    broker = {"cpu_seconds_per_s": 0.5, "in_bytes_per_s": 3e6, "replication_in_bytes_per_s": 1e6, "messages_per_s": 9.0}
    reported = {"publishers": [{"records_per_sec": 20.0}] * 4, "servers": {"1": broker, "2": broker, "3": broker}}
    warm_up, *points = part.scenario["sweep"]["points"]
    assert (warm_up["name"], warm_up["publishers"]) == (WARM_UP, 1)
    assert {point["publishers"] for point in points} == {4}
    both = {name: {"compression_ratio": 2.0} for name in (WARM_UP, "snappy/6", "zstd/6")}
    table, each = experiment.views(order, [done(part, both, dict.fromkeys(both, reported))])
    snappy, zstd = table.rows
    assert (snappy["avg_cpu_pct"], snappy["network_kbytes_per_sec"], snappy["records_per_sec"]) == (50, 4000, 80)
    assert snappy["network_kbytes_per_sec_ratio"] == pytest.approx(4000 / 79_000)
    assert zstd["network_kbytes_per_sec_published"] is None
    assert [row["broker"] for row in each.rows] == ["1", "2", "3"] * 2


# --- network ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "brokers", "replication", "consumers", "flow"),
    [
        (300, 3, 2, 0, (200, 100)),  # the document's first example, MB/s
        (3000, 300, 2, 0, (20, 10)),
        (3000, 300, 6, 0, (60, 50)),
        (300, 3, 2, 1, (200, 200)),
        (300, 3, 5, 0, (300, 200)),  # no more replicas than brokers
        (300, 3, 1, 0, (100, 0)),
    ],
)
def test_the_algebra_is_the_documents(
    rate: float, brokers: int, replication: int, consumers: int, flow: tuple[float, float]
) -> None:
    assert network.algebra(rate, brokers, replication, consumers) == flow


def test_a_brokers_bytes_stand_beside_the_algebra_with_their_deviation() -> None:
    experiment, order, part = alone(network)
    seconds = part.scenario["sweep"]["points"][0]["duration_s"]
    # 3 MB/s of payload over three brokers with two replicas: 2 MB/s in, 1 MB/s out.
    counted = {"in_bytes_per_s": 1.05e6, "replication_in_bytes_per_s": 1.05e6, "replication_out_bytes_per_s": 1e6}
    row = {"sent": int(3000 * seconds), "records_per_batch": 100.0}
    reported = {"servers": dict.fromkeys(("1", "2", "3"), counted)}
    table, each = experiment.views(order, [done(part, {"p3-r2-c0": row}, {"p3-r2-c0": reported})])
    (found,) = table.rows
    assert found["in_deviation_pct"] == pytest.approx(5)
    assert found["out_deviation_pct"] == pytest.approx(0)
    assert found["record_overhead_pct"] == pytest.approx(0.9, abs=0.1)  # 8 or 9 of 1000, and 61 in a hundredth of it
    assert len(each.rows) == 3
    assert "interface_in_mb_s" not in {column.name for column in table.columns}


@pytest.mark.parametrize(("rate", "noted"), [(2990.0, False), (2000.0, True)])
def test_rows_whose_traffic_went_on_behind_the_window_are_named(rate: float, noted: bool) -> None:
    experiment, order, part = alone(network)
    row = {"sent": 9000, "avg_tx_rate_pps": rate}
    view = experiment.views(order, [done(part, {"p3-r2-c0": row})])[0]
    assert any("p3-r2-c0 (2000/s)" in note for note in view.notes) is noted


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
def test_a_rates_interval_becomes_that_of_the_partitions(
    mean: float, half: float | None, target: float, needed: tuple[float, float, float]
) -> None:
    assert partition_formula.MeanRate(mean, half).needed(target) == pytest.approx(needed, rel=0.01)


@pytest.mark.parametrize(("most", "run"), [(None, 4), (3, 3)])
def test_the_planned_partitions_are_run_or_as_many_as_fit(most: int | None, run: int) -> None:
    (experiment,) = partition_formula.EXPERIMENTS
    order = ExperimentOptions(0.01, {"target_rate": 1000.0, **({"most_partitions": most} if most else {})})
    first = part_of(experiment, order)
    names = [point["name"] for point in first.scenario["sweep"]["points"]]
    reported = {
        name: {"publishers": [{"records_per_sec": 300.0}], "subscribers": [{"records_per_sec": 500.0}]}
        for name in names
    }
    measured = [done(first, {name: {} for name in names}, reported)]
    second = part_of(experiment, order, measured)
    assert {point["partitions"] for point in second.scenario["sweep"]["points"]} == {run}
    resolved_from(second.name, second.name, second.scenario)
    reached = {"producers": {"publishers": [{"records_per_sec": 150.0}] * run}}
    measured.append(done(second, {"producers": {}}, reached))
    assert experiment.next_part(order, measured) is None
    formula, needs, others = experiment.views(order, measured)
    assert formula.rows[-1]["partitions"] == pytest.approx(1000 / 300)
    assert needs.rows[0]["in_mb_s"] == pytest.approx(1000 * 250 / 3 / 2**20)
    assert (others.rows[0]["predicted"], others.rows[0]["share"]) == (run * 300, 0.5)
