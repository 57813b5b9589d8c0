"""The client's end of a channel: from a client to its group's relay, and from a relay or server to the controller."""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import zmq

from hydra.control.curve_security import Credentials
from hydra.model import GroupRole
from hydra.wire import RESEND_EVERY_S
from hydra.wire.clock import boot_id, network_namespace, time_namespace
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    VERSION,
    Ack,
    EpochCommand,
    FromClient,
    FromController,
    Halt,
    Hello,
    Ping,
    ProtocolError,
    Welcome,
    decode_from_controller,
    encode,
    name_of,
)


def poll_ms(timeout_s: float) -> int:
    """The whole milliseconds of a wait, rounded down, so a poll never lasts longer than the wait."""
    return max(int(timeout_s * 1000), 0)


def wait_for(
    poll: Callable[[int], int],
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until a message arrives, for at most ``timeout_s``.

    The call sleeps for the last fraction of a millisecond; a message that arrives in this time is found afterwards.

    Args:
        poll: waits for at most this many ms (below 0: without limit), and returns whether a message arrived.
        timeout_s: the longest wait in seconds; infinity: no limit.
        clock: returns the time in seconds.
        sleep: sleeps for this many seconds.
    """
    if timeout_s == math.inf:
        poll(-1)
        return
    due = clock() + timeout_s
    # If a signal or a coarse clock cuts a poll short, another one follows.
    while (milliseconds := poll_ms(due - clock())) > 0:
        if poll(milliseconds):
            return
    if (rest := due - clock()) > 0:
        sleep(rest)


_ATTEMPT_EVERY_NS: Final = 1_000_000_000
_REFUSALS: Final = 3
"""A group ends after this many refused attempts in a row, a second apart; a network may refuse for a moment."""


class LostConnection:
    """The state of a lost connection to the controller.

    The client tries to connect to the controller's port once a second. If the controller's process lives, the kernel
    of its host accepts; if it has ended, the kernel refuses at once.

    Attributes:
        due_ns: the time of the next attempt; None while there is a connection.
    """

    def __init__(self) -> None:
        self.due_ns: int | None = None
        self._refusals = 0

    @property
    def controller_ended(self) -> bool:
        """Whether the controller's process has ended."""
        return self._refusals >= _REFUSALS

    def lost(self, now_ns: int) -> None:
        """Records the loss of the connection."""
        if self.due_ns is None:
            self.due_ns = now_ns + _ATTEMPT_EVERY_NS

    def found(self) -> None:
        """Records that there is a connection again."""
        self.due_ns = None
        self._refusals = 0

    def attempted(self, now_ns: int, *, refused: bool) -> None:
        """Records the result of an attempt."""
        self.due_ns = now_ns + _ATTEMPT_EVERY_NS
        self._refusals = self._refusals + 1 if refused else 0


_CONNECTION: Final = zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
_MONITORED: Final = struct.Struct("=Hi")
"""An event of a socket's monitor and its value (zmq_socket_monitor(3)); pyzmq's own reader would import asyncio."""
_ATTEMPT_S: Final = 0.5
_HELLO_EVERY_NS: Final = round(RESEND_EVERY_S * 1e9)
"""The time between two hellos of a client that is not welcomed yet."""


@dataclass(frozen=True, slots=True)
class ProcessLocation:
    """The location of a process in its ``hello``: equal for all processes that it forks, so it is read once."""

    agent: str
    host: str
    boot_id: str
    time_namespace: str
    network_namespace: str

    @classmethod
    def read(cls) -> ProcessLocation:
        """The location of this process."""
        agent = os.environ.get("HYDRA_AGENT", "")
        return cls(agent, socket.gethostname(), boot_id(), time_namespace(), network_namespace())


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The facts that a connection reports about itself in ``hello``."""

    ids: Sequence[int]
    role: GroupRole
    group: str
    incarnation: int
    implementation: str
    versions: dict[str, str]
    here: ProcessLocation
    sources: dict[str, str] = field(default_factory=dict)


class _TwoSockets:
    """Waits for two sockets by their descriptors with a single system call; zmq_poll needs five.

    A descriptor signals only messages that arrive after a call has found nothing on its socket.
    """

    def __init__(self, socket: zmq.Socket[bytes], own: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self._fd = int(socket.fd)
        self._own_fd = int(own.fd)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self._own_fd, select.POLLIN)

    def wait(self, timeout_ms: int) -> tuple[bool, bool]:
        """Waits for at most ``timeout_ms``; returns whether the other socket, and Hydra's own, have something."""
        ready = [fd for fd, _ in self._poll.poll(timeout_ms)]
        return self._fd in ready, self._own_fd in ready


class ControlClient:
    """Connects to a relay or to the controller and exchanges messages with it.

    Args:
        to: the endpoint of a relay; or the controller's with keys, to which the connection is encrypted.
        identity: the facts in its hello.
        context: a relay's ZeroMQ context, which has other sockets as well and is not ended; None makes one, which ends
            with this connection.

    Attributes:
        socket: the socket, for polling together with a data socket; ``POLLIN``: :meth:`receive` may have a message.
        context: the given or new ZeroMQ context, the only one of the process.
    """

    def __init__(
        self, to: Credentials | str, identity: ClientIdentity, context: zmq.Context[zmq.Socket[bytes]] | None = None
    ) -> None:
        self.identity = identity
        self._ids = frozenset(identity.ids)
        self._relays = context is not None
        self.context: zmq.Context[zmq.Socket[bytes]] = context or zmq.Context(io_threads=1)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.routing_id = os.urandom(8).hex().encode()
        self.socket.maxmsgsize = 2 * MAX_MESSAGE_BYTES
        self.socket.linger = 1000
        self.socket.sndhwm = 0  # see send
        self._to = to
        self._monitor: zmq.Socket[bytes] | None = None
        self._refusal = LostConnection()
        if isinstance(to, str):
            self.socket.connect(to)
        else:
            self.socket.curve_serverkey = to.server_public.encode()
            self.socket.curve_publickey = to.client_public.encode()
            self.socket.curve_secretkey = to.client_secret.encode()
            self._monitor = self.socket.get_monitor_socket(_CONNECTION)
            self.socket.connect(to.endpoint)
        self._seq = 0
        self._silence_ns = 0
        self._heard_ns = time.monotonic_ns()
        self.welcomed = False
        self._quiet = False
        # Whether the socket's descriptor will signal the next message. The descriptor does not signal messages that any
        # earlier call on the socket, even a send, has noticed (ZMQ_FD in zmq_getsockopt(3)).
        self._exhausted = False
        self._two_sockets: _TwoSockets | None = None
        self._hello_due_ns = 0
        here = identity.here
        self._hello = Hello(
            ids=list(identity.ids),
            seq=1,
            v=VERSION,
            role=identity.role,
            group=identity.group,
            incarnation=identity.incarnation,
            implementation=identity.implementation,
            versions=identity.versions,
            agent=here.agent,
            host=here.host,
            boot_id=here.boot_id,
            time_namespace=here.time_namespace,
            network_namespace=here.network_namespace,
            pid=os.getpid(),
            sources=identity.sources,
        )
        self.introduce()

    def send(self, message: FromClient, payload: bytes | None = None) -> None:
        """Sends a message, with a second frame if it has one, and sets its ``seq``. Never waits.

        A wait for a dead controller would never end. So the queue has no high-water mark: it grows until the controller
        has been silent for too long and the relay exits. A message is lost if libzmq has closed the connection; the
        controller is silent in that case, too.
        """
        self._seq += 1
        self._exhausted = False
        frame = encode(msgspec.structs.replace(message, seq=self._seq))
        with contextlib.suppress(zmq.Again):
            self.socket.send_multipart([frame] if payload is None else [frame, payload], zmq.NOBLOCK)

    def receive(self, timeout_s: float) -> FromController | None:
        """Waits for the next message for at most ``timeout_s``, and returns it; None if there is none.

        Before it returns a welcome, it records it.
        Until the welcome, it resends hello when that is due, and waits no longer than until then.
        """
        timeout_s = min(timeout_s, self.introduce())
        quiet, self._quiet = self._quiet, False
        if timeout_s > 0:
            wait_for(self.socket.poll, timeout_s)
        elif quiet:
            return None
        try:
            frame = self.socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            self._exhausted = True
            return None
        self._exhausted = False
        self._heard_ns = time.monotonic_ns()
        try:
            message = decode_from_controller(frame)
        except ProtocolError:
            return None
        if message.ids and not self._ids.intersection(message.ids):
            return None
        if isinstance(message, Welcome):
            self.welcomed = True
            self._silence_ns = int(message.silence_s * 1e9)
        return message

    def wait_with(self, socket: zmq.Socket[bytes], timeout_s: float) -> bool:
        """Waits until ``socket`` or this connection may have a message; returns whether ``socket`` may.

        If this connection has no message, the next :meth:`receive` without a wait does not try, because the exception
        for an empty socket takes longer than ten messages of data.

        Args:
            socket: the same socket in every call; its last call must have found nothing to receive.
            timeout_s: the longest wait in seconds, rounded down to whole milliseconds.
        """
        if self._two_sockets is None or self._two_sockets.socket is not socket:
            self._two_sockets = _TwoSockets(socket, self.socket)
        waiting = not self._exhausted and bool(int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)
        self._exhausted = not waiting
        readable, own = self._two_sockets.wait(0 if waiting else poll_ms(timeout_s))
        self._quiet = not waiting and not own
        return readable

    def introduce(self) -> float:
        """Sends hello if that is due; returns the seconds until the next one, infinity after the welcome."""
        if self.welcomed:
            return math.inf
        now_ns = time.monotonic_ns()
        if now_ns >= self._hello_due_ns:
            self._hello_due_ns = now_ns + _HELLO_EVERY_NS
            self.send(self._hello)
        return (self._hello_due_ns - now_ns) / 1e9

    def acknowledge(self, command: EpochCommand | Halt, ids: Sequence[int] = ()) -> None:
        """Acknowledges a command for these clients, or for all clients of this connection."""
        named, now_ns = list(ids or self.identity.ids), time.monotonic_ns()
        self.send(
            Ack(ids=named, seq=1, epoch=command.epoch, number=command.number, command=name_of(command), time_ns=now_ns)
        )

    def answer(self, ping: Ping) -> None:
        """Answers a ping with this host's time."""
        ids, now_ns = list(self.identity.ids), time.monotonic_ns()
        self.send(Ack(ids=ids, seq=1, epoch=0, command=name_of(ping), time_ns=now_ns, echo=ping.time_ns))

    def end_reason(self) -> str:
        """Why the controller counts as dead, as a part of a sentence; "" if it does not.

        The controller counts as dead if it was silent for longer than its welcome allowed, or if its process has ended:
        then the connection is lost, and its host refuses a new one. May wait for a moment if there is no connection.
        """
        if self._silence_ns and time.monotonic_ns() - self._heard_ns > self._silence_ns and not self.socket.poll(0):
            # (If this process was stopped or had no CPU, there may be unread pings.)
            return "has been silent for too long"
        return "has ended" if self._refused() else ""

    def _refused(self) -> bool:
        if self._monitor is None or isinstance(self._to, str):
            return False
        while self._monitor.poll(0):
            event, _ = _MONITORED.unpack(self._monitor.recv_multipart()[0])
            if event == zmq.EVENT_DISCONNECTED:
                self._refusal.lost(time.monotonic_ns())
            else:
                self._refusal.found()
        due_ns = self._refusal.due_ns
        if due_ns is not None and time.monotonic_ns() >= due_ns:
            refused = _refuses(self._to.endpoint)
            self._refusal.attempted(time.monotonic_ns(), refused=refused)
        return self._refusal.controller_ended

    def close(self) -> None:
        """Closes the channel; sent messages have a second to leave the socket."""
        if self._monitor is not None:
            self.socket.disable_monitor()
            self._monitor.close(0)
        self.socket.close()
        if not self._relays:
            self.context.term()


def _refuses(endpoint: str) -> bool:
    """Whether the host of this endpoint refuses a connection, so no process listens there."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), _ATTEMPT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False  # the network is silent, which does not show that the process ended
    return False
