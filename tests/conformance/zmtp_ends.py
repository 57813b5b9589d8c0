"""A publisher on plain sockets, which sends the bytes that a test gives it: ZMTP 3.0, correct or not."""

from __future__ import annotations

import contextlib
import socket
import struct

from hydra.wire.messages import PROBE_EPOCH
from tests.conformance.peer import ControlPeer

MORE, LONG, COMMAND = 1, 2, 4


def greeting(mechanism: bytes = b"NULL", major: int = 3) -> bytes:
    """The first bytes of a server."""
    return b"\xff" + bytes(7) + b"\x01\x7f" + bytes([major, 0]) + mechanism.ljust(20, b"\0") + b"\x01" + bytes(31)


def frame(body: bytes, flags: int = 0) -> bytes:
    """One frame."""
    size = struct.pack(">Q", len(body)) if flags & LONG or len(body) > 255 else bytes([len(body)])
    return bytes([flags | (LONG if len(size) > 1 else 0)]) + size + body


def command(name: bytes, data: bytes = b"") -> bytes:
    """A frame with a command."""
    return frame(bytes([len(name)]) + name + data, COMMAND)


def ready(kind: bytes = b"PUB") -> bytes:
    """READY with the socket type."""
    return command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


HELLO = greeting() + ready()
"""All bytes of a publisher before messages."""


class Caller:
    """A subscriber's connection, as the publisher has it."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.heard = b""
        self.ended = False
        """Whether the subscriber has closed it."""

    def send(self, words: bytes) -> None:
        """Sends these bytes."""
        self.socket.sendall(words)


class PlainPublisher:
    """Listens, sends the same bytes to every caller, and keeps the callers' bytes."""

    def __init__(self, peer: ControlPeer, publisher: int, opening: bytes = HELLO, port: int = 0) -> None:
        self.publisher = publisher
        self.opening = opening
        self.callers: list[Caller] = []
        self._peer = peer
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self.endpoint = f"tcp://127.0.0.1:{self.port}"
        peer.watch(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        accepted, _ = self._socket.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        caller = Caller(accepted)
        self.callers.append(caller)
        with contextlib.suppress(OSError):
            caller.send(self.opening)
        self._peer.watch(accepted.fileno(), lambda: self._listen(caller))

    def _listen(self, caller: Caller) -> None:
        try:
            words = caller.socket.recv(65536)
        except ConnectionError:
            words = b""
        caller.heard += words
        if not words:
            caller.ended = True
            self._hang_up(caller)

    def _hang_up(self, caller: Caller) -> None:
        if caller.socket.fileno() >= 0:
            self._peer.unwatch(caller.socket.fileno())
            caller.socket.close()

    def called(self, times: int) -> Caller:
        """Waits until there were this many calls; the last one."""
        self._peer.wait(lambda: len(self.callers) >= times, f"{times} callers")
        return self.callers[times - 1]

    def heard(self, caller: Caller, words: bytes) -> None:
        """Waits until this caller has reported all of this, and no more."""
        self._peer.wait(lambda: caller.heard == words or len(caller.heard) > len(words), f"{words!r}")
        assert caller.heard == words

    def probe(self, caller: Caller, epoch: int) -> None:
        """Sends one probe."""
        caller.send(self.message(PROBE_EPOCH, epoch))

    def message(self, epoch: int, sequence: int, size: int = 24) -> bytes:
        """The frame of a message."""
        return frame(self._peer.packed(epoch, self.publisher, sequence, 1, size))

    def close(self) -> None:
        """Hangs up, and listens no more."""
        for caller in self.callers:
            self._hang_up(caller)
        if self._socket.fileno() >= 0:
            self._peer.unwatch(self._socket.fileno())
            self._socket.close()
