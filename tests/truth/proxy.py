"""A proxy on one subscriber's own connection to a ZMQ publisher, which loses and delays chosen messages.

Messages leave it in their order; one that waits holds up those behind it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hydra.wire.data_message import HEADER
from tests.conformance.bench import Window
from tests.forwarder import Frame, FrameForwarder
from tests.suite.waiting import SOON_S
from tests.truth.priority import first_thread

DelayOf = Callable[[int], int | None]
"""What becomes of a sequence: None drops it, 0 lets it pass, ns hands it on that long after it was due."""


@dataclass(frozen=True, slots=True)
class HandedOn:
    """A data message that was passed to the subscriber's socket, between two readings of CLOCK_MONOTONIC (ns)."""

    sequence: int
    due_ns: int
    before_ns: int
    after_ns: int


@dataclass(slots=True)
class Plan:
    """What is done to the messages of an epoch, and what became of them.

    Only messages of exactly ``message_size`` bytes are touched: probes and whatever else has the same epoch pass.
    ``offset_ns`` is the step's clock, in which messages are due, minus CLOCK_MONOTONIC; only who delays needs it.
    """

    epoch: int
    message_size: int
    delay_of: DelayOf
    offset_ns: int = 0
    synchronised: threading.Event = field(default_factory=threading.Event)
    handed_on: list[HandedOn] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    def synchronise(self, window: Window) -> None:
        """Takes the step's clock: what is to wait is held up until then, which a busy machine makes late."""
        self.offset_ns = window.offset_ns
        self.synchronised.set()


class Proxy(FrameForwarder):
    """Stands between a publisher's endpoint and the subscriber that connects to :attr:`endpoint`."""

    def __init__(self, publisher: str) -> None:
        self.plan: Plan | None = None
        """Everything passes at once while there is none."""
        super().__init__(publisher)

    def thread_begins(self) -> None:
        """It is timed to a fraction of a millisecond."""
        first_thread()

    def to_client(self, client: socket.socket, frame: Frame) -> None:
        """What the plan does with it."""
        plan = self.plan
        if plan is None or not frame.is_message or len(frame.body) != plan.message_size:
            client.sendall(frame.whole)
            return
        epoch, _, sequence, due_ns = HEADER.unpack_from(frame.body)
        if epoch != plan.epoch:
            client.sendall(frame.whole)
            return
        delay_ns = plan.delay_of(sequence)
        if delay_ns is None:
            plan.dropped.append(sequence)
            return
        if delay_ns:
            plan.synchronised.wait(SOON_S)
        due_ns -= plan.offset_ns
        while delay_ns and (left_ns := due_ns + delay_ns - time.monotonic_ns()) > 0:
            if self.closing.wait(left_ns / 1e9):
                return
        before_ns = time.monotonic_ns()
        client.sendall(frame.whole)
        plan.handed_on.append(HandedOn(sequence, due_ns, before_ns, time.monotonic_ns()))
