"""Of the whole test suite: what it may take, the programs under test, and the bench and brokers to put clients on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.jars import fetch, find_java
from hydra.natstest.program import find_server
from tests.conformance.bench import Bench
from tests.suite.fixtures import starts

pytest_plugins = ["tests.suite.tiers", "tests.suite.failures", "tests.suite.prices", "tests.suite.threads"]
starts("bench", "needs_kafka", "broker", "own_broker")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What outlives a run of a test is not kept among the user's own, and Java starts quickly."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        # Java's second compiler takes half of the CPU time of a broker's first seconds.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
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
def broker(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A Kafka for all tests of this process; each test takes its own topics."""
    with LocalBroker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running


@pytest.fixture(scope="session")
def needs_nats() -> None:
    """Skips where nats-server is not installed."""
    try:
        find_server()
    except MissingDependencyError as e:
        pytest.skip(str(e))


@pytest.fixture
def own_broker(needs_kafka: None, tmp_path: Path) -> Iterator[LocalBroker]:
    """One to be killed."""
    with LocalBroker(tmp_path / "own", warm=False) as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "clients under test (default: all that are there)")
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
