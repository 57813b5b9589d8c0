"""One real broker for the tests of this folder."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import fetch, find_java
from hydra.kafkatest.topics import Topics


def wait_until(condition: Callable[[], bool], deadline_s: float, message: str) -> None:
    """Looks every 20 ms; fails with the message when the deadline is over."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{message} within {deadline_s} s"
        time.sleep(0.02)


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
    running = EmbeddedBroker(tmp_path_factory.mktemp("kafka") / "broker")
    running.start()
    yield running
    running.stop()


@pytest.fixture
def topics(broker: EmbeddedBroker) -> Iterator[Topics]:
    mine = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
    yield mine
    mine.close()


@pytest.fixture
def own_broker(needs_kafka: None, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """One to be killed."""
    running = EmbeddedBroker(tmp_path / "own", warm=False)
    running.start()
    yield running
    running.stop()
