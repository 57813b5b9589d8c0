"""The controller's end of the channel: one ROUTER socket, which is served while the run waits."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import zmq
from pyroaring import BitMap

from hydra.control import curve_security
from hydra.control.curve_security import ZapHandler
from hydra.control.id_bitmaps import bitmap, encode_ids
from hydra.control.roster import PeerWelcome, Roster
from hydra.errors import StepError
from hydra.wire import RESEND_EVERY_S
from hydra.wire.clock import boot_id, network_namespace, time_namespace
from hydra.wire.messages import MAX_MESSAGE_BYTES, VERSION, Evict, FromController, Ping, Quit, Welcome, encode
from hydra.wire.report_batch import MAX_BATCH_BYTES

_PING_EVERY_NS: Final = 10_000_000_000
"""The time between two pings: a third of the default silence after which a relay exits."""
_QUIT_AGAIN_NS: Final = round(RESEND_EVERY_S * 1e9)
_QUITS: Final = 5
"""How often a relay gets the command for clients to quit, which may be lost."""
_DRAIN_AT_MOST: Final = 2000
_DRAIN_FOR_AT_MOST_NS: Final = 200_000_000
_BACKLOG: Final = 4096
_REFUSED_HANDSHAKES: Final = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Controller:
    """Exchanges messages with every client of a run, through the relay of its group, and with servers.

    The controller has no thread: :meth:`poll` and :meth:`wait_until`, which the run calls all the time, serve the
    sockets.

    Attributes:
        roster: the connected clients and their answers.
        environment: the environment variables with which a group connects (they contain the run's client key).
        undeliverable: messages that the socket rejected (peer disconnected, or its queue full).
    """

    def __init__(self, run: str, *, host: str = "127.0.0.1", silence_s: float = 30.0) -> None:
        self.roster = Roster((boot_id(), time_namespace()), network_namespace())
        self.undeliverable = 0
        self._run = run
        self._silence_s = silence_s
        self._keys = curve_security.generate()
        self._context = zmq.Context(io_threads=1)
        self._gatekeeper = ZapHandler(self._context, {self._keys.client_public})
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.curve_server = True
        self._socket.curve_publickey = self._keys.server_public.encode()
        self._socket.curve_secretkey = self._keys.server_secret.encode()
        self._socket.backlog = _BACKLOG
        self._socket.router_mandatory = 1
        self._socket.router_handover = 1
        self._socket.sndhwm = 1000
        # Twice the protocol's limit, so a slightly too long message is rejected with its reason, not by a closed
        # connection.
        self._socket.maxmsgsize = 2 * MAX_BATCH_BYTES
        self._socket.linger = 1000
        self._monitor = self._socket.get_monitor_socket(_REFUSED_HANDSHAKES)
        self._handshakes_refused = 0
        self._socket.bind(f"tcp://{host}:*")
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.environment = curve_security.environment(self._keys, self.endpoint)
        self._next_ping_ns = time.monotonic_ns() + _PING_EVERY_NS
        self._leaving: list[tuple[bytes, bytes]] = []
        self._quits_left = 0
        self._next_quit_ns = 0
        self._poller = zmq.Poller()
        for socket in (self._socket, self._gatekeeper.socket, self._monitor):
            self._poller.register(socket, zmq.POLLIN)

    def refused(self) -> Counter[str]:
        """The numbers of rejected peers and messages by reason, and of the controller's messages that were not sent."""
        counts = Counter(self.roster.refused)
        if self._handshakes_refused:
            counts["handshake"] = self._handshakes_refused
        if self._gatekeeper.denied:
            counts["wrong_key"] = self._gatekeeper.denied
        if self.undeliverable:
            counts["undeliverable"] = self.undeliverable
        return counts

    def poll(self, timeout_s: float) -> None:
        """Waits for messages for at most ``timeout_s``, and handles them; sends pings when they are due."""
        now_ns = time.monotonic_ns()
        # Waits are rounded up; otherwise the last part of a millisecond would be many polls.
        due_ms = -((now_ns - self.roster.timekeeper.next_due_ns(now_ns)) // 1_000_000)
        ready = dict(self._poller.poll(max(0, min(math.ceil(timeout_s * 1000), due_ms))))
        if self._gatekeeper.socket in ready:
            self._gatekeeper.serve()
        if self._monitor in ready:
            self._count_refused_handshakes()
        if self._socket in ready:
            self._receive()
        for identity, time_ns in self.roster.timekeeper.due(time.monotonic_ns()):
            # A ping that cannot be sent counts as lost: another follows.
            self._reaches(identity, encode(Ping(time_ns=time_ns, reply=True)))
        self._have_hosts_watched()
        for identity, look in self.roster.looks.due(time.monotonic_ns()):
            self._reaches(identity, encode(look))
        if time.monotonic_ns() >= self._next_ping_ns:
            self._next_ping_ns = time.monotonic_ns() + _PING_EVERY_NS
            self.broadcast(Ping(time_ns=time.monotonic_ns()))
        if self._leaving and time.monotonic_ns() >= self._next_quit_ns:
            self._quit_again()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Serves the channel until ``condition()`` holds; False if it does not within ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.poll(min(left, 0.05))
        return True

    def send_to(self, ids: Iterable[int], message: FromController) -> None:
        """Sends a command to these clients."""
        for identity, frame in self._addressed(self.roster.identities(ids), message):
            self._send(identity, frame)

    def broadcast(self, message: FromController) -> None:
        """Sends a command to every relay and server."""
        frame = encode(message)
        for identity in self.roster.everyone():
            self._send(identity, frame)

    def watch_hosts(self, epoch: int, every_s: float) -> None:
        """Has other hosts watched until :meth:`end_watch`, and the threads of publishers and servers."""
        self.roster.watch.begin(epoch, every_s)
        self._have_hosts_watched()

    def end_watch(self) -> None:
        """Ends the watch; the last samples arrive soon."""
        self.roster.watch.end()
        self._have_hosts_watched()

    def quit(self, ids: Iterable[int] | None = None) -> None:
        """Sends these clients, or all, the command to exit; relays pass it to clients that have not joined yet, too.

        The command has no answer: it is resent a few times, every 2 s, to relays that are connected.
        """
        if ids is None:
            self.broadcast(Quit())
            return
        addressed = self._addressed(self.roster.responsible(ids), Quit())
        for identity, frame in addressed:
            self._send(identity, frame)
        self._leaving += addressed
        self._quits_left = _QUITS - 1
        self._next_quit_ns = time.monotonic_ns() + _QUIT_AGAIN_NS

    def evict(self, group: str, ids: Iterable[int], incarnation: int) -> None:
        """Has the group's relay kill these clients, up to this incarnation; the group replaces them."""
        identity = self.roster.relay(group)
        if identity is not None:
            self._send(identity, encode(Evict(incarnation=incarnation), encode_ids(bitmap(ids))))

    def close(self) -> None:
        """Closes the channel; sent messages have a second to leave the socket."""
        if self._socket.closed:
            return
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._gatekeeper.close()
        self._context.term()

    def _addressed(self, shares: Iterable[tuple[bytes, BitMap]], message: FromController) -> list[tuple[bytes, bytes]]:
        """Each of these connections with the frame for its clients; the same frame if all of its clients are meant."""
        everyone = encode(message)
        return [
            (
                identity,
                everyone if self.roster.carries_only(identity, ids) else encode(message, encode_ids(ids)),
            )
            for identity, ids in shares
        ]

    def _have_hosts_watched(self) -> None:
        for identity, watch in self.roster.watch.due(time.monotonic_ns()):
            # Like the pings, the command is resent.
            self._reaches(identity, encode(watch))

    def _quit_again(self) -> None:
        # A relay that cannot be reached has ended with its group, as wanted.
        self._leaving = [(identity, frame) for identity, frame in self._leaving if self._reaches(identity, frame)]
        self._next_quit_ns = time.monotonic_ns() + _QUIT_AGAIN_NS
        self._quits_left -= 1
        if not self._quits_left:
            self._leaving.clear()

    def _send(self, identity: bytes, frame: bytes) -> None:
        self.undeliverable += not self._reaches(identity, frame)

    def _reaches(self, identity: bytes, frame: bytes) -> bool:
        """Sends a frame; False if the peer is disconnected, or its queue is full.

        Raises:
            StepError: it is longer than clients accept.
        """
        if len(frame) > MAX_MESSAGE_BYTES:
            raise StepError(
                f"a command of {len(frame)} bytes is longer than the {MAX_MESSAGE_BYTES} bytes that clients accept",
                "use fewer partitions or publishers",
            )
        try:
            self._socket.send_multipart((identity, frame), zmq.NOBLOCK)
        except zmq.ZMQError as e:
            if e.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            return False
        return True

    def _receive(self) -> None:
        # The number of messages a call is limited: a flood, or batches that take long to decode, cannot delay pings.
        enough_ns = time.monotonic_ns() + _DRAIN_FOR_AT_MOST_NS
        for _ in range(_DRAIN_AT_MOST):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            received_ns = time.monotonic_ns()
            if not 2 <= len(frames) <= 3:
                self.roster.refused["malformed"] += 1
                continue
            identity, frame, *rest = frames
            welcomed = self.roster.receive(identity, frame, received_ns, rest[0] if rest else None)
            if welcomed is not None:
                self._welcome(identity, welcomed)
            if received_ns >= enough_ns:
                return

    def _welcome(self, identity: bytes, welcomed: PeerWelcome) -> None:
        if welcomed.welcome is not None:
            welcome = Welcome(v=VERSION, run=self._run, silence_s=self._silence_s)
            self._send(identity, encode(welcome, encode_ids(welcomed.welcome)))
        if welcomed.dismissed:
            self._send(identity, encode(Quit(), encode_ids(welcomed.dismissed)))

    def _count_refused_handshakes(self) -> None:
        while self._monitor.poll(0):
            self._monitor.recv_multipart()  # pyzmq's own reader, in zmq.utils.monitor, would import asyncio
            self._handshakes_refused += 1
