"""Brokers as groups on the embedded cluster: several on this machine, and what becomes of a run when one dies."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from hydra.errors import MissingDependencyError
from hydra.events.clients import Launched
from hydra.events.runs import ServerKilled, ServersUp
from hydra.events.steps import WindowOpened
from hydra.kafkatest.jars import fetch, find_java
from tests.integration.command import (
    LIFELINE_S,
    Background,
    assert_all_arrived,
    background,
    events,
    gone,
    hydra,
    steps,
    table,
    wait_until,
)

pytestmark = pytest.mark.processes

TWO = ("--client", "confluent-kafka", "--set", "broker.count=2", "--replication-factor", 2, "--partitions", 2)
FIXED = ("kafka-fixed", *TWO, "--rate", 200, "--set", "warmup_s=0", "--set", "settings.acks=all")


@pytest.fixture(scope="module", autouse=True)
def kafka() -> None:
    try:
        find_java()
        fetch()
    except MissingDependencyError as e:
        pytest.skip(str(e))


def javas(command: Background) -> list[psutil.Process]:
    return [process for process in command.family() if "java" in process.name()]


def nothing_is_left_of(run: Path) -> bool:
    return not list(run.glob("sandbox/servers-*/server/")) and not list(run.glob("server*/"))


def test_two_brokers_on_this_machine_carry_a_replicated_topic(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(*FIXED, "--clients", 3, "--duration", 2, "--set", "sweep.vary.partitions=[2,4]", "--out", run)
    rows = table(run)
    assert [row["partitions"] for row in rows] == ["2", "4"]
    for row in rows:
        assert row["failed_clients"] == "0"
        assert_all_arrived(row, 400)
    placed = [text for text in events(run, Launched) if text.startswith("servers")]
    assert len({e.rpartition("on ")[2] for e in placed}) == 2
    assert [text.split()[:2] for text in events(run, ServersUp)] == [["2", "at"]]
    assert nothing_is_left_of(run)


def test_a_killed_broker_fails_its_step_and_fresh_ones_carry_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2,3", "--duration", 3, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: events(run, WindowOpened), 60, "the first step")
        first = javas(command)
        assert len(first) == 2
        first[0].kill()
        assert command.wait(90) == 0, command.output()
    carried, _ = table(run)
    assert [how for _, how in steps(run)] == ["failed", "ok", "ok"]
    assert "the server on" in carried["reason"]
    assert "the Kafka broker ended with -9" in carried["reason"]
    assert (carried["status"], carried["failed_clients"], float(carried["client_loss_pct"])) == ("ok", "0", 0)
    assert sum(text.startswith("servers") for text in events(run, Launched)) == 4
    assert gone(first)
    assert nothing_is_left_of(run)


def test_a_broker_that_the_scenario_kills_fails_nothing_and_loses_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    three = ("--set", "server.count=3", "--partitions", 3, "--replication-factor", 3)
    kill = ("--set", "settings.kill_broker_at=0.2", "--set", 'kafka.topic={"min.insync.replicas"=2}')
    window = ("--clients", 2, "--duration", 15, "--set", "warmup_s=1")
    with background(*FIXED, *three, *kill, *window, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: events(run, ServerKilled), 60, "the kill")
        wait_until(lambda: len(javas(command)) == 2, 5, "the end of one broker")
        assert command.wait(50) == 0, command.output()
    (row,) = table(run)
    assert [how for _, how in steps(run)] == ["ok"]
    # The warm-up kills nobody.
    (killed,) = events(run, ServerKilled)
    assert 3 <= float(killed.rpartition("SIGKILL ")[2].split()[0]) < 6
    assert (row["status"], row["failed_clients"]) == ("ok", "0")
    assert_all_arrived(row, 3000)
    assert nothing_is_left_of(run)


def test_a_killed_controller_takes_deployed_brokers_along(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2,3,4", "--duration", 2, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: len(steps(run)) >= 1, 60, "the first row")
        family = command.family()
        assert len([p for p in family if "java" in p.name()]) == 2
        command.process.kill()
        wait_until(lambda: gone(family), LIFELINE_S, "the end of clients and brokers")
        wait_until(lambda: nothing_is_left_of(run), LIFELINE_S, "the brokers' data to go")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("kafka-fixed", "--set", "broker.count=9", "--set", "broker.demand.base_mem=40000"), "9 servers"),
        (
            ("kafka-fixed", "--set", 'broker.constraints=[["group", "CLUSTER", "huge"]]', "--set", "broker.count=2"),
            "huge",
        ),
        (("kafka-fixed", "--replication-factor", 2), "server.count is 1"),
        (("zmqfixed", "--set", "broker.count=2"), "broker: unknown key; it is of system kafka, not of zmq"),
        (("kafka-fixed", "--set", "broker.count=0"), "count must be at least 1, not 0"),
    ],
)
def test_brokers_that_cannot_be_are_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = hydra(*arguments, "--clients", 2, "--out", tmp_path / "run", expect=2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run" / "run.db").exists()
