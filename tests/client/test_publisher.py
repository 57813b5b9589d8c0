"""A publisher's step, with a transport and a clock of the test's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

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
ANSWER_NS = 7_300_000


class Library:
    """Accepts as many as it should, and knows when; each look at the clock takes a µs."""

    def __init__(self) -> None:
        self.now_ns = START_NS - 1_000_000
        self.sent: list[bytes] = []
        self.sent_ns: list[int] = []
        self.accepts = 1 << 30

    def monotonic_ns(self) -> int:
        self.now_ns += LOOK_NS
        return self.now_ns

    def poll(self) -> None:
        """No process acknowledges."""

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        assert first_sequence == len(self.sent)
        accepted = messages[: self.accepts]
        self.sent += accepted
        self.sent_ns += [self.now_ns] * len(accepted)
        return len(accepted)


class Answering(Library):
    """Each message has an answer after a while, which a poll finds; its wait can last for 10 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.arrive_ns: list[int] = []
        self.found_ns: list[int] = []
        self.waits_begun = self.waits = 0
        self.waits_before_last = 0

    def configure(self, _command: Configure) -> str:
        return ""

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        accepted = super().send(messages, first_sequence)
        self.waits_before_last = self.waits_begun
        self.arrive_ns += [self.now_ns + ANSWER_NS] * accepted
        return accepted

    def poll(self) -> None:
        arrived = sum(at_ns <= self.now_ns for at_ns in self.arrive_ns)
        self.found_ns += [self.now_ns] * (arrived - len(self.found_ns))

    def awaits(self) -> bool:
        self.waits_begun += 1
        return len(self.found_ns) < len(self.arrive_ns)

    def wait(self, timeout_s: float) -> None:
        assert 0.001 <= timeout_s < math.inf
        self.waits += 1
        until_ns = self.now_ns + round(min(timeout_s, 0.01) * 1e9)
        self.now_ns = max(self.now_ns, min(until_ns, self.arrive_ns[len(self.found_ns)]))


def its_clock(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    for module in (publisher, clock):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=library.monotonic_ns))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    it = Library()
    its_clock(monkeypatch, it)
    return it


def commands(rate: Rate, stop_ns: int = STOP_NS) -> tuple[Configure, Start]:
    settings = SharedSettings(rate=rate, burst=100, message_size=30)
    command = Configure(epoch=EPOCH, number=1, settings=settings, publishers=[], probe=False, system={})
    start = Start(epoch=EPOCH, number=2, start_at_ns=START_NS, stop_at_ns=stop_ns, clock=HostClock(at_ns=0, step_ns=0))
    return command, start


def begun(library: Any, rate: Rate) -> publisher._Sending:
    command, start = commands(rate)
    return publisher._Sending(0, command, start, library, PayloadBlock(command.settings))


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


def answered(monkeypatch: pytest.MonkeyPatch, rate: Rate, stop_ns: int) -> Answering:
    """A library whose publisher has done its step, and waits for a command without a time limit."""
    answering = Answering()
    its_clock(monkeypatch, answering)
    loop = publisher.TransportPublisher(0, Mock(), answering)  # type: ignore[arg-type]  # no more of it is called
    for command in commands(rate, stop_ns):
        loop._obey(command)
    while (wait_s := loop._work()) < math.inf:
        answering.now_ns += round(wait_s * 1e9)
    return answering


@pytest.mark.parametrize("rate", [0.5, 5, 100, 900])
def test_an_answer_is_found_when_it_arrives_also_behind_the_last_message(
    monkeypatch: pytest.MonkeyPatch, rate: Rate
) -> None:
    it = answered(monkeypatch, rate, START_NS + 1_000_000_000)
    assert len(it.found_ns) == len(it.sent) == math.ceil(float(rate))
    assert max(found - arrived for found, arrived in zip(it.found_ns, it.arrive_ns, strict=True)) <= 1_100_000
    # One for each message and one for each answer, which arrives within the 10 ms of a wait.
    assert it.waits <= 2 * len(it.sent)


def test_messages_that_follow_each_other_closely_cost_no_look_at_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = answered(monkeypatch, 2000, STOP_NS)
    assert len(it.found_ns) == len(it.sent) == 400
    assert it.waits_before_last <= 1  # before the first one was due
