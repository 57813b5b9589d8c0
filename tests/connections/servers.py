"""Servers of a test's own, with settings that Hydra gives to none."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.mqtttest.program import find
from hydra.natstest.program import find_server
from tests.suite.waiting import wait_until

HOST = "127.0.0.1"


@contextlib.contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[str]:
    """A server of the test's own; the value is its address."""
    process = SupervisedProcess(command, folder, folder / "log", grace_s=0.0)
    try:
        wait_until(lambda: accepts(HOST, port), command[0], saw=(folder / "log").read_text)
        yield f"{HOST}:{port}"
    finally:
        process.stop()


def nats(folder: Path, **more: Any) -> contextlib.AbstractContextManager[str]:
    folder.mkdir()
    (port,) = free_ports(HOST, 1)
    (folder / "server.conf").write_text(json.dumps({"listen": f"{HOST}:{port}", **more}))
    return running([find_server().path, "-c", str(folder / "server.conf")], folder, port)


def mosquitto(folder: Path, *lines: str) -> contextlib.AbstractContextManager[str]:
    folder.mkdir()
    (port,) = free_ports(HOST, 1)
    user = ["user root"] if os.geteuid() == 0 else []
    (folder / "mosquitto.conf").write_text(
        "\n".join([f"listener {port} {HOST}", "allow_anonymous true", *user, *lines])
    )
    return running([find().path, "-c", "mosquitto.conf"], folder, port)
