"""The suite's own data ends for ZMQ: a publisher that follows a script and a subscriber that keeps everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import zmq

from hydra.wire.data_message import HEADER
from hydra.wire.messages import PROBE_EPOCH
from tests.conformance.peer import ControlPeer, unpacked

END_MARK = 2**63
"""What an end marker's sequence has beside its epoch."""


@dataclass(frozen=True)
class Arrival:
    """One data message as it came in; times in ns, ``arrived_ns`` is Unix time."""

    epoch: int
    publisher: int
    sequence: int
    time_ns: int
    size: int
    padding: bytes
    arrived_ns: int
    topic: int = -1


class Listener:
    """A SUB socket on a publisher's endpoint; reads inside the control peer's loop."""

    def __init__(
        self,
        peer: ControlPeer,
        endpoint: str,
        *,
        rcvhwm: int = 0,
        clock: Callable[[], int] = time.time_ns,
        topics: bool = False,
    ):
        self.arrivals: list[Arrival] = []
        self._prefix = 4 if topics else 0
        self.clock = clock
        self._peer = peer
        self._socket = peer.socket(zmq.SUB)
        self._socket.rcvhwm = rcvhwm
        self._socket.subscribe(b"")
        self._socket.connect(endpoint)
        peer.watch(self._socket, self._receive)

    def _receive(self) -> None:
        for _ in range(5000):
            try:
                message = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            topic = int.from_bytes(message[: self._prefix]) if self._prefix else -1
            message = message[self._prefix :]
            header = unpacked(self._peer.first_epoch, message)
            self.arrivals.append(Arrival(*header, len(message), message[HEADER.size :], self.clock(), topic))

    def data(self, epoch: int) -> list[Arrival]:
        """The messages of an epoch, in the order of arrival."""
        return [a for a in self.arrivals if a.epoch == epoch]

    def probes(self, sequence: int | None = None) -> list[Arrival]:
        """The probes so far, of one configured epoch or all."""
        return [a for a in self.data(PROBE_EPOCH) if a.sequence < END_MARK and sequence in (None, a.sequence)]

    def end_markers(self, epoch: int | None = None) -> list[Arrival]:
        """The end markers so far, of one epoch or all."""
        return [a for a in self.data(PROBE_EPOCH) if a.sequence >= END_MARK and epoch in (None, a.sequence - END_MARK)]

    def await_probe(self, epoch: int) -> Arrival:
        """Waits for a probe that reports it was configured for this epoch: the subscription works from here on."""
        self._peer.wait(lambda: bool(self.probes(epoch)), f"a probe of epoch {epoch}")
        return self.probes(epoch)[0]

    def read_no_more(self) -> None:
        """Stays connected and leaves everything that comes unread."""
        self._peer.unwatch(self._socket)


class Speaker:
    """An XPUB socket that sends exactly what a test gives it, and sees who subscribes."""

    def __init__(self, peer: ControlPeer, publisher: int, bind: str = "tcp://127.0.0.1:*") -> None:
        self.publisher = publisher
        self.subscriptions = 0
        """Subscriptions that have arrived, departed ones included: one for every data socket that connected."""
        self.present = 0
        self._peer = peer
        self._socket = peer.socket(zmq.XPUB)
        self._socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self._socket.sndhwm = 0
        self._socket.bind(bind)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        peer.watch(self._socket, self._take_subscriptions)

    def _take_subscriptions(self) -> None:
        while True:
            try:
                joined = self._socket.recv(zmq.NOBLOCK)[:1] == b"\x01"
            except zmq.Again:
                return
            self.subscriptions += joined
            self.present += 1 if joined else -1

    def await_subscriptions(self, count: int) -> None:
        """Waits until this many subscriptions have been made, ever."""
        self._peer.wait(lambda: self.subscriptions >= count, f"{count} subscriptions at publisher {self.publisher}")

    def probe(self, epoch: int, publisher: int | None = None, topic: Callable[[int], int] | None = None) -> None:
        """Sends one probe of a publisher that was configured for this epoch."""
        self.send(PROBE_EPOCH, [epoch], publisher=publisher, topic=topic)

    def mark_end(self, epoch: int, publisher: int | None = None) -> None:
        """Sends one end marker of a publisher whose step is over."""
        self.send(PROBE_EPOCH, [END_MARK + epoch], publisher=publisher)

    def send(
        self,
        epoch: int,
        sequences: Iterable[int],
        *,
        publisher: int | None = None,
        time_ns: int | None = None,
        size: int = 24,
        topic: Callable[[int], int] | None = None,
    ) -> None:
        """Sends these sequences in this order; they claim to be due at ``time_ns``, or now.

        ``topic`` is that of each sequence, if there are several.
        """
        who = self.publisher if publisher is None else publisher
        for sequence in sequences:
            prefix = b"" if topic is None else topic(sequence).to_bytes(4)
            self._socket.send(prefix + self._peer.packed(epoch, who, sequence, time_ns or time.time_ns(), size))

    def send_raw(self, message: bytes) -> None:
        """Sends bytes that need not be a message."""
        self._socket.send(message)
