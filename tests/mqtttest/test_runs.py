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


def test_settings_are_varied_within_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(
        *(*FIXED, "--clients", 2, "--duration", 1, "--out", run),
        *("--set", 'sweep.vary={qos=[0,1,2],protocol=["3.1.1","5"]}'),
    )
    rows = table(run)
    assert [(row["qos"], row["protocol"]) for row in rows] == [
        (str(qos), protocol) for qos in range(3) for protocol in ("3.1.1", "5")
    ]
    assert {(row["failed_clients"], float(row["client_loss_pct"])) for row in rows} == {("0", 0)}
    assert not list(run.glob("server-*"))


def test_nothing_is_left_on_the_users_server(tmp_path: Path, server: str) -> None:
    run = tmp_path / "run"
    hydra(*FIXED, "--broker", server, "--retain", "--qos", 1, "--clients", 2, "--duration", 1, "--out", run)
    (row,) = table(run)
    assert_all_arrived(row, 200)
    assert forget(server, "hydra") == 0


def test_a_killed_server_fails_its_step_and_a_fresh_one_carries_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2", "--duration", 3, "--out", run, log=tmp_path / "log") as command:
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
