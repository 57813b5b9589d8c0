"""mosquitto as a server's group: how it says that it cannot start, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hydra.control import curve
from hydra.control.controller import Controller
from hydra.mqtttest.cluster import SingleServer
from hydra.wire.messages import Join, Ping
from tests.integration.command import gone, wait_until
from tests.mqtttest.conftest import LIMITS

pytestmark = pytest.mark.processes

SERVER = 2**31
FLAGS = ("-m", "hydra.mqtttest.node", "mqtt-server", "--group", "servers-1", "--first-id", str(SERVER), "--count", "1")


def test_an_agent_with_a_mosquitto_that_is_too_old_says_so(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mosquitto").write_text("#!/bin/sh\necho 'mosquitto version 1.5.7'\n")
    (programs / "mosquitto").chmod(0o755)
    environment = {
        "HOME": str(tmp_path),
        "PATH": str(programs),
        **curve.environment(curve.generate(), "tcp://127.0.0.1:9"),
    }
    done = subprocess.run(
        [sys.executable, *FLAGS], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "mosquitto version 1.5.7; Hydra needs 2.0 or newer" in line


@pytest.mark.parametrize(("end", "status"), [("SIGTERM", 0), ("SIGKILL", -9), ("quit", 0)])
def test_however_a_remote_server_ends_nothing_is_left(tmp_path: Path, end: str, status: int) -> None:
    controller, cluster = Controller("run"), SingleServer(LIMITS)
    roster = controller.roster
    roster.expect("servers-1", [SERVER])
    # No lifeline: it is on another machine.
    process = psutil.Popen([sys.executable, *FLAGS], cwd=tmp_path, env={**os.environ, **controller.environment})
    try:
        assert controller.wait_until(lambda: SERVER in roster.answers.endpoints, 60)
        endpoint = roster.answers.endpoints[SERVER]
        assert set(roster.hello(SERVER).versions) == {"mosquitto"}
        (join,) = cluster.join([endpoint])
        controller.tell([SERVER], Join(system=join))

        def up() -> bool:
            controller.broadcast(Ping(time_ns=0))
            return cluster.up(cluster.address([endpoint]))

        assert controller.wait_until(up, 30)
        family = process.children(recursive=True)
        assert any(p.name() == "mosquitto" for p in family)
        if end == "quit":
            controller.quit([SERVER])
        else:
            process.send_signal(signal.Signals[end])
        assert process.wait(10) == status
        wait_until(lambda: gone(family), 5, "the end of supervisor and mosquitto")
        assert not (tmp_path / "server").exists()
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        controller.close()
