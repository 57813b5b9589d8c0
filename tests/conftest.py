"""Of the whole test suite: what it may take, the programs under test, and the bench and brokers to put clients on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from hydra.errors import MissingDependencyError, ServerError
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import fetch, find_java
from tests.conformance.bench import Bench

STARTING: Final = frozenset(
    {"bench", "broker", "own_broker", "needs_kafka", "kafka", "cluster", "zmq_client", "kafka_client", "rig_is_built"}
)
"""Fixtures that start brokers or clients, or that tests which do so ask for."""

# A machine that is shared tells nothing of a test by the time that an example takes.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


def pytest_configure(config: pytest.Config) -> None:
    """Files are handed out in the order below: by their number of tests, which is xdist's, the slowest come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what starts processes, by its fixtures, and puts it first where several workers share the files.

    What takes minutes is not begun as the last then; many short files fill the time until the last of it has ended.
    """
    for item in items:
        if STARTING.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("processes")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What outlives a run of a test is not kept among the user's own."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A controller of the test's own, for clients that it starts."""
    it = Bench()
    try:
        yield it
    finally:
        it.close()


@pytest.fixture(scope="session")
def needs_kafka() -> None:
    """Skips where Java or the jars are not to be had."""
    try:
        find_java()
        fetch()
    except MissingDependencyError as e:
        pytest.skip(str(e))


@pytest.fixture(scope="session")
def broker(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A Kafka for all tests of this process; whoever uses it takes topics of its own.

    Where the machine was too busy for it to come up in time it is begun anew: a hundred tests would fail with it.
    """
    folder = tmp_path_factory.mktemp("kafka")
    with ExitStack() as stack:
        try:
            running = stack.enter_context(EmbeddedBroker(folder / "broker"))
        except ServerError:
            running = stack.enter_context(EmbeddedBroker(folder / "another"))
        yield running


@pytest.fixture
def own_broker(needs_kafka: None, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """One to be killed."""
    with EmbeddedBroker(tmp_path / "own", warm=False) as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "clients under test (default: the Python ones)")
    group.addoption(
        "--zmq-client",
        action="append",
        metavar="COMMAND",
        help="a program with the kinds zmq-pub and zmq-sub, as one command line; may be given several times",
    )
    group.addoption(
        "--kafka-client",
        action="append",
        metavar="COMMAND",
        help="a program with the kinds kafka-pub and kafka-sub, as one command line; may be given several times",
    )
