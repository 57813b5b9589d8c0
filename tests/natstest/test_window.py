"""The window of a publisher to a stream, when the end of its connection has lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from hydra.model import Settings, shared_of
from hydra.natstest import nats_publisher
from hydra.wire.messages import Configure

EPOCH = 4
PLACE = {"servers": ["127.0.0.1:1"], "subject": "s", "stream": "t", "first": 1, "publish_window": 3}


class Connection:
    """A connection on which everything succeeds at once; answers are the test's."""

    open = begin_step = confirm = run_while = turn = wait = stir = Mock()

    def __init__(self, *_: object) -> None:
        self.disconnects = 0
        self.connected = True
        self.client = Mock(max_payload=2**20, pending_data_size=0, publish=AsyncMock(), subscribe=AsyncMock())

    def do(self, work: Coroutine[Any, Any, object], _timeout_s: float) -> object:
        return asyncio.run(work)


def answer(publisher: nats_publisher.NatsPublisher, sequence: int) -> None:
    asyncio.run(publisher._on_reply(SimpleNamespace(subject=f"_INBOX.{EPOCH}.{sequence}", data=b"{}")))  # type: ignore[arg-type]


def test_lost_answers_leave_the_window_and_late_ones_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_publisher, "NatsConnection", Connection)
    publisher = nats_publisher.NatsPublisher(1, Mock())
    settings = shared_of(Settings(burst=1))
    publisher.configure(Configure(epoch=EPOCH, number=1, settings=settings, publishers=[], probe=False, system=PLACE))
    message = bytes(24)
    assert [publisher.send([message] * 5, 0), publisher.send([message], 3)] == [3, 0]
    answer(publisher, 0)
    assert publisher.send([message] * 5, 3) == 1
    publisher._connection.disconnects = 1  # type: ignore[misc]  # of the double
    assert publisher.send([message] * 5, 4) == 3  # nothing that was on its way fills the window
    answer(publisher, 2)  # late: it makes no further room
    assert publisher.send([message], 7) == 0
    answer(publisher, 4)
    assert publisher.send([message] * 5, 7) == 1
    publisher.poll()
    delivery = publisher.delivery()
    assert delivery is not None
    assert (delivery.acknowledged, delivery.unacknowledged) == (3, [(1, 1), (3, 3), (5, 7)])
