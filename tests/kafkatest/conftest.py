"""Topics for the tests of this folder."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics


def wait_until(condition: Callable[[], bool], deadline_s: float, message: str) -> None:
    """Looks every 20 ms; fails with the message when the deadline is over."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{message} within {deadline_s} s"
        time.sleep(0.02)


@pytest.fixture
def topics(broker: EmbeddedBroker) -> Iterator[Topics]:
    mine = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
    yield mine
    mine.close()
