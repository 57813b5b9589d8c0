"""Lets a peer in if its CURVE key is on the allow-list (ZAP, ZeroMQ RFC 27), served from the controller's own loop."""

from __future__ import annotations

from typing import Final

import zmq
from zmq.utils import z85

_ENDPOINT: Final = "inproc://zeromq.zap.01"


class Gatekeeper:
    """Answers libzmq's authentication requests of one context.

    pyzmq's own authenticator needs a thread and costs about three times as much per connection.

    Attributes:
        denied: how many handshakes were refused.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], allowed: set[str]) -> None:
        self.denied = 0
        self._allowed = {z85.decode(key) for key in allowed}
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(_ENDPOINT)

    def serve(self) -> None:
        """Answers every request that has arrived; returns at once."""
        while True:
            try:
                frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.socket.send_multipart(self._answer(frames))

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        # identity, delimiter, version, request id, domain, address, peer's identity, mechanism, credentials…
        envelope, (version, request), mechanism, credentials = frames[:2], frames[2:4], frames[7:8], frames[8:]
        if version == b"1.0" and mechanism == [b"CURVE"] and credentials and credentials[0] in self._allowed:
            return [*envelope, version, request, b"200", b"OK", b"", b""]
        self.denied += 1
        return [*envelope, version, request, b"400", b"this key is not of this run", b"", b""]

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()
