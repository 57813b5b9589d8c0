"""Brokers that a run starts, one or several: what they carry, and the run's end when one dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.events.group_events import ClientsConnected, Launched
from hydra.events.run_events import ServerKilled, ServersUp, WindowOpened
from hydra.jupyter import report
from hydra.store.database import RunStore
from tests.integration.brokers import COMMON, FIXED, nothing_is_left_of
from tests.integration.command import all_ended, assert_all_arrived, background, events, measured, refusal, steps, table
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")
kafka = pytest.mark.usefixtures("needs_kafka")


@kafka
def test_two_brokers_on_this_machine_carry_a_replicated_topic(run: Path) -> None:
    rows = measured(run, *FIXED, "--clients", 3, "--duration", 1, "--set", "sweep.vary.partitions=[2,4]")
    assert [row["partitions"] for row in rows] == ["2", "4"]
    for row in rows:
        assert row["failed_clients"] == "0"
        assert_all_arrived(row, 200)
    placed = [text for text in events(run, Launched) if text.startswith("servers")]
    assert len({e.rpartition("on ")[2] for e in placed}) == 2
    assert [text.split()[:2] for text in events(run, ServersUp)] == [["2", "at"]]
    assert nothing_is_left_of(run)


@kafka
@pytest.mark.parametrize(
    ("arguments", "brokers", "reasons"),
    [
        (("kafka-batch", *COMMON, "--clients", "2", "--msg-batch", "100,200"), 1, ["broker"]),
        ((*FIXED, "--partitions", 2, "--clients", "2,3"), 2, ["the server on", "the Kafka broker ended with -9"]),
    ],
    ids=["one", "two"],
)
def test_a_killed_broker_fails_its_step_and_fresh_ones_carry_the_row(
    run: Path, arguments: tuple[object, ...], brokers: int, reasons: list[str]
) -> None:
    with background(*arguments, "--duration", 3, "--out", run) as command:
        # Longer than the run itself waits for its brokers, so that its own reason is known.
        command.until(lambda: events(run, ClientsConnected), "the clients", 2 * LONG_S)
        first = command.named("java")
        assert len(first) == brokers
        command.until(lambda: events(run, WindowOpened), "the first step")
        first[0].kill()
        assert command.wait() == 0, command.output()
    rows = table(run)
    assert [how for _, how in steps(run)] == ["failed", "ok", "ok"]
    for reason in reasons:
        assert reason in rows[0]["reason"]
    assert {(row["status"], row["failed_clients"], float(row["client_loss_pct"])) for row in rows} == {("ok", "0", 0)}
    assert len(rows) == 2
    assert sum(text.startswith("servers") for text in events(run, Launched)) == (4 if brokers > 1 else 0)
    assert all_ended(first)
    assert nothing_is_left_of(run)


@kafka
def test_a_broker_that_the_scenario_kills_fails_nothing_and_loses_nothing(run: Path) -> None:
    three = ("--set", "server.count=3", "--partitions", 3, "--replication-factor", 3)
    kill = ("--set", "settings.kill_broker_at=0.2", "--set", 'kafka.topic={"min.insync.replicas"=2}')
    window = ("--clients", 2, "--duration", 15, "--set", "warmup_s=1")
    with background(*FIXED, "--partitions", 2, *three, *kill, *window, "--out", run) as command:
        command.until(lambda: events(run, ServerKilled), "the kill")
        wait_until(lambda: len(command.named("java")) == 2, "the end of one broker")
        assert command.wait() == 0, command.output()
    (row,) = table(run)
    assert [how for _, how in steps(run)] == ["ok"]
    # The warm-up kills no broker.
    (killed,) = events(run, ServerKilled)
    assert float(killed.rpartition("SIGKILL ")[2].split()[0]) >= 3
    assert (row["status"], row["failed_clients"]) == ("ok", "0")
    assert_all_arrived(row, 3000)
    assert nothing_is_left_of(run)


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (("server.count=9", "server.demand.base_mem=40000"), "9 servers"),
        (("server.count=2", 'server.constraints=[["group", "CLUSTER", "huge"]]'), "huge"),
    ],
)
def test_brokers_that_cannot_be_are_refused(run: Path, settings: tuple[str, str], text: str) -> None:
    replaced = [word for setting in settings for word in ("--set", setting)]
    assert text in refusal("kafka-fixed", *replaced, "--clients", 2, "--out", run)
    assert not (run / "run.db").exists()


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
[server]
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


@kafka
def test_each_point_has_its_own_clients_and_every_message_is_in_the_log(tmp_path: Path, run: Path) -> None:
    file = tmp_path / "points.toml"
    file.write_text(SCENARIO)
    rows = measured(run, "run", file)
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
        messages = [store.servers(epoch) for epoch in epochs]
    # Subscribers have the ids behind those of the greatest number of publishers.
    assert took_part == [[(0, "publisher"), (1, "publisher")], [(0, "publisher"), (2, "subscriber")]]
    for servers in messages:
        assert servers.keys() == {"broker 1", "broker 2"}
        # The one that leads takes it from the publishers, the other one from it.
        for figure in ("messages_per_s", "in_bytes_per_s", "replication_in_bytes_per_s"):
            assert sum(s[figure] for s in servers.values()) > 0, figure
    assert all(float(r["server_in_mb_s"]) > 0 and float(r["server_cpu_pct"]) > 0 for r in rows)
    page = str(report.table(report.load(run)))
    assert "Each server in each step" in page
    assert page.count("<td>broker 2</td>") == 2
