"""A group's relay: the process to which its clients connect, and which has the group's connection to the controller.

Clients connect through a socket file in a folder that only this user may enter. The parent opens that file and removes
it with its folder before it forks the first client, so nothing is left behind and no other process can connect.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zmq

from hydra.client.host_monitor import monitor_of
from hydra.client.linux_process import raise_open_files, sockets_folder
from hydra.client.relay_state import RelayState
from hydra.control.control_client import ClientIdentity, ControlClient
from hydra.control.curve_security import Credentials
from hydra.wire import EXIT_DISMISSED, EXIT_STRANDED, EXIT_USAGE
from hydra.wire.messages import (
    ChildExit,
    FromClient,
    Look,
    Ping,
    ProtocolError,
    Watch,
    decode_from_client,
)
from hydra.wire.report_batch import MAX_BATCH_BYTES

KILL: Final = struct.Struct("=II")
"""A client that has to be killed: its id, and the highest incarnation to kill."""
SOCKET: Final = "s"
"""The name of the socket in its folder."""
_LONGEST_PATH: Final = 80
"""Longest path of a socket file, in bytes; the kernel's limit is 107."""
_WAITING_CONNECTIONS: Final = 4096
_MESSAGES_AT_A_TIME: Final = 1000
"""Most messages that are read from one side before the other side is read."""
_KILLS_AGAIN_S: Final = 0.05
"""Wait before kills that did not fit into the parent's pipe are written again, s."""
_LAST_MESSAGES_MS: Final = 20
"""Time without a message after which clients that have ended are taken to have sent all, ms."""


@dataclass(frozen=True, slots=True)
class RelayPipes:
    """The pipes that connect a relay with its parent, as file descriptors.

    The relay writes the path of the socket file to ``place``, and to ``kills`` the clients to be killed, each as
    :data:`KILL`. It reads the ends of clients from ``deaths``, one JSON line each, until the parent closes it.
    """

    place: int
    deaths: int
    kills: int


def relay_main(
    credentials: Credentials, identity: ClientIdentity, pipes: RelayPipes, welcome_within_s: float, parent: int
) -> int:
    """Runs a relay; returns its exit code.

    Args:
        credentials: keys for the connection to the controller.
        identity: the group's identity, which the relay sends in ``hello``.
        pipes: the pipes to and from the parent.
        welcome_within_s: time limit for the controller's welcome, s.
        parent: pid of the group's first process; ``watch`` reads its descendants.
    """
    raise_open_files()  # each client's connection is an open file
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
    inner = context.socket(zmq.ROUTER)
    inner.sndhwm = inner.rcvhwm = 0
    inner.backlog = _WAITING_CONNECTIONS
    inner.maxmsgsize = MAX_BATCH_BYTES
    inner.linger = 0
    folder = sockets_folder()
    try:
        path = bind(inner, folder)
    except (OSError, zmq.ZMQError) as e:
        sys.stderr.write(
            f"hydra group {identity.group}: no folder for its clients' socket in {folder}: {e.strerror}; "
            "set TMPDIR to one that may be written to\n"
        )
        return EXIT_USAGE
    os.write(pipes.place, os.fsencode(path) + b"\n")
    os.close(pipes.place)
    control = ControlClient(credentials, identity, context)
    try:
        return _Relay(control, inner, identity, pipes, parent).run(credentials.endpoint, welcome_within_s)
    finally:
        inner.close()
        control.close()
        context.term()


def bind(inner: zmq.Socket[bytes], folder: str) -> Path:
    """Binds a socket to a file in a new folder in ``folder``, or in /tmp if its path would be too long.

    Raises:
        OSError, zmq.ZMQError: binding failed; nothing is left behind.
    """
    made = _folder_in(folder)
    if len(os.fsencode(made / SOCKET)) > _LONGEST_PATH:
        made.rmdir()
        made = _folder_in("/tmp")  # noqa: S108  # only this user can enter the new folder
    try:
        inner.bind(f"ipc://{made / SOCKET}")
    except zmq.ZMQError:
        made.rmdir()
        raise
    return made / SOCKET


def _folder_in(folder: str) -> Path:
    """Makes a folder that only this user may enter.

    (``tempfile`` would make the group's parent import compression modules.)
    """
    made = Path(folder, f"hydra-{os.urandom(8).hex()}")
    made.mkdir(0o700)
    return made


