"""The channel between the engine and the driver's process: JSON messages, one a line, over a pair of sockets."""

from __future__ import annotations

import contextlib
import json
import queue
import selectors
import socket
from collections.abc import Iterator
from typing import Any, Final

Message = dict[str, Any]

_PIECE: Final = 1 << 18
_BUFFER: Final = 1 << 22
"""The socket's send buffer in bytes: a launch of many groups fits, so the sender does not wait."""


class DriverPipe:
    """One end of the channel; only :meth:`wait` blocks.

    Attributes:
        closed: whether one of the ends is closed.
    """

    def __init__(self, end: socket.socket) -> None:
        self.closed = False
        self._socket = end
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._unsent = bytearray()
        self._unread = bytearray()

    def send(self, message: Message) -> None:
        """Queues a message and sends the bytes that the socket takes now."""
        self._unsent += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.flush()

    def flush(self) -> bool:
        """Sends queued bytes; returns whether the queue is empty."""
        while self._unsent and not self.closed:
            try:
                del self._unsent[: self._socket.send(self._unsent[:_PIECE])]
            except BlockingIOError:
                return False
            except OSError:  # the reader has ended, so the queue is of no use
                self.closed = True
        return not self._unsent

    def receive(self) -> Iterator[Message]:
        """The messages that have arrived."""
        while not self.closed:
            try:
                piece = self._socket.recv(_PIECE)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            if not piece:
                self.closed = True
            self._unread += piece
        *lines, rest = self._unread.split(b"\n")
        self._unread = bytearray(rest)
        for line in lines:
            yield json.loads(line)

    def wait(self, timeout_s: float, *others: socket.socket) -> None:
        """Waits for data here or on one of the others, or for room for queued bytes; ``timeout_s`` seconds at most."""
        if self.closed:
            return
        with selectors.DefaultSelector() as selector:
            for other in others:
                selector.register(other, selectors.EVENT_READ)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
            selector.register(self._socket, events)
            selector.select(timeout_s)

    def close(self) -> None:
        """Closes this end."""
        self.closed = True
        self._socket.close()


class Outbox:
    """A queue of messages for the engine, for any thread; ``bell`` is readable while the queue has messages."""

    def __init__(self) -> None:
        self.bell, self._ringer = socket.socketpair()
        self.bell.setblocking(False)
        self._ringer.setblocking(False)
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def put(self, message: Message) -> None:
        """Adds a message."""
        self._messages.put(message)
        with contextlib.suppress(BlockingIOError):  # the bell rings already
            self._ringer.send(b"!")

    def take(self) -> Iterator[Message]:
        """Takes all messages of the queue."""
        with contextlib.suppress(BlockingIOError):
            while self.bell.recv(4096):
                pass
        while True:
            try:
                yield self._messages.get_nowait()
            except queue.Empty:
                return
