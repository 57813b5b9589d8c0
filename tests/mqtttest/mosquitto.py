"""A mosquitto with settings that Hydra's own servers do not have."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hydra.mqtttest.program import find
from tests.suite.waiting import wait_until


@contextlib.contextmanager
def mosquitto(folder: Path, setting: str) -> Iterator[str]:
    """The address of a mosquitto of anonymous clients with one more line of its configuration."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n{setting}\n")
    with subprocess.Popen([find().path, "-c", config], stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: not _closed(port), "the server listens")
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def _closed(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
