"""Real servers for NATS' tests, the programs under test, and the data that they exchange.

A program takes a second to start, so the tests of a module share one: each has epochs of its own. Those that do it harm
start theirs.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from hydra.natstest.program import NatsProgram
from hydra.natstest.system import NatsCluster
from hydra.system.local_server import LocalServer
from tests.conformance.bench import Bench
from tests.natstest.ends import Core, Ends, Stream
from tests.suite.fixtures import starts
from tests.suite.native_client import native_client

starts("server", "own_server", "nats_client")
PYTHON = f"env OPENBLAS_NUM_THREADS=1 {shlex.quote(sys.executable)} -m hydra.natstest.nats_py"


NATS_CLIENTS = [PYTHON, *filter(None, [native_client("nats-sub")])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nats_client" in metafunc.fixturenames:
        ids = [c.rsplit("/", 1)[-1].rsplit(" ", 1)[-1] for c in NATS_CLIENTS]
        metafunc.parametrize("nats_client", NATS_CLIENTS, ids=ids, scope="module")


@pytest.fixture(scope="module")
def shared_bench(nats_client: str) -> Iterator[Bench]:
    """A controller of its own for each program, for all tests of a module."""
    with closing(Bench()) as it:
        yield it


_tens = count(10, 10)


@pytest.fixture
def epoch() -> int:
    """A test's first epoch; some more are its own, too."""
    return next(_tens)


@pytest.fixture(scope="session")
def server(needs_nats: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server for all tests of this process; each test takes its own subjects."""
    with LocalServer(NatsProgram(), NatsCluster(), tmp_path_factory.mktemp("nats") / "server") as running:
        yield running


@pytest.fixture
def own_server(needs_nats: None, tmp_path: Path) -> Iterator[LocalServer]:
    """One to be killed."""
    with LocalServer(NatsProgram(), NatsCluster(), tmp_path / "own", warm=False) as running:
        yield running


@pytest.fixture
def core(server: LocalServer) -> Iterator[Core]:
    """A subject of this test's own."""
    with Core(server.address) as ends:
        yield ends


@pytest.fixture
def stream(server: LocalServer) -> Iterator[Stream]:
    """A stream of this test's own."""
    with Stream(server.address) as ends:
        yield ends


WAYS: dict[str, Callable[[str], Ends]] = {
    "core": Core,
    "stream": partial(Stream, storage="file"),
    "pulled": partial(Stream, consumer="pull"),
    "unacknowledged": partial(Stream, ack_policy="none", publish_acks=False),
}


@pytest.fixture(params=WAYS)
def data(request: pytest.FixtureRequest, server: LocalServer) -> Iterator[Ends]:
    """Each way in which data goes from a publisher to a subscriber."""
    with WAYS[request.param](server.address) as ends:
        yield ends
