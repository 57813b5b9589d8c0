"""A TCP proxy on one subscriber's own connection to a ZMQ publisher, which loses and delays what it is told to.

It reads ZMTP's frames itself (ZMTP 3, https://rfc.zeromq.org/spec/23/), so that no queue of libzmq's stands between
what it notes down and the subscriber's socket. Messages leave it in their order; one that waits holds up those behind
it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType

from hydra.client.header import HEADER
from tests.conformance.bench import Window
from tests.truth.priority import first_thread

GREETING_BYTES = 64
LONG, COMMAND = 0x02, 0x04
"""Flags of a frame: its length has eight bytes; it is no message."""

Fate = Callable[[int], int | None]
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
    fate: Fate
    offset_ns: int = 0
    handed_on: list[HandedOn] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    def synchronise(self, window: Window) -> None:
        """Takes the step's clock, before its window begins."""
        self.offset_ns = window.offset_ns


class Proxy:
    """Stands between a publisher's endpoint (``tcp://host:port``) and whoever connects to :attr:`endpoint`."""

    def __init__(self, publisher: str) -> None:
        host, _, port = publisher.removeprefix("tcp://").rpartition(":")
        self._publisher = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self.plan: Plan | None = None
        """Everything passes at once while there is none."""
        self._closing = threading.Event()
        self._open: list[socket.socket] = [self._server]
        self._threads: list[threading.Thread] = []
        self._run(self._accept)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=self._until_closed, args=(work, *arguments), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _until_closed(self, work: Callable[..., None], *arguments: object) -> None:
        # A socket that is gone, on either side or because of close(), ends the connection.
        with contextlib.suppress(OSError):
            work(*arguments)

    def _accept(self) -> None:
        while True:
            ours, _ = self._server.accept()
            theirs = socket.create_connection(self._publisher)
            for end in (ours, theirs):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append(end)
            self._run(_copy, ours, theirs)
            self._run(self._forward, theirs, ours)

    def _forward(self, publisher: socket.socket, subscriber: socket.socket) -> None:
        first_thread()
        try:
            # It comes in parts, each in answer to one of the subscriber's.
            left = GREETING_BYTES
            while left:
                part = publisher.recv(left)
                if not part:
                    return
                left -= len(part)
                subscriber.sendall(part)
            stream = publisher.makefile("rb", buffering=1 << 20)
            for flags, frame, body in _frames(stream.read):
                self._pass_on(subscriber, flags, frame, body)
        finally:
            # The subscriber learns of it and connects anew.
            subscriber.close()

    def _pass_on(self, subscriber: socket.socket, flags: int, frame: bytes, body: bytes) -> None:
        plan = self.plan
        if plan is None or flags & COMMAND or len(body) != plan.message_size:
            subscriber.sendall(frame)
            return
        epoch, _, sequence, due_ns = HEADER.unpack_from(body)
        if epoch != plan.epoch:
            subscriber.sendall(frame)
            return
        delay_ns = plan.fate(sequence)
        if delay_ns is None:
            plan.dropped.append(sequence)
            return
        due_ns -= plan.offset_ns
        while delay_ns and (left_ns := due_ns + delay_ns - time.monotonic_ns()) > 0:
            if self._closing.wait(left_ns / 1e9):
                return
        before_ns = time.monotonic_ns()
        subscriber.sendall(frame)
        plan.handed_on.append(HandedOn(sequence, due_ns, before_ns, time.monotonic_ns()))

    def close(self) -> None:
        """Ends every connection."""
        self._closing.set()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(65536):
        target.sendall(data)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """All of it; a stream gives less only when it has ended."""
    data = read(size)
    if len(data) < size:
        raise ConnectionError("the publisher hung up")
    return data


def _frames(read: Callable[[int], bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """(flags, the whole frame, its body) of each; ends with ``ConnectionError``."""
    while True:
        flags = _exactly(read, 1)
        size = _exactly(read, 8 if flags[0] & LONG else 1)
        body = _exactly(read, int.from_bytes(size, "big"))
        yield flags[0], flags + size + body, body
