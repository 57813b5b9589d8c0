"""A real mosquitto, and the programs under test."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.mqtttest.cluster import SingleServer
from hydra.mqtttest.program import MosquittoProgram, ServerLimits, find
from hydra.native.build import find as find_native
from hydra.servers.embedded import EmbeddedServer

LIMITS = ServerLimits(max_queued_messages=1000, max_inflight_messages=100)
PAHO = f"env OPENBLAS_NUM_THREADS=1 {shlex.quote(sys.executable)} -m hydra.mqtttest.paho_mqtt"
_STARTING = {"server", "own_server", "mqtt_client"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what starts processes, by its fixtures."""
    for item in items:
        if _STARTING.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)


def embedded(folder: Path, limits: ServerLimits = LIMITS) -> EmbeddedServer:
    """A server that is not started yet."""
    return EmbeddedServer(MosquittoProgram(), SingleServer(limits), folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a mosquitto for all tests of this process; whoever uses it takes topics of its own."""
    find()
    with embedded(tmp_path_factory.mktemp("mqtt") / "server") as running:
        yield running.address


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """One to be killed."""
    with embedded(tmp_path / "own") as running:
        yield running


def _native() -> str | None:
    """The native program, where it was built with MQTT."""
    program = find_native()
    if program is None:
        return None
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=10).stdout
    return shlex.quote(str(program)) if "mqtt-sub" in told else None


@pytest.fixture(scope="session")
def native() -> str:
    """The native program, as one command line."""
    program = _native()
    if program is None:
        pytest.skip("the native client was built without MQTT")
    return program


@pytest.fixture(params=["paho-mqtt", "native"])
def mqtt_client(request: pytest.FixtureRequest) -> str:
    """A program with the kinds mqtt-pub and mqtt-sub, as one command line."""
    if request.param == "paho-mqtt":
        return PAHO
    native: str = request.getfixturevalue("native")
    return native
