"""Design goals, compression, network and the partition formula: their tables from made-up rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hydra.config.scenario import scenario_from
from hydra.kafkatest.experiments import compression, goals, network, plan
from hydra.kafkatest.experiments.common import WARM_UP
from hydra.kafkatest.presets import PRESETS
from hydra.model import Figure
from hydra.system import Done, Experiment, Order, Part

Rows = Mapping[str, Mapping[str, Figure]]


def done(part: Part, rows: Rows, clients: Mapping[str, Mapping[str, Any]] | None = None) -> Done:
    """A part whose rows are these, by their points; ``clients`` has what was told of each row's clients and servers."""
    told = [{"point": point, "status": "ok", "account": "exact", **row} for point, row in rows.items()]
    of = [(clients or {}).get(point, {}) for point in rows]
    return Done(
        part,
        scenario_from(part.name, part.name, part.scenario),
        told,
        publishers=[each.get("publishers", ()) for each in of],
        subscribers=[each.get("subscribers", ()) for each in of],
        servers=[each.get("servers", {}) for each in of],
    )


def part_of(experiment: Experiment, order: Order, before: Sequence[Done] = ()) -> Part:
    found = experiment.next_part(order, before)
    assert found is not None
    return found


# --- design goals ----------------------------------------------------------------------------------------------------


def test_every_design_goal_is_a_run_with_its_preset_and_a_broker_that_is_killed() -> None:
    (experiment,) = goals.EXPERIMENTS
    assert experiment.parts is not None
    parts = experiment.parts(Order(experiment.scale))
    assert [part.scenario["preset"] for part in parts] == list(PRESETS)
    for part in parts:
        killed = [point for point in part.scenario["sweep"]["points"] if "kill_broker_at" in point]
        assert len(killed) == 1
        assert scenario_from(part.name, part.name, part.scenario).server.count == 3


def test_what_was_acknowledged_and_lost_stands_in_the_goals_row() -> None:
    (experiment,) = goals.EXPERIMENTS
    order = Order(experiment.scale)
    killed = {"sent": 30_000, "total_tx": 29_990, "lost": 3, "duplicates": 2, "latency_p999_us": 9_000_000}
    measured = done(part_of(experiment, order), {"paced": {"ack_p50_us": 1500}, "broker-killed": killed})
    row = experiment.views(order, [measured])[0].rows[0]
    assert row["ack_p50_ms"] == 1.5
    assert (row["killed_acknowledged"], row["killed_refused"], row["killed_lost"]) == (29_990, 10, 3)
    assert row["killed_p999_ms"] == 9000


# --- partitions against compression ----------------------------------------------------------------------------------


def test_brokers_stand_beside_what_was_published_for_snappy_only() -> None:
    (experiment,) = compression.EXPERIMENTS
    order = Order(experiment.scale, {"producers": 4})
    broker = {"cpu_seconds_per_s": 0.5, "in_bytes_per_s": 3e6, "replication_in_bytes_per_s": 1e6, "messages_per_s": 9.0}
    told = {"publishers": [{"records_per_sec": 20.0}] * 4, "servers": {"1": broker, "2": broker, "3": broker}}
    part = part_of(experiment, order)
    warm_up, *points = part.scenario["sweep"]["points"]
    assert (warm_up["name"], warm_up["publishers"]) == (WARM_UP, 1)
    assert {point["publishers"] for point in points} == {4}
    both = {name: {"compression_ratio": 2.0} for name in (WARM_UP, "snappy/6", "zstd/6")}
    table, each = experiment.views(order, [done(part, both, dict.fromkeys(both, told))])
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
    (experiment,) = network.EXPERIMENTS
    order = Order(experiment.scale)
    part = part_of(experiment, order)
    seconds = part.scenario["sweep"]["points"][0]["duration_s"]
    # 3 MB/s of payload over three brokers with two replicas: 2 MB/s in, 1 MB/s out.
    counted = {"in_bytes_per_s": 1.05e6, "replication_in_bytes_per_s": 1.05e6, "replication_out_bytes_per_s": 1e6}
    row = {"sent": int(3000 * seconds), "records_per_batch": 100.0}
    told = {"servers": dict.fromkeys(("1", "2", "3"), counted)}
    table, each = experiment.views(order, [done(part, {"p3-r2-c0": row}, {"p3-r2-c0": told})])
    (found,) = table.rows
    assert found["in_deviation_pct"] == pytest.approx(5)
    assert found["out_deviation_pct"] == pytest.approx(0)
    assert found["record_overhead_pct"] == pytest.approx(0.9, abs=0.1)  # 8 or 9 of 1000, and 61 in a hundredth of it
    assert len(each.rows) == 3
    assert "interface_in_mb_s" not in {column.name for column in table.columns}


@pytest.mark.parametrize(("rate", "noted"), [(2990.0, False), (2000.0, True)])
def test_rows_whose_traffic_went_on_behind_the_window_are_named(rate: float, noted: bool) -> None:
    (experiment,) = network.EXPERIMENTS
    order = Order(experiment.scale)
    row = {"sent": 9000, "avg_tx_rate_pps": rate}
    view = experiment.views(order, [done(part_of(experiment, order), {"p3-r2-c0": row})])[0]
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
    assert plan.Estimate(mean, half).needed(target) == pytest.approx(needed, rel=0.01)


@pytest.mark.parametrize(("most", "run"), [(None, 4), (3, 3)])
def test_the_planned_partitions_are_run_or_as_many_as_fit(most: int | None, run: int) -> None:
    (experiment,) = plan.EXPERIMENTS
    order = Order(0.01, {"target_rate": 1000.0, **({"most_partitions": most} if most else {})})
    first = part_of(experiment, order)
    names = [point["name"] for point in first.scenario["sweep"]["points"]]
    told = {
        name: {"publishers": [{"records_per_sec": 300.0}], "subscribers": [{"records_per_sec": 500.0}]}
        for name in names
    }
    measured = [done(first, {name: {} for name in names}, told)]
    second = part_of(experiment, order, measured)
    assert {point["partitions"] for point in second.scenario["sweep"]["points"]} == {run}
    scenario_from(second.name, second.name, second.scenario)
    reached = {"producers": {"publishers": [{"records_per_sec": 150.0}] * run}}
    measured.append(done(second, {"producers": {}}, reached))
    assert experiment.next_part(order, measured) is None
    formula, needs, beside = experiment.views(order, measured)
    assert formula.rows[-1]["partitions"] == pytest.approx(1000 / 300)
    assert needs.rows[0]["in_mb_s"] == pytest.approx(1000 * 250 / 3 / 2**20)
    assert (beside.rows[0]["predicted"], beside.rows[0]["share"]) == (run * 300, 0.5)
