"""TCP forwarders: one in front of any server, and one in front of a ZMQ socket.

The second sees every frame and decides what becomes of it. It reads ZMTP's frames itself (ZMTP 3,
https://rfc.zeromq.org/spec/23/), so that no queue of libzmq's stands between what it decides and either end's socket.
Frames leave it in their order.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.suite.waiting import SOON_S

_GREETING_BYTES = 64
_LONG, _COMMAND = 0x02, 0x04
"""Flags of a frame: its length has eight bytes; it is no message."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: all of its bytes, and those behind its header, which are encrypted where the peers use CURVE."""

    flags: int
    whole: bytes
    body: bytes

    @property
    def is_message(self) -> bool:
        """Whether it is not one of the protocol's own commands, of which a handshake is made."""
        return not self.flags & _COMMAND


class TcpForwarder:
    """Stands between a server (``host:port``) and a client that connects to :attr:`address`.

    Everything passes at once; a subclass overrides a direction, or :meth:`connected`.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server((host, 0), backlog=1024)
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        self.closing = threading.Event()
        self._open: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self.run(self._accept)

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        """A client has connected, and this connection to the server is its own: starts what passes data on."""
        self.run(self.up, client, server)
        self.run(self.down, server, client)

    def up(self, client: socket.socket, server: socket.socket) -> None:
        """Passes on what a client sends."""
        while data := client.recv(65_536):
            server.sendall(data)
        hang_up(server)

    def down(self, server: socket.socket, client: socket.socket) -> None:
        """Passes on what the server sends."""
        self.up(server, client)

    def close(self) -> None:
        """Ends every connection."""
        self.closing.set()
        hang_up(*self._open)
        for thread in self._threads:
            thread.join(SOON_S)
        for end in self._open:
            end.close()

    def run(self, work: Callable[..., None], *arguments: object) -> None:
        """Does it in a thread, which ends when a connection does."""
        thread = threading.Thread(target=self._until_closed, args=(work, *arguments), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _until_closed(self, work: Callable[..., None], *arguments: object) -> None:
        # A closed socket, on either side or because of close(), ends the connection.
        with contextlib.suppress(OSError):
            work(*arguments)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._server)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append(end)
            self.connected(client, server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class CuttingForwarder(TcpForwarder):
    """Ends each connection when the client has sent ``most`` bytes."""

    def __init__(self, server: str, most: int) -> None:
        self._most = most
        super().__init__(server)

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        """See :class:`TcpForwarder`."""
        self.run(self._pass, client, server, self._most)
        self.run(self._pass, server, client, 1 << 60)

    def _pass(self, source: socket.socket, target: socket.socket, most: int) -> None:
        while most > 0 and (data := source.recv(65_536)):
            most -= len(data)
            target.sendall(data)
        hang_up(source, target)


class FrameForwarder(TcpForwarder):
    """Stands between a server's endpoint (``tcp://host:port``) and a client that connects to :attr:`endpoint`.

    Everything passes at once; a subclass overrides :meth:`to_client` or :meth:`to_server`.
    """

    def __init__(self, server: str) -> None:
        super().__init__(server.removeprefix("tcp://"))
        self.endpoint = f"tcp://{self.address}"

    def to_client(self, client: socket.socket, frame: Frame) -> None:
        """Passes a frame of the server's on, or not."""
        client.sendall(frame.whole)

    def to_server(self, server: socket.socket, frame: Frame) -> None:
        """Passes a frame of a client's on, or not."""
        server.sendall(frame.whole)

    def thread_begins(self) -> None:
        """Called in every thread that frames are passed on by."""

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        """Passes frames on in both directions."""
        self.run(self._forward, server, client, self.to_client)
        self.run(self._forward, client, server, self.to_server)

    def _forward(
        self, source: socket.socket, target: socket.socket, pass_on: Callable[[socket.socket, Frame], None]
    ) -> None:
        self.thread_begins()
        try:
            # It comes in parts, each in answer to one of the other side's.
            left = _GREETING_BYTES
            while left:
                part = source.recv(left)
                if not part:
                    return
                left -= len(part)
                target.sendall(part)
            for frame in _frames(source.makefile("rb", buffering=1 << 20).read):
                pass_on(target, frame)
        finally:
            # Both sides learn of it; a client connects again.
            hang_up(source, target)


def hang_up(*ends: socket.socket) -> None:
    """Ends connections, also those that have ended already; a process that reads from one learns of it."""
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """All of it; a stream gives less only when it has ended."""
    data = read(size)
    if len(data) < size:
        raise ConnectionError("the peer hung up")
    return data


def _frames(read: Callable[[int], bytes]) -> Iterator[Frame]:
    """Frame after frame; ends with ``ConnectionError``."""
    while True:
        flags = _exactly(read, 1)
        size = _exactly(read, 8 if flags[0] & _LONG else 1)
        body = _exactly(read, int.from_bytes(size, "big"))
        yield Frame(flags[0], flags + size + body, body)
