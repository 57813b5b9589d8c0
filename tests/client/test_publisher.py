"""A publisher's step, with a transport and a clock of the test's."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hydra.client import publisher
from hydra.client.payload import PayloadBlock
from hydra.client.publisher import AWAKE_S, PREPARED
from hydra.model import Rate, SharedSettings
from hydra.wire import clock
from hydra.wire.data_message import pack_batch, unpack_batch
from hydra.wire.messages import Configure, HostClock, Start

EPOCH = 1
START_NS, STOP_NS = 1_000_000_000, 1_200_000_000
LOOK_NS = 1_000


class Library:
    """Accepts what it is told to, and knows when; each look at the clock takes a µs."""

    def __init__(self) -> None:
        self.now_ns = START_NS - 1_000_000
        self.sent: list[bytes] = []
        self.sent_ns: list[int] = []
        self.accepts = 1 << 30

    def monotonic_ns(self) -> int:
        self.now_ns += LOOK_NS
        return self.now_ns

    def poll(self) -> None:
        """Nobody acknowledges."""

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        assert first_sequence == len(self.sent)
        accepted = messages[: self.accepts]
        self.sent += accepted
        self.sent_ns += [self.now_ns] * len(accepted)
        return len(accepted)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    it = Library()
    for module in (publisher, clock):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=it.monotonic_ns))
    return it


def begun(library: Any, rate: Rate) -> publisher._Sending:
    settings = SharedSettings(rate=rate, burst=100, message_size=30)
    command = Configure(epoch=EPOCH, number=1, settings=settings, publishers=[], probe=False, system={})
    start = Start(epoch=EPOCH, number=2, start_at_ns=START_NS, stop_at_ns=STOP_NS, clock=HostClock(at_ns=0, step_ns=0))
    return publisher._Sending(0, command, start, library, PayloadBlock(settings))


def work_until_finished(step: publisher._Sending, library: Library) -> list[float]:
    """The waits that it asked for."""
    waits = []
    while not step.finished:
        wait_s = step.work()
        library.now_ns += round(wait_s * 1e9)
        waits.append(wait_s)
    return [wait_s for wait_s in waits if wait_s]


def test_it_wakes_up_before_a_message_is_due_and_sends_it_then(library: Library) -> None:
    waits = work_until_finished(begun(library, 1000), library)
    times_ns = unpack_batch(library.sent)["time_ns"].tolist()
    assert times_ns == list(range(START_NS, STOP_NS, 1_000_000))
    assert max(sent - due for sent, due in zip(library.sent_ns, times_ns, strict=True)) <= 5 * LOOK_NS
    assert min(sent - due for sent, due in zip(library.sent_ns, times_ns, strict=True)) >= 0
    assert len(waits) == len(times_ns)
    assert max(waits[1:]) <= 0.001 - AWAKE_S


def test_at_a_high_rate_it_is_awake_for_an_eighth_of_the_time(library: Library) -> None:
    waits = work_until_finished(begun(library, 10_000), library)
    assert sum(waits) >= 0.8 * (STOP_NS - START_NS) / 1e9
    assert max(waits[1:]) <= 1e-4 * 7 / 8


@pytest.mark.parametrize("accepts", [1, 7, PREPARED + 1])
def test_what_the_library_refuses_is_offered_again_as_it_was(library: Library, accepts: int) -> None:
    library.accepts = accepts
    step = begun(library, 10_000)
    library.now_ns += 20_000_000  # it is behind
    work_until_finished(step, library)
    headers = unpack_batch(library.sent)
    assert headers["sequence"].tolist() == list(range(len(headers)))
    assert headers["time_ns"].tolist() == list(range(START_NS, STOP_NS, 100_000))
    assert {len(message) for message in library.sent} == {30}


def test_what_is_left_of_a_burst_is_not_packed_again(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[int] = []

    def counted(*args: Any) -> list[bytes]:
        messages = pack_batch(*args)
        packed.append(len(messages))
        return messages

    monkeypatch.setattr(publisher, "pack_batch", counted)
    library.accepts = 1
    step = begun(library, 10_000)
    library.now_ns += 150_000_000  # it is behind for the whole step
    work_until_finished(step, library)
    assert len(library.sent) == (STOP_NS - START_NS) // 100_000
    assert sum(packed) < len(library.sent) + 100
