"""A client's end of the channel: one DEALER socket for all clients that the process carries."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import zmq

from hydra.control.curve import Credentials
from hydra.control.outstanding import RESEND_EVERY_S
from hydra.control.waiting import wait
from hydra.model import GroupRole
from hydra.wire.clock import boot_id, network_namespace, time_namespace
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    FromClient,
    FromController,
    Hello,
    Ping,
    ProtocolError,
    Quit,
    Welcome,
    decode_from_controller,
    encode,
)

_HELLO_EVERY_NS: Final = round(RESEND_EVERY_S * 1e9)
"""How often a client says hello until it is welcomed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a connection reports about itself in ``hello``."""

    ids: Sequence[int]
    role: GroupRole
    group: str
    warden: bool
    incarnation: int
    implementation: str
    versions: dict[str, str]
    agent: str


class ControlClient:
    """Connects to the controller and exchanges messages with it.

    Attributes:
        socket: for polling beside a data socket; ``POLLIN`` means that :meth:`receive` may have something.
        context: the process's only ZeroMQ context.
    """

    def __init__(self, credentials: Credentials, identity: Identity) -> None:
        self.identity = identity
        self._ids = frozenset(identity.ids)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.routing_id = os.urandom(8).hex().encode()
        self.socket.curve_serverkey = credentials.server_public.encode()
        self.socket.curve_publickey = credentials.client_public.encode()
        self.socket.curve_secretkey = credentials.client_secret.encode()
        self.socket.maxmsgsize = 2 * MAX_MESSAGE_BYTES
        self.socket.linger = 1000
        self.socket.sndhwm = 0  # see send
        self.socket.connect(credentials.endpoint)
        self._seq = 0
        self._silence_ns = 0
        self._heard_ns = time.monotonic_ns()
        self._welcomed = False
        self._hello_due_ns = 0
        self._hello = Hello(
            ids=list(identity.ids),
            seq=1,
            role=identity.role,
            group=identity.group,
            warden=identity.warden,
            incarnation=identity.incarnation,
            implementation=identity.implementation,
            versions=identity.versions,
            agent=identity.agent,
            host=socket.gethostname(),
            boot_id=boot_id(),
            time_namespace=time_namespace(),
            network_namespace=network_namespace(),
            pid=os.getpid(),
        )
        self._introduce()

    def send(self, message: FromClient) -> None:
        """Sends a message; its ``seq`` is set here. Never waits.

        To wait for a controller that is gone would never end. So the queue has no high-water mark: it grows until the
        controller has been silent for too long and the client exits. A message is lost if libzmq has closed the
        connection; the controller is silent then as well.
        """
        self._seq += 1
        with contextlib.suppress(zmq.Again):
            self.socket.send(encode(msgspec.structs.replace(message, seq=self._seq)), zmq.NOBLOCK)

    def receive(self, timeout_s: float) -> FromController | None:
        """The next message, waiting at most ``timeout_s`` for it; None if there is none.

        Pings are answered, and a welcome is recorded, before they are returned. Before the welcome, hello is sent again
        when that is due, and the wait is no longer than until then.
        """
        if not self._welcomed:
            timeout_s = min(timeout_s, self._introduce())
        if timeout_s > 0:
            wait(self.socket.poll, timeout_s)
        try:
            frame = self.socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None
        self._heard_ns = time.monotonic_ns()
        try:
            message = decode_from_controller(frame)
        except ProtocolError:
            return None
        if message.ids and not self._ids.intersection(message.ids):
            return None
        if isinstance(message, Quit) and self._meant_for_an_earlier_one(message):
            return None
        if isinstance(message, Welcome):
            self._welcomed = True
            self._silence_ns = int(message.silence_s * 1e9)
        elif isinstance(message, Ping) and message.reply:
            self.acknowledge(0, "ping", echo=message.time_ns)
        return message

    def _meant_for_an_earlier_one(self, message: Quit) -> bool:
        named = message.incarnation
        return not self.identity.warden and named is not None and self.identity.incarnation > named

    def _introduce(self) -> float:
        """Sends hello if that is due; returns the seconds until it is due again."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._hello_due_ns:
            self._hello_due_ns = now_ns + _HELLO_EVERY_NS
            self.send(self._hello)
        return (self._hello_due_ns - now_ns) / 1e9

    def acknowledge(self, epoch: int, command: str, ids: Sequence[int] = (), *, echo: int = 0) -> None:
        """Confirms that a command took effect, for these clients or all clients of this connection."""
        named = list(ids or self.identity.ids)
        self.send(Ack(ids=named, seq=1, epoch=epoch, command=command, time_ns=time.monotonic_ns(), echo=echo))

    def silent(self) -> bool:
        """Whether the controller has been silent for longer than its welcome allowed."""
        if not self._silence_ns or time.monotonic_ns() - self._heard_ns <= self._silence_ns:
            return False
        # If this process was stopped or had no CPU, pings may have arrived that it has not read yet.
        return not self.socket.poll(0)

    def close(self) -> None:
        """Closes the channel; messages that were sent get a second to leave the socket."""
        self.socket.close()
        self.context.term()
