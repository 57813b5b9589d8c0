"""A sweep that lists its points, on two real brokers: who takes part in a step, and what the brokers tell of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.jupyter import report
from hydra.kafkatest.jars import fetch, find_java
from hydra.results.store import RunStore
from tests.integration.command import hydra, table

pytestmark = pytest.mark.processes

SCENARIO = """
system = "kafka"
client = "confluent-kafka"
table = "fixed"
warmup_s = 0
[settings]
rate = 200
acks = "all"
[kafka]
replication_factor = 2
[broker]
count = 2
[sweep]
duration_s = 1.0
[[sweep.points]]
name = "two without readers"
publishers = 2
message_size = 1000
[[sweep.points]]
name = "one with a reader"
publishers = 1
clients = 1
"""


def test_each_point_has_its_own_clients_and_every_message_is_in_the_log(tmp_path: Path) -> None:
    try:
        find_java()
        fetch()
    except MissingDependencyError as e:
        pytest.skip(str(e))
    file, run = tmp_path / "points.toml", tmp_path / "run"
    file.write_text(SCENARIO)
    hydra("run", file, "--out", run)
    rows = table(run)
    assert [(r["point"], r["clients"], r["publishers"], r["message_size"], r["status"]) for r in rows] == [
        ("two without readers", "0", "2", "1000", "ok"),
        ("one with a reader", "1", "1", "24", "ok"),
    ]
    assert [r["account"] for r in rows] == ["exact", "exact"]
    assert [r["log_growth"] for r in rows] == [r["total_tx"] for r in rows]
    assert float(rows[1]["total_rx"]) == float(rows[1]["total_tx"])
    with RunStore.open(run) as store:
        epochs = [result.epoch for result in store.results()]
        took_part = [[(c["client"], c["role"]) for c in store.clients(epoch)] for epoch in epochs]
        told = [store.servers(epoch) for epoch in epochs]
    # Subscribers have the ids behind those of the greatest number of publishers.
    assert took_part == [[(0, "publisher"), (1, "publisher")], [(0, "publisher"), (2, "subscriber")]]
    for servers in told:
        assert servers.keys() == {"broker 1", "broker 2"}
        # The one that leads takes it from the publishers, the other one from it.
        assert sum(s["messages_per_s"] for s in servers.values()) > 0
        assert sum(s["in_bytes_per_s"] for s in servers.values()) > 0
        assert sum(s["replication_in_bytes_per_s"] for s in servers.values()) > 0
    assert all(float(r["server_in_mb_s"]) > 0 and float(r["server_cpu_pct"]) > 0 for r in rows)
    page = str(report.table(report.load(run)))
    assert "Each server in each step" in page
    assert page.count("<td>broker 2</td>") == 2
