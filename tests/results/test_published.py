"""Measured rows beside the published ones: every row is kept, and ratios are of the same experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.model import Scenario, Settings, SweepSpec, TableKind, with_values
from hydra.report.published_tables import PublishedTable, compare, differences, parse, published_for, published_scenario
from hydra.store.stored_scenario import published_columns
from hydra.sweep import Row
from hydra.sweep.grid import GridSweep
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec
from hydra.system import Reference

TABLE = parse(
    Reference("some.csv", "kafka-batch", ("clients", "msg_batch")),
    "clients,msg_batch,avg_tx_rate_pps,client_loss_pct,note\n60,100,5000.5,0,\n30,200,6000,1.5,slow\n30,100,4000,0,\n",
)


def scenario(table: TableKind, system: str = "kafka", client: str = "kafka-python") -> Scenario:
    sweep: SweepSpec = GridSweep(10.0, clients=(30,), vary={"msg_batch": (100, 200)} if table == "batch" else {})
    if table in ("rates", "rate"):
        sweep = SearchSweep(10.0, clients=(30,), search=SearchSpec())
    return Scenario("mine", system, client, table, sweep, Settings(rate=1000.0))


def published_table(own: Scenario) -> PublishedTable:
    found = published_for(ResolvedScenario.of(own))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("own", "file"),
    [
        (scenario("batch"), "hydra_kafka_batch.csv"),
        (scenario("fixed"), "hydra_kafka_fixed_rate.csv"),
        (scenario("fixed", "zmq", "pyzmq"), "hydra_kafka_fixed_rate.csv"),
        (scenario("rates", "zmq", "pyzmq"), "hydra_zmq_python.csv"),
        (scenario("rates", "zmq", "native"), "hydra_zmq_cpp.csv"),
        (scenario("batch", "zmq", "pyzmq"), None),
        (scenario("rate"), None),
    ],
)
def test_each_experiment_has_the_published_table_that_it_repeats(own: Scenario, file: str | None) -> None:
    published = published_for(ResolvedScenario.of(own))
    assert (published.reference.file if published else None) == file


@pytest.mark.parametrize("table", ["batch", "fixed", "rates"])
def test_the_published_columns_are_those_of_the_run(table: TableKind) -> None:
    own = scenario(table, *(("zmq", "pyzmq") if table == "rates" else ("kafka", "kafka-python")))
    assert published_table(own).columns == tuple(column.name for column in published_columns(own))


def test_cells_are_numbers_text_or_nothing() -> None:
    assert TABLE.rows[0] == {
        "clients": 60, "msg_batch": 100, "avg_tx_rate_pps": 5000.5, "client_loss_pct": 0, "note": None,
    }  # fmt: skip
    assert TABLE.rows[1]["note"] == "slow"


def test_every_row_of_both_tables_stands_there_once_with_clients_ascending() -> None:
    rows: list[Row] = [
        {"clients": 60, "msg_batch": 100, "avg_tx_rate_pps": 2500.25, "client_loss_pct": 0.0},
        {"clients": 30, "msg_batch": 5, "avg_tx_rate_pps": 1.0, "client_loss_pct": 0.0},
    ]
    lines = compare(rows, TABLE)
    found = [(*line.key.values(), line.side) for line in lines]
    assert found == [(30, 5, "measured"), (30, 100, "published"), (30, 200, "published"), (60, 100, "both")]
    assert lines[-1].cells["avg_tx_rate_pps"].ratio == 0.5
    assert list(lines[-1].cells) == ["avg_tx_rate_pps", "client_loss_pct", "note"]


@pytest.mark.parametrize("value", [None, "text", True])
def test_what_is_no_number_and_a_published_zero_have_no_ratio(value: str | bool | None) -> None:
    (line, *_) = compare([{"clients": 30, "msg_batch": 100, "avg_tx_rate_pps": value, "client_loss_pct": 2.0}], TABLE)
    assert line.cells["avg_tx_rate_pps"].ratio is None
    assert (line.cells["client_loss_pct"].published, line.cells["client_loss_pct"].ratio) == (0, None)


def test_rows_that_differ_in_a_setting_lie_beside_the_same_published_row() -> None:
    its: Row = {"clients": 30, "total_tx": 10}
    published = PublishedTable(Reference("f.csv", "kafka-fixed"), tuple(its), (its,))
    rows: list[Row] = [{"clients": 30, "linger_ms": ms, "total_tx": 5} for ms in (0, 10)]
    found = [(line.key, line.side, line.cells["total_tx"].ratio) for line in compare(rows, published, ["linger_ms"])]
    assert found == [({"clients": 30, "linger_ms": ms}, "both", 0.5) for ms in (0, 10)]


def test_what_was_asked_for_otherwise_is_named() -> None:
    published = published_scenario(published_table(scenario("fixed")))
    others = published.scenario
    assert differences(others, published) == []
    settings = with_values(others.settings, {"rate": 1000.0, "acks": "all"})
    slower = "rate 1,000 instead of 10,000"
    assert differences(replace(others, client="confluent-kafka", settings=settings), published) == [
        "client confluent-kafka instead of kafka-python", slower, "acks all instead of 1",
    ]  # fmt: skip
    # Another system differs in what both systems have.
    assert differences(scenario("fixed", "zmq", "pyzmq"), published) == ["system zmq instead of kafka", slower]


def test_a_search_with_other_rules_differs() -> None:
    own = scenario("rates", "zmq", "native")
    published = resolve("zmqrate", {"published": True, "sweep.held.interval": True})
    others = published.scenario
    sweep = SearchSweep(others.sweep.duration_s, clients=(30,), search=SearchSpec(steps=30, width=2.0))
    own = replace(own, sweep=sweep, settings=others.settings)
    assert differences(own, published) == ["width 2 instead of 1.25", "steps 30 instead of 60"]
