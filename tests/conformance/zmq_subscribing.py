"""Speakers that a ZMQ subscriber listens to, and what it is told."""

from __future__ import annotations

from typing import Any

from hydra.model import LedgerCounts, SubscriberReport
from hydra.wire.messages import Progress, Ready
from tests.conformance.bench import Bench, StepSettings, Window, step_settings
from tests.conformance.zmq_ends import Speaker

CLIENT = 3
ONE, OTHER, STRANGER = 100, 101, 666
DEEP = step_settings(rcvhwm=0)


def speakers(bench: Bench, *publishers: int) -> list[Speaker]:
    return [Speaker(bench.peer, publisher) for publisher in publishers]


def endpoints(*of: Speaker) -> dict[int, str]:
    return {speaker.publisher: speaker.endpoint for speaker in of}


def connected(
    bench: Bench,
    epoch: int,
    *of: Speaker,
    settings: StepSettings = DEEP,
    progress_s: float = 0.02,
    subscriptions: int = 1,
    **more: Any,
) -> None:
    """Configures the subscriber for these speakers and proves that it hears them."""
    bench.configure_subscribers([CLIENT], epoch, settings, publishers=endpoints(*of), progress_s=progress_s, **more)
    for speaker in of:
        speaker.await_subscriptions(subscriptions)
        speaker.probe(epoch)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def got(bench: Bench, epoch: int, messages: int) -> None:
    """Waits until the subscriber has told that it has so many messages."""
    bench.peer.wait(
        lambda: any(p.messages >= messages for p in bench.peer.said(Progress, CLIENT, epoch=epoch)),
        f"progress of {messages} messages",
    )


def running(bench: Bench, epoch: int, seconds: float = 30.0) -> Window:
    """A window that has begun."""
    window = bench.start([CLIENT], epoch, seconds)
    bench.peer.wait(lambda: window.now_ns() > window.start_ns, "the start of the window")
    return window


def only_ledger(report: SubscriberReport) -> LedgerCounts:
    (ledger,) = report.ledgers
    return ledger
