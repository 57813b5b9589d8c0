"""Whole runs of NATS: embedded, on agents, on the user's server, and what becomes of one whose server dies."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hydra.events.steps import WindowOpened
from hydra.native.build import find
from hydra.natstest.streams import Streams
from hydra.servers.embedded import EmbeddedServer
from tests.integration.command import assert_all_arrived, background, events, gone, hydra, steps, table
from tests.suite.waiting import LONG_S, wait_until

pytestmark = [pytest.mark.tier("test"), pytest.mark.usefixtures("needs_nats")]

FIXED = ("nats-fixed", "--rate", 200, "--set", "warmup_s=0")
STREAM = (*FIXED, "--mode", "jetstream")


def test_modes_are_varied_on_the_users_server_and_nothing_is_left_there(tmp_path: Path, server: EmbeddedServer) -> None:
    run = tmp_path / "run"
    client = "nats-py" if find() is None else "native"
    hydra(
        *(*FIXED, "--implementation", client, "--servers", server.address, "--clients", 2, "--duration", 0.3),
        *("--consumer", "pull", "--set", 'sweep.vary={mode=["core","jetstream"]}', "--out", run),
    )
    rows = table(run)
    assert [row["mode"] for row in rows] == ["core", "jetstream"]
    for row in rows:
        assert (row["failed_clients"], row["slow_consumers"]) == ("0", "0")
        assert_all_arrived(row, 60)
    with closing(Streams([server.address])) as streams:
        assert not [name for name in streams.names() if name.startswith("hydra-run-")]
    assert not list(run.glob("nats-*"))


def test_a_killed_server_fails_its_step_and_a_fresh_one_carries_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*STREAM, "--clients", "2", "--duration", 1, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: events(run, WindowOpened), "the first step", LONG_S)
        (server,) = (process for process in command.family() if process.name() == "nats-server")
        server.kill()
        assert command.wait() == 0, command.output()
    (row,) = table(run)
    assert [how for _, how in steps(run)] == ["failed", "ok"]
    assert "NATS server ended" in row["reason"]
    assert (row["status"], row["failed_clients"], float(row["client_loss_pct"])) == ("ok", "0", 0)
    assert gone([server])
    assert not list(run.glob("nats-*"))
