"""A subscriber's step, with a transport and a clock of the test's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hydra.client import subscriber_step
from hydra.client.subscriber_step import STREAMED_NS, SubscriberStep
from hydra.model import SharedSettings, SubscriberReport
from hydra.wire import clock
from hydra.wire.data_message import pack
from hydra.wire.messages import Configure, Finish, HostClock, PublisherEndpoint, PublisherTotal, Start

EPOCH = 1
START_NS, STOP_NS = 1_000_000_000, 3_000_000_000
APART_NS = 1_000_000


class Steady:
    """A message every ms; the time passes with them."""

    def __init__(self) -> None:
        self.now_ns = START_NS
        self.slow_from_ns = STOP_NS
        self.sent = self.in_time = self.streamed = 0

    def _next(self) -> tuple[bytes, int]:
        message = pack(EPOCH, 0, self.sent, self.now_ns)
        self.sent += 1
        self.now_ns += APART_NS if self.now_ns < self.slow_from_ns else STREAMED_NS - APART_NS
        self.in_time += self.now_ns <= STOP_NS
        return message, self.now_ns

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:  # one at a time
        return [self._next()[0]]

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        messages: list[bytes] = []
        batches: list[tuple[int, int]] = []
        while self.now_ns < until_ns and len(messages) < limit:
            messages.append(self._next()[0])
            batches.append((self.now_ns, 1))
        self.streamed += len(messages)
        return messages, batches

    def undrained(self, system: object) -> int:
        return 0

    def report_system(self) -> None:
        """Nothing."""


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    transport = Steady()
    for module in (subscriber_step, clock):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: transport.now_ns))
    return transport


def begun(transport: Any) -> SubscriberStep:
    settings = SharedSettings(rate=1000, burst=100)
    command = Configure(
        epoch=EPOCH, number=1, settings=settings, publishers=[PublisherEndpoint(0, "")], probe=False, system={}
    )
    step = SubscriberStep(command, transport)
    step.start(
        Start(epoch=EPOCH, number=2, start_at_ns=START_NS, stop_at_ns=STOP_NS, clock=HostClock(at_ns=0, step_ns=0))
    )
    return step


def report_of(step: SubscriberStep, transport: Steady) -> SubscriberReport:
    step.finish(
        Finish(epoch=EPOCH, number=4, publishers=[PublisherTotal(publisher=0, sent=transport.sent)], drain_max_s=1.0)
    )
    assert step.drained()
    return step.report()


def run(transport: Steady, until: Callable[[], bool]) -> SubscriberReport:
    step = begun(transport)
    while not until():
        step.work()
    return report_of(step, transport)


def test_what_is_counted_later_is_counted_exactly(steady: Steady) -> None:
    report = run(steady, lambda: steady.now_ns >= STOP_NS)
    (ledger,) = report.ledgers
    assert ledger.received == steady.sent
    assert ledger.missing == ledger.duplicates == ledger.reordered == ledger.extra == 0
    assert report.bytes == 24 * steady.sent
    assert steady.streamed > steady.sent / 2
    # Each message by its own time, though a hundred are waited for at once.
    assert report.latency.min_us == report.latency.max_us == APART_NS // 1000


def test_messages_after_the_end_of_the_window_are_late_though_they_came_with_others(steady: Steady) -> None:
    # What is read together ends behind it.
    steady.slow_from_ns = STOP_NS - 10 * APART_NS
    report = run(steady, lambda: steady.now_ns > STOP_NS)
    (ledger,) = report.ledgers
    assert ledger.received == steady.sent
    assert ledger.in_window == steady.in_time < steady.sent


def test_what_came_after_an_early_stop_is_late_though_the_stop_is_heard_of_later(steady: Any) -> None:
    step = begun(steady)
    while steady.streamed < 150:  # not yet counted
        step.work()
    cut_ns = steady.now_ns - 20 * APART_NS
    step.stop(cut_ns)
    (ledger,) = report_of(step, steady).ledgers
    assert (ledger.received, ledger.missing) == (steady.sent, 0)
    assert ledger.in_window == steady.sent - 20
