"""What the tests that run whole commands on a test master share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mesos.cluster import Cluster, running
from tests.suite.fixtures import starts

starts("cluster")


@pytest.fixture(scope="module")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for all modules of this process: the agents' archive, which takes seconds, is made once."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(cache))
        yield cache


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master that notices and offers within tenths of a second, with the default agents."""
    with running(tmp_path / "mesos", ping_timeout_s=0.2, allocation_s=0.1) as cluster:
        yield cluster
