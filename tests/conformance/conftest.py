"""The programs under test and the bench that they are tested on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import fetch, find_java
from tests.conformance.kafka_ends import Log

PYTHON = f"env OPENBLAS_NUM_THREADS=1 {shlex.quote(sys.executable)} -m"
DEFAULTS = {
    "zmq_client": [f"{PYTHON} hydra.zmqtest.pyzmq"],
    "kafka_client": [f"{PYTHON} hydra.kafkatest.kafka_python", f"{PYTHON} hydra.kafkatest.confluent"],
}


def _commands(config: pytest.Config, name: str) -> list[str]:
    """The command lines to test: those given, and the defaults only when none is given at all."""
    given = {option: config.getoption(option) or [] for option in DEFAULTS}
    return given[name] if any(given.values()) else DEFAULTS[name]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in DEFAULTS:
        if name in metafunc.fixturenames:
            commands = _commands(metafunc.config, name)
            metafunc.parametrize(name, commands, ids=[c.rsplit("/", 1)[-1].rsplit(" ", 1)[-1] for c in commands])


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """One broker for the whole suite."""
    with _started(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """One to be killed."""
    with _started(tmp_path / "own") as running:
        yield running


def _started(folder: Path) -> EmbeddedBroker:
    try:
        find_java()
        fetch()
    except MissingDependencyError as e:
        pytest.skip(str(e))
    return EmbeddedBroker(folder, warm=False)


@pytest.fixture
def log(broker: EmbeddedBroker) -> Log:
    """A topic with one partition."""
    return Log(broker, 1)


@pytest.fixture
def wide_log(broker: EmbeddedBroker) -> Log:
    """A topic with four partitions."""
    return Log(broker, 4)
