"""How a subscriber with pyzmq reads its socket."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
import zmq

from hydra.model import SharedSettings
from hydra.wire.messages import Configure, PublisherEndpoint
from hydra.zmqtest import pyzmq

_MESSAGES = [b"%d" % n for n in range(5)]


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("apart_ns", "sizes"),
    [
        pytest.param(1_000, [5], id="one that follows closely has others behind it"),
        pytest.param(1_000_000, [1] * 5, id="others come alone"),
    ],
)
def test_a_stream_looks_for_more_messages_only_behind_close_ones(
    monkeypatch: pytest.MonkeyPatch, apart_ns: int, sizes: list[int]
) -> None:
    ticks = count(0, apart_ns)
    monkeypatch.setattr(pyzmq, "time", SimpleNamespace(monotonic_ns=lambda: next(ticks)))
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.bind("inproc://data")
        subscriber = pyzmq.ZmqSubscriber(0, cast(Any, SimpleNamespace(context=context)))
        ends = [PublisherEndpoint(0, "inproc://data")]
        subscriber.configure(
            Configure(epoch=1, number=1, settings=SharedSettings(burst=1), publishers=ends, probe=False, system={})
        )
        publisher.recv()  # the subscription
        for message in _MESSAGES:
            publisher.send(message)
        messages, batches = subscriber.stream(10**12, len(_MESSAGES))
        subscriber.close()
    assert messages == _MESSAGES
    assert [size for _, size in batches] == sizes
