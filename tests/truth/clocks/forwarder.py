"""A forwarder between the controller and other hosts that delays each direction by a given time, and logs that."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.forwarder import Frame, FrameForwarder
from tests.truth.priority import first_thread


@dataclass(frozen=True, slots=True)
class Delay:
    """What a frame waits for at least, and the mean of the exponential that is added to it, ns."""

    least_ns: int = 0
    jitter_ns: int = 0

    def drawn_by(self, seed: int) -> Callable[[], int]:
        """A source of such delays."""
        chance = Random(seed)
        return lambda: self.least_ns + (round(chance.expovariate(1 / self.jitter_ns)) if self.jitter_ns else 0)


class Forwarder(FrameForwarder):
    """Holds up what passes on its way to a host (``to_host``) and to the controller (``back``).

    Frames leave it in their order; one that waits holds up those behind it.

    Attributes:
        to_host_ns: for how long each frame to a host was held up; the handshake's are among them.
        back_ns: the same of the frames to the controller.
    """

    def __init__(self, controller: str, present: Delay, back: Delay, seed: int = 1) -> None:
        self.to_host_ns: list[int] = []
        self.back_ns: list[int] = []
        self._to_host, self._back = present.drawn_by(seed), back.drawn_by(seed + 1)
        super().__init__(controller)

    def thread_begins(self) -> None:
        """It is timed to a fraction of a millisecond."""
        first_thread()

    def to_client(self, client: socket.socket, frame: Frame) -> None:
        """Later, by the delay there."""
        self._hold(client, frame, self._to_host(), self.to_host_ns)

    def to_server(self, server: socket.socket, frame: Frame) -> None:
        """Later, by the delay back."""
        self._hold(server, frame, self._back(), self.back_ns)

    def _hold(self, target: socket.socket, frame: Frame, delay_ns: int, log: list[int]) -> None:
        arrived_ns = time.monotonic_ns()
        while (left_ns := arrived_ns + delay_ns - time.monotonic_ns()) > 0:
            if self.closing.wait(left_ns / 1e9):
                return
        log.append(time.monotonic_ns() - arrived_ns)
        target.sendall(frame.whole)