class _Relay:
    """The sockets and pipes of a relay: reads them, and writes to them."""

    def __init__(
        self, control: ControlClient, inner: zmq.Socket[bytes], identity: ClientIdentity, pipes: RelayPipes, parent: int
    ) -> None:
        self._control = control
        self._inner = inner
        self._pipes = pipes
        self._group = identity.group
        self._relaying = RelayState(identity.ids, identity.role, self)
        self._watcher = monitor_of(identity.ids, control.send, parent, some=identity.role == "subscriber")
        self._torn = b""
        self._kills: deque[bytes] = deque()
        os.set_blocking(pipes.kills, False)
        self._poller = zmq.Poller()
        for socket in (control.socket, inner, pipes.deaths):
            self._poller.register(socket, zmq.POLLIN)

    def run(self, endpoint: str, welcome_within_s: float) -> int:
        """Relays until the parent closes its pipe or the controller is silent for too long; returns the exit code."""
        deadline_ns = time.monotonic_ns() + round(welcome_within_s * 1e9)
        while True:
            introduced_s = self._take_from_controller()
            self._take_from_clients()
            now_ns = time.monotonic_ns()
            due_ns = self._relaying.work(now_ns)
            watch_s = self._watcher.work()
            self._write_kills()
            if not self._control.welcomed and not self._relaying.dismissed and now_ns >= deadline_ns:
                sys.stderr.write(f"no welcome from the controller at {endpoint} within {welcome_within_s:g} s\n")
                return EXIT_STRANDED
            if why := self._control.end_reason():
                sys.stderr.write(f"hydra group {self._group}: the controller {why}\n")
                return EXIT_STRANDED
            due_s = math.inf if due_ns is None else (due_ns - now_ns) / 1e9
            wait_s = max(0.0, min(_KILLS_AGAIN_S if self._kills else 1.0, introduced_s, watch_s, due_s))
            if self._pipes.deaths in dict(self._poller.poll(math.ceil(1000 * wait_s))) and not self._take_deaths():
                return EXIT_DISMISSED

    # --- outputs of its state
    # ------------------------------------------------------------------------------------------

    def to_controller(self, message: FromClient, payload: bytes | None = None) -> None:
        """Sends a message to the controller."""
        self._control.send(message, payload)

    def to_client(self, name: bytes, frame: bytes) -> None:
        """Sends a frame to a client; a frame for a client that has just disconnected is dropped."""
        with contextlib.suppress(zmq.ZMQError):
            self._inner.send_multipart((name, frame), zmq.NOBLOCK)

    def kill(self, client: int, most: int) -> None:
        """Asks the parent to kill a client; a request that its pipe has no space for waits here, so neither blocks."""
        self._kills.append(KILL.pack(client, most))
        self._write_kills()

    def _write_kills(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._kills:
                os.write(self._pipes.kills, self._kills[0])
                self._kills.popleft()

    # --- inputs
    # --------------------------------------------------------------------------------------------------------

    def _take_from_controller(self) -> float:
        """Obeys the messages that have arrived; returns seconds until ``hello`` has to be resent."""
        for _ in range(_MESSAGES_AT_A_TIME):
            message = self._control.receive(0)
            if message is None:
                break
            if isinstance(message, Watch):
                self._watcher.take(message)
            elif isinstance(message, Look):
                # Imported by the one relay of a host that reads these files.
                from hydra.client.kernel_files import texts_for

                self._control.send(texts_for(message, self._control.identity.ids))
            elif isinstance(message, Ping):
                if message.reply:
                    self._control.answer(message)
            else:
                self._relaying.obey(message, time.monotonic_ns())
        return self._control.introduce()

    def _take_from_clients(self) -> None:
        for _ in range(_MESSAGES_AT_A_TIME):
            try:
                name, *frames = self._inner.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            # A frame that is no message is ignored, as on every other connection.
            with contextlib.suppress(ProtocolError, ValueError):
                frame, *more = frames
                if len(more) > 1:
                    continue
                payload = more[0] if more else None
                self._relaying.take_message(name, decode_from_client(frame), time.monotonic_ns(), payload)

    def _take_deaths(self) -> bool:
        """Takes the ends of clients from the parent's pipe; False if the pipe was closed, after all was sent."""
        # A client's last messages were written before the parent noticed its end.
        self._take_from_clients()
        data = os.read(self._pipes.deaths, 65536)
        if not data:
            while self._inner.poll(_LAST_MESSAGES_MS):
                self._take_from_clients()
            self._relaying.end(time.monotonic_ns())
            return False
        *lines, self._torn = (self._torn + data).split(b"\n")
        for line in lines:
            death = json.loads(line)
            self._relaying.take_exit(ChildExit(ids=[death.pop("id")], seq=1, **death))
        return True
