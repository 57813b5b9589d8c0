"""A real mosquitto, and the programs under test."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.mqtttest.program import MosquittoJoin, MosquittoProgram, find
from hydra.mqtttest.system import SingleServer
from hydra.system.local_server import LocalServer
from tests.suite.fixtures import starts
from tests.suite.native_client import native_client

starts("server", "own_server", "mqtt_client")
LIMITS = MosquittoJoin(max_queued_messages=1000, max_inflight_messages=100)
PAHO = f"env OPENBLAS_NUM_THREADS=1 {shlex.quote(sys.executable)} -m hydra.mqtttest.paho_mqtt"


def local(folder: Path, limits: MosquittoJoin = LIMITS) -> LocalServer:
    """A server that is not started yet."""
    return LocalServer(MosquittoProgram(), SingleServer(limits), folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a mosquitto for all tests of this process; each test takes its own topics."""
    find()
    with local(tmp_path_factory.mktemp("mqtt") / "server") as running:
        yield running.address


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[LocalServer]:
    """One to be killed."""
    with local(tmp_path / "own") as running:
        yield running


@pytest.fixture(scope="session")
def native() -> str:
    """The native program, as one command line."""
    program = native_client("mqtt-sub")
    return program or pytest.skip("the native client was built without MQTT")


@pytest.fixture(params=["paho-mqtt", "native"])
def mqtt_client(request: pytest.FixtureRequest) -> str:
    """A program with the kinds mqtt-pub and mqtt-sub, as one command line."""
    if request.param == "paho-mqtt":
        return PAHO
    native: str = request.getfixturevalue("native")
    return native
