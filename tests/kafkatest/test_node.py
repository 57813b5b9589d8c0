"""Kafka as a server's group: how it says that it cannot start, and that nothing of it is left."""

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
from hydra.kafkatest.cluster import KafkaCluster
from hydra.wire.messages import Join, Ping

from .conftest import wait_until

pytestmark = pytest.mark.processes

BROKER = 2**31
FLAGS = (
    "-m",
    "hydra.kafkatest.node",
    "kafka-broker",
    "--group",
    "servers-1",
    "--first-id",
    str(BROKER),
    "--count",
    "1",
)


def node(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *FLAGS],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def dialling(endpoint: str) -> dict[str, str]:
    return curve.environment(curve.generate(), endpoint)


@pytest.mark.parametrize(("version", "said"), [("", "no java is on PATH"), ("11.0.2", "java is 11.0.2")])
def test_an_agent_without_a_java_that_is_new_enough_says_so(tmp_path: Path, version: str, said: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if version:
        (programs / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        (programs / "java").chmod(0o755)
    done = node(tmp_path, PATH=str(programs), **dialling("tcp://127.0.0.1:9"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "hydra group servers-1: a Kafka broker needs Java 17 or newer" in line
    assert said in line
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.usefixtures("needs_kafka")
@pytest.mark.parametrize(
    ("end", "status"),
    [("SIGTERM", 0), ("SIGKILL", -9), ("quit", 0), ("silence", 4)],
)
def test_however_a_remote_broker_ends_neither_java_nor_data_are_left(tmp_path: Path, end: str, status: int) -> None:
    controller = Controller("run", silence_s=2.0 if end == "silence" else 30.0)
    roster = controller.roster
    roster.expect("servers-1", [BROKER])
    # No lifeline: it is on another machine.
    with (tmp_path / "stderr").open("w") as stderr:
        process = psutil.Popen(
            [sys.executable, *FLAGS], cwd=tmp_path, env={**os.environ, **controller.environment}, stderr=stderr
        )
    try:
        assert controller.wait_until(lambda: BROKER in roster.answers.endpoints, 60)
        endpoint, cluster = roster.answers.endpoints[BROKER], KafkaCluster()
        if end == "quit":
            # Until it is told of its cluster it says so again: either may have been lost.
            roster.begin(0)
            assert controller.wait_until(lambda: roster.answers.endpoints == {BROKER: endpoint}, 10)
        (join,) = cluster.join([endpoint])
        controller.tell([BROKER], Join(system=join))

        def up() -> bool:
            controller.broadcast(Ping(time_ns=0))
            return cluster.up(cluster.address([endpoint]))

        assert controller.wait_until(up, 60)
        family = process.children(recursive=True)
        assert any("java" in p.name() for p in family)
        if end == "quit":
            controller.quit([BROKER])
        elif end != "silence":
            process.send_signal(signal.Signals[end])
        assert process.wait(10) == status
        wait_until(lambda: not any(p.is_running() for p in family), 3, "supervisor and Java were gone")
        assert not (tmp_path / "server").exists()
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        controller.close()
    assert ("silent" in (tmp_path / "stderr").read_text()) == (end == "silence")
