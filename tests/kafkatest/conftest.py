"""Topics for the tests of this folder."""

from __future__ import annotations

import gc
import uuid
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from hydra.kafkatest import confluent, kafka_python
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics


@pytest.fixture
def topics(broker: LocalBroker) -> Iterator[Topics]:
    own = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
    yield own
    own.close()


@pytest.fixture(params=[confluent, kafka_python], ids=["confluent", "kafka_python"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    """The clients in Python: each library's module."""
    chosen: ModuleType = request.param
    return chosen


def opened(library: ModuleType, kind: str, client: int) -> Any:
    """A library's transport, ``kafka-pub`` or ``kafka-sub``, without a control connection."""
    return library.kinds()[kind].open(client, None)


@pytest.fixture
def unclosed_sockets() -> Iterator[None]:
    """kafka-python leaves those open whose connection was refused: collected here, they fail no other test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
