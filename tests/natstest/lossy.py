"""A proxy in front of a NATS server, which carries so much to each subscriber and drops shares of it at random.

It reads NATS' text protocol (https://docs.nats.io/reference/reference-protocols/nats-protocol): whatever else a server
reports, and all messages of clients, passes.
"""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Final

from tests.forwarder import TcpForwarder

_BUCKET_S: Final = 0.1
"""What a subscriber may get at once, in seconds of what is carried: a stall of the machine is no loss."""
_LINE: Final = b"\r\n"


def frames(data: bytes) -> Iterator[tuple[bool, int]]:
    """Whether it is a message, and where it ends, of every frame that is whole."""
    at = 0
    while (end := data.find(_LINE, at)) >= 0:
        line, at = data[at:end], end + len(_LINE)
        is_message = line.startswith(b"MSG ")
        if is_message:
            at += int(line.rsplit(b" ", 1)[1]) + len(_LINE)
        if at > len(data):
            return
        yield is_message, at


class LossyProxy(TcpForwarder):
    """Stands between the server at ``address`` and a client that connects to :attr:`address`.

    Args:
        address: ``host:port`` of the server.
        carries_pps: messages/s that each subscriber gets at most; what is above is dropped.
        drops: the share of its messages that each subscriber loses besides, in the order in which they subscribe; those
            that come later begin again.
    """

    def __init__(self, address: str, carries_pps: float, drops: Sequence[float]) -> None:
        self._carries_pps, self._drops = carries_pps, drops
        self._subscribers = 0
        super().__init__(address)

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        """Passes on what may pass, in both directions."""
        way = _Way(self._carries_pps)
        self.run(self._to_server, client, server, way)
        self.run(self._to_client, client, server, way)

    def _to_server(self, client: socket.socket, server: socket.socket, way: _Way) -> None:
        with contextlib.closing(server):
            while data := client.recv(65_536):
                if not way.subscribes and b"SUB " in data:
                    way.subscribe(self._drops[self._subscribers % len(self._drops)], seed=self._subscribers)
                    self._subscribers += 1
                server.sendall(data)

    def _to_client(self, client: socket.socket, server: socket.socket, way: _Way) -> None:
        with contextlib.closing(client):
            rest = b""
            while data := server.recv(1 << 18):
                passed, rest = way.passed(rest + data, time.monotonic())
                client.sendall(passed)


class _Way:
    """What comes through to one client."""

    def __init__(self, carries_pps: float) -> None:
        self._carries_pps = carries_pps
        self._drop = 0.0
        self._chance = random.Random()
        self._left = _BUCKET_S * carries_pps
        self._at_s = 0.0
        self.subscribes = False

    def subscribe(self, drop: float, seed: int) -> None:
        self.subscribes, self._drop, self._chance = True, drop, random.Random(seed)

    def passed(self, data: bytes, now_s: float) -> tuple[bytes, bytes]:
        """The part of the server's bytes that passes, and the frame that is not whole yet."""
        self._left = min(self._left + (now_s - self._at_s) * self._carries_pps, _BUCKET_S * self._carries_pps)
        self._at_s = now_s
        kept, begin = [], 0
        for is_message, end in frames(data):
            if not is_message or self._carried():
                kept.append(data[begin:end])
            begin = end
        return b"".join(kept), data[begin:]

    def _carried(self) -> bool:
        if self._left < 1:
            return False
        self._left -= 1
        return self._chance.random() >= self._drop
