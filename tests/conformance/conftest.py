"""The programs under test, and topics for them."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any

import pytest

from hydra.errors import MissingDependencyError
from hydra.kafkatest.broker import LocalBroker
from hydra.wire.messages import ChildExit
from tests.conformance.bench import CLIENT, Bench
from tests.conformance.kafka_ends import Log
from tests.conformance.system_stage import Subject, SystemStage, SystemStep, command
from tests.suite.fixtures import starts
from tests.suite.native_client import native_client

starts("zmq_client", "kafka_client", "zmq_subscriber", "zmtp_subscriber", "stage")
EPOCHS = 10
"""How many a test has: its own are below."""
PYTHON = f"env OPENBLAS_NUM_THREADS=1 {shlex.quote(sys.executable)} -m"
NATIVE = [*filter(None, [native_client("zmq-sub")])]
DEFAULTS = {
    "zmq_client": [f"{PYTHON} hydra.zmqtest.pyzmq", *NATIVE],
    "kafka_client": [f"{PYTHON} hydra.kafkatest.kafka_python", f"{PYTHON} hydra.kafkatest.confluent", *NATIVE],
}


def _commands(config: pytest.Config, name: str) -> list[str]:
    """The command lines to test: those given, and the defaults only when none is given at all."""
    given = {option: config.getoption(option) or [] for option in DEFAULTS}
    return given[name] if any(given.values()) else DEFAULTS[name]


def _programs(config: pytest.Config) -> dict[str, list[Any]]:
    """What to test by fixture: command lines, or one and the kind of each ZMQ subscriber that these programs have."""
    of = {name: _commands(config, name) for name in DEFAULTS}
    zmtp = [(command, "zmtp-sub") for command in of["zmq_client"] if _speaks_zmtp(command)]
    zmq = [(command, "zmq-sub") for command in of["zmq_client"]]
    return {**of, "zmq_subscriber": zmq + zmtp, "zmtp_subscriber": zmtp}


@cache
def _speaks_zmtp(command: str) -> bool:
    if command.startswith(PYTHON):
        return False
    reported = subprocess.run([*shlex.split(command), "--help"], capture_output=True, text=True, check=True)
    return "zmtp-sub" in reported.stdout


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, programs in _programs(metafunc.config).items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, programs, ids=_id, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs a program that is not under test, which pytest would call skipped."""
    absent = {name for name, programs in _programs(config).items() if not programs}
    left_out = [item for item in items if absent.intersection(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _id(program: str | tuple[str, str]) -> str:
    command, *kind = [program] if isinstance(program, str) else program
    return "-".join([command.rsplit("/", 1)[-1].rsplit(" ", 1)[-1], *kind])


Share = Callable[..., Bench]
_firsts = count(0, EPOCHS)
_shared: dict[tuple[str, ...], Bench] = {}


@pytest.fixture
def first_epoch() -> int:
    """What is added on the wire to the epochs of a test, which may be 1 to 9."""
    return next(_firsts)


@pytest.fixture
def bench(bench: Bench, first_epoch: int) -> Bench:
    bench.peer.first_epoch = first_epoch
    return bench


@pytest.fixture
def share(request: pytest.FixtureRequest, first_epoch: int) -> Iterator[Share]:
    """Gives a program that tests before this one may have used: to start one takes longer than most of them do.

    A test that harms it, or needs a new one, takes ``bench`` and launches its own.
    """
    failed, used = request.session.testsfailed, list[Bench]()

    def give(command: str, kind: str, count: int = 1, first_id: int = CLIENT) -> Bench:
        key = command, kind, str(count), str(first_id)
        if key not in _shared:
            _shared[key] = Bench()
            _shared[key].launch(command, kind, first_id=first_id, count=count, arguments=["--respawns", "1000"])
        used.append(_shared[key])
        used[-1].peer.restart_epochs(first_epoch)
        return used[-1]

    yield give
    for bench in used:
        rested = False
        try:
            if request.session.testsfailed == failed:
                bench.rest(EPOCHS)
                rested = not bench.peer.messages_of(ChildExit)
        finally:
            if not rested:
                _forget(bench)


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    for bench in list(_shared.values()):
        _forget(bench)


def _forget(bench: Bench) -> None:
    (key,) = (key for key, shared in _shared.items() if shared is bench)
    _shared.pop(key).close()


@pytest.fixture
def log(broker: LocalBroker, first_epoch: int) -> Iterator[Log]:
    """A topic with one partition."""
    with contextlib.closing(Log(broker, 1, first_epoch)) as it:
        yield it


@pytest.fixture
def wide_log(broker: LocalBroker, first_epoch: int) -> Iterator[Log]:
    """A topic with four partitions."""
    with contextlib.closing(Log(broker, 4, first_epoch)) as it:
        yield it


@pytest.fixture
def own_log(own_broker: LocalBroker, first_epoch: int) -> Iterator[Log]:
    """A topic with one partition, of a broker that is to be killed."""
    with contextlib.closing(Log(own_broker, 1, first_epoch)) as it:
        yield it


@pytest.fixture
def subscriber(share: Share, zmq_subscriber: tuple[str, str]) -> Bench:
    """A program with one ZMQ subscriber, of any kind."""
    bench = share(*zmq_subscriber)
    bench.unsupported = frozenset({"rcvhwm"} if zmq_subscriber[1] == "zmtp-sub" else ())
    return bench


@pytest.fixture
def queueing_subscriber(share: Share, zmq_client: str) -> Bench:
    """The same, with a queue of its own."""
    return share(zmq_client, "zmq-sub")


@pytest.fixture
def publisher(share: Share, zmq_client: str) -> Bench:
    """A program with one ZMQ publisher."""
    return share(zmq_client, "zmq-pub")


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SystemStage]]:
    """The systems that are open, by name; one for all tests of this process."""
    opened: dict[str, SystemStage] = {}
    yield opened
    for stage in opened.values():
        stage.close()


@pytest.fixture(scope="session")
def stage(subject: Subject, stages: dict[str, SystemStage], tmp_path_factory: pytest.TempPathFactory) -> SystemStage:
    """The open system of the subject."""
    name = subject.spec.identity.name
    if name not in stages:
        try:
            stages[name] = SystemStage(subject, tmp_path_factory.mktemp(name) / "run")
        except MissingDependencyError as e:
            pytest.skip(str(e))
    return stages[name]


@pytest.fixture
def publishing(subject: Subject, stage: SystemStage, share: Share) -> Iterator[SystemStep]:
    """Steps with one publisher of the subject."""
    with contextlib.closing(SystemStep(subject, stage, share(command(subject, "publisher"), ""))) as step:
        yield step


@pytest.fixture
def subscribing(subject: Subject, stage: SystemStage, share: Share) -> Iterator[SystemStep]:
    """Steps with one subscriber of the subject."""
    with contextlib.closing(SystemStep(subject, stage, share(command(subject, "subscriber"), ""))) as step:
        yield step
