"""Whole runs of MQTT: embedded, on the user's server, and what becomes of one whose server dies."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from hydra.events.steps import WindowOpened
from hydra.mqtttest.broker import forget
from tests.integration.command import assert_all_arrived, background, events, hydra, steps, table, wait_until

pytestmark = pytest.mark.processes

FIXED = ("mqtt-fixed", "--rate", 200, "--set", "warmup_s=0")


def assert_carried(rows: list[dict[str, str]]) -> None:
    """Nothing was lost: each of two subscribers got all of it, then the two members of a group got it together."""
    assert [(row["shared"], row["group"]) for row in rows] == [("False", ""), ("True", "all")]
    for row, shares in zip(rows, (1, 2), strict=True):
        assert (row["failed_clients"], row["duplicates"], row["lost_connections"]) == ("0", "0", "0")
        assert_all_arrived({**row, "total_rx": shares * float(row["total_rx"])}, 200)


SHARED = ("--clients", 2, "--duration", 1, "--set", "sweep.vary={shared=[false,true]}")


def test_every_subscriber_gets_all_and_every_group_gets_all(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(*FIXED, *SHARED, "--client", "paho-mqtt", "--qos", 2, "--out", run)
    assert_carried(table(run))
    assert not list(run.glob("server-*"))


@pytest.mark.usefixtures("native")
def test_nothing_is_left_on_the_users_server(tmp_path: Path, server: str) -> None:
    run = tmp_path / "run"
    hydra(
        *FIXED,
        *SHARED,
        "--client",
        "native",
        "--protocol",
        "5",
        "--qos",
        1,
        "--retain",
        "--broker",
        server,
        "--out",
        run,
    )
    assert_carried(table(run))
    assert forget(server, "hydra") == 0


def test_a_killed_server_fails_its_step_and_a_fresh_one_carries_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2", "--duration", 2, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: events(run, WindowOpened), 60, "the first step")
        servers: list[psutil.Process] = [p for p in command.family() if p.name() == "mosquitto"]
        assert len(servers) == 1
        servers[0].kill()
        assert command.wait(90) == 0
    assert [how for _, how in steps(run)] == ["failed", "ok"]
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert float(row["client_loss_pct"]) == 0
    assert not list(run.glob("server-*"))
