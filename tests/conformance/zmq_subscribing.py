"""Speakers that a ZMQ subscriber listens to, and what it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.model import LedgerCounts, SubscriberReport
from hydra.wire.messages import Progress, Ready
from tests.conformance.bench import CLIENT, ONE, Bench, StepSettings, Window, step_settings
from tests.conformance.zmq_ends import Speaker

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
    ids: Sequence[int] = (CLIENT,),
    progress_s: float = 0.02,
    subscriptions: int = 1,
    **more: Any,
) -> None:
    """Configures subscribers for these speakers and proves that each hears them; each has subscribed so often then."""
    bench.configure_subscribers(ids, epoch, settings, publishers=endpoints(*of), progress_s=progress_s, **more)
    for speaker in of:
        speaker.await_subscriptions(subscriptions * len(ids))
        speaker.probe(epoch)
    bench.peer.heard(Ready, ids, epoch=epoch)


def listening(bench: Bench, epoch: int = 1, **more: Any) -> Speaker:
    """A speaker that the subscriber hears; what else is given is for its connection."""
    one = Speaker(bench.peer, ONE)
    connected(bench, epoch, one, **more)
    return one


def begun(bench: Bench, epoch: int = 1, seconds: float = 30.0, **more: Any) -> tuple[Speaker, Window]:
    """The same, and a window that has begun."""
    return listening(bench, epoch, **more), running(bench, epoch, seconds)


def got(bench: Bench, epoch: int, messages: int) -> None:
    """Waits until the subscriber has reported that it has this many messages."""
    bench.peer.wait(
        lambda: any(p.messages >= messages for p in bench.peer.messages_of(Progress, CLIENT, epoch=epoch)),
        f"progress of {messages} messages",
    )


def running(bench: Bench, epoch: int, seconds: float = 30.0, ids: Sequence[int] = (CLIENT,)) -> Window:
    """A window that has begun."""
    window = bench.start(ids, epoch, seconds)
    bench.await_moment(window, 0.0)
    return window


def only_ledger(report: SubscriberReport) -> LedgerCounts:
    (ledger,) = report.ledgers
    return ledger
