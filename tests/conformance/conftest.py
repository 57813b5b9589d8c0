"""The programs under test, and topics for them."""

from __future__ import annotations

import shlex
import sys

import pytest

from hydra.kafkatest.broker import EmbeddedBroker
from tests.conformance.bench import Bench
from tests.conformance.kafka_ends import Log
from tests.conformance.zmq_subscribing import CLIENT

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


@pytest.fixture
def log(broker: EmbeddedBroker) -> Log:
    """A topic with one partition."""
    return Log(broker, 1)


@pytest.fixture
def wide_log(broker: EmbeddedBroker) -> Log:
    """A topic with four partitions."""
    return Log(broker, 4)


@pytest.fixture
def subscriber(bench: Bench, zmq_client: str) -> Bench:
    """The ZMQ program with one subscriber."""
    bench.launch(zmq_client, "zmq-sub", first_id=CLIENT)
    return bench
