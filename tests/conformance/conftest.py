"""The programs under test, and topics for them."""

from __future__ import annotations

import shlex
import subprocess
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


def _subscribers(config: pytest.Config) -> list[tuple[str, str]]:
    """Every kind of ZMQ subscriber that these programs have: the command line and the kind."""
    given = [(command, "zmq-sub") for command in _commands(config, "zmq_client")]
    return given + _zmtp(config)


def _zmtp(config: pytest.Config) -> list[tuple[str, str]]:
    """Those that speak ZMTP themselves."""
    found = []
    for command in config.getoption("zmq_client") or []:
        told = subprocess.run([*shlex.split(command), "--help"], capture_output=True, text=True, check=True)
        found += [(command, "zmtp-sub")] if "zmtp-sub" in told.stdout else []
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in DEFAULTS:
        if name in metafunc.fixturenames:
            commands = _commands(metafunc.config, name)
            metafunc.parametrize(name, commands, ids=[_last_word(c) for c in commands])
    for name, found in (("zmq_subscriber", _subscribers), ("zmtp_subscriber", _zmtp)):
        if name in metafunc.fixturenames:
            programs = found(metafunc.config)
            metafunc.parametrize(name, programs, ids=[f"{_last_word(c)}-{kind}" for c, kind in programs])


def _last_word(command: str) -> str:
    return command.rsplit("/", 1)[-1].rsplit(" ", 1)[-1]


@pytest.fixture
def log(broker: EmbeddedBroker) -> Log:
    """A topic with one partition."""
    return Log(broker, 1)


@pytest.fixture
def wide_log(broker: EmbeddedBroker) -> Log:
    """A topic with four partitions."""
    return Log(broker, 4)


@pytest.fixture
def subscriber(bench: Bench, zmq_subscriber: tuple[str, str]) -> Bench:
    """A program with one ZMQ subscriber, of any kind."""
    bench.launch(*zmq_subscriber, first_id=CLIENT)
    bench.not_told = frozenset({"rcvhwm"} if zmq_subscriber[1] == "zmtp-sub" else ())
    return bench


@pytest.fixture
def queueing_subscriber(bench: Bench, zmq_client: str) -> Bench:
    """The same, with a queue of its own."""
    bench.launch(zmq_client, "zmq-sub", first_id=CLIENT)
    return bench
