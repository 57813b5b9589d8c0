"""The Python client of raw ZMQ PUB/SUB, on pyzmq."""

from __future__ import annotations

import contextlib
import operator
import os
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Final

import zmq
import zmq.backend

from hydra.client import process_group
from hydra.client.transport import DEAF_AT_MOST_S, Kind, PublisherTransport, SubscriberTransport, read_system
from hydra.control.control_client import ControlClient
from hydra.wire.messages import Configure
from hydra.wire.traffic import MessageChoice, client_topics, topic_choice
from hydra.zmqtest.settings import DATA_KEY, DATA_SECRET, ZmqSettings

_receive: Final = zmq.backend.Socket.recv
_send: Final = zmq.backend.Socket.send
"""The backend's send avoids the cost of pyzmq's convenience layer for every message."""
_get: Final = zmq.backend.Socket.get
_EVENTS: Final = zmq.EVENTS
_POLLIN: Final = int(zmq.POLLIN)
_NOBLOCK: Final = int(zmq.NOBLOCK)
_BACKLOG: Final = 4096
_DEAF_MS: Final = round(DEAF_AT_MOST_S * 1000)
_WAIT_MS: Final = 300
"""How long a stream waits for its next batch if it has the time: an unsuccessful wait costs as much as a hundred
messages."""
_CLOSE_NS: Final = 100_000
"""A stream reads what waits behind a message if the message came less than this time after the last batch, ns."""
_REBIND_WITHIN_S: Final = 2.0
"""A fixed port stays in use until libzmq's thread has actually closed the previous socket."""
_SEND_TIMEOUT_MS: Final = 10
"""XPUB_NODROP: how long one send waits before the control channel is read again. On XPUB, POLLOUT is always true even
if a send would return EAGAIN, so polling does not help."""


_PREFIX: Final = struct.Struct(">I")
"""A topic before the header, if there are several: so the sockets' own filters choose the messages."""


class ZmqPublisher(PublisherTransport):
    """A bound PUB socket that drops at its high-water mark, or an XPUB socket that waits (``nodrop``)."""

    marks_end = True

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._topics: MessageChoice | None = None
        self._prefixes: list[bytes] = []
        self._probed = range(0)
        self._context = control.context
        self._host = os.environ.get("HYDRA_DATA_HOST", "127.0.0.1")
        self._port = os.environ.get("HYDRA_PORTS", "").split(",")[0] or "*"
        self._secret = os.environ.get(DATA_SECRET, "").encode()
        self._socket: zmq.Socket[bytes] | None = None
        self._built_for: tuple[int, bool] | None = None
        self._endpoint = ""
        self._flags = _NOBLOCK

    def configure(self, command: Configure) -> str:
        """Makes a new socket if the high-water mark or ``nodrop`` changed; returns the data endpoint."""
        settings = read_system(command.system, ZmqSettings)
        nodrop = settings.nodrop
        traffic = command.drawn
        self._topics = topic_choice(traffic, self._client) if traffic.several else None
        self._prefixes = list(map(_PREFIX.pack, range(traffic.topics)))
        self._probed = traffic.probed
        required = (settings.sndhwm, nodrop)
        if required != self._built_for:
            self.close()
            self._socket = _made(self._context, zmq.XPUB if nodrop else zmq.PUB)
            self._socket.linger = 0
            self._socket.backlog = _BACKLOG
            self._socket.sndhwm = settings.sndhwm
            if self._secret:
                self._socket.curve_server = True
                self._socket.curve_secretkey = self._secret
            if nodrop:
                self._socket.setsockopt(zmq.XPUB_NODROP, 1)
                self._socket.sndtimeo = _SEND_TIMEOUT_MS
            # PUB never blocks; XPUB_NODROP waits at most its SNDTIMEO.
            self._flags = 0 if nodrop else _NOBLOCK
            self._endpoint = _bind(self._socket, f"tcp://{self._host}:{self._port}")
            self._built_for = required
        return self._endpoint

    def probe(self, message: bytes) -> None:
        """Sends a probe to all subscribers that are subscribed by now."""
        if self._topics is None or self._socket is None:
            self.send([message], 0)
            return
        for topic in self._probed:
            with contextlib.suppress(zmq.Again):
                _send(self._socket, self._prefixes[topic] + message, self._flags)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """Sends all messages; with ``nodrop``, until the queue is full."""
        if self._topics is not None:
            prefixes = map(self._prefixes.__getitem__, self._topics.of(first_sequence, len(messages)))
            messages = list(map(operator.add, prefixes, messages))
        if self._socket is None:
            return 0
        accepted: list[None] = []
        # The list has what was sent before the exception. No Python code runs between two messages.
        with contextlib.suppress(zmq.Again):
            accepted.extend(map(_send, repeat(self._socket), messages, repeat(self._flags)))
        return len(accepted)

    def poll(self) -> None:
        """Discards the subscription messages that XPUB collects."""
        if self._socket is not None and self._socket.socket_type == zmq.XPUB:
            try:
                while True:
                    self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                pass

    def framed_bytes(self, message_size: int) -> int | None:
        """The size of a ZMTP 3 frame: a byte of flags, and the length in one byte, or in eight if it is above 255.

        None with CURVE, which adds its own box.
        """
        if self._secret:
            return None
        size = message_size + (0 if self._topics is None else _PREFIX.size)
        return size + (2 if size <= 255 else 9)

    def close(self) -> None:
        """Closes the socket and discards its queue."""
        if self._socket is not None:
            self._socket.close(0)
            self._socket, self._built_for = None, None


def _made(context: zmq.Context[zmq.Socket[bytes]], kind: int) -> zmq.Socket[bytes]:
    """Makes a socket.

    Raises:
        OSError: no socket can be made.
    """
    try:
        return context.socket(kind)
    except zmq.ZMQError as e:
        raise OSError(f"cannot make a data socket: {e.strerror}; look at ulimit -n") from None


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> str:
    """Binds a socket; returns the bound endpoint.

    Raises:
        OSError: the endpoint cannot be bound; the text names it.
    """
    deadline = time.monotonic() + _REBIND_WITHIN_S
    while True:
        try:
            socket.bind(endpoint)
            return socket.getsockopt_string(zmq.LAST_ENDPOINT)
        except zmq.ZMQError as e:
            if e.errno != zmq.EADDRINUSE or time.monotonic() > deadline:
                raise OSError(f"cannot bind {endpoint}: {e.strerror}; look at HYDRA_DATA_HOST and the ports") from None
        time.sleep(0.005)


class ZmqSubscriber(SubscriberTransport):
    """A SUB socket connected to every publisher."""

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._prefix_bytes = 0  # of every message
        self._context = control.context
        self._control = control
        self._server_key = os.environ.get(DATA_KEY, "").encode()
        self._socket: zmq.Socket[bytes] | None = None
        self._emptied = False  # whether the last call on the socket found no message left
        self._expected = 0  # the number of messages of the last batches
        self._waits_ms = 0  # the socket's RCVTIMEO
        self._built_for: tuple[int, tuple[str, ...], tuple[bytes, ...]] | None = None

    def configure(self, command: Configure) -> None:
        """Makes a new socket if the publishers, the topics or the high-water mark changed."""
        traffic = command.drawn
        every = traffic.wildcard or not traffic.several
        topics = (b"",) if every else tuple(map(_PREFIX.pack, client_topics(traffic, self._client)))
        self._prefix_bytes = _PREFIX.size if traffic.several else 0
        rcvhwm = read_system(command.system, ZmqSettings).rcvhwm
        required = (rcvhwm, tuple(p.endpoint for p in command.publishers), topics)
        if required != self._built_for or self._socket is None:
            self._built_for = required
            self._connect()

    def _connect(self) -> None:
        self.close()
        if self._built_for is None:
            raise ValueError("a subscriber is configured before it connects")
        rcvhwm, endpoints, topics = self._built_for
        self._socket = _made(self._context, zmq.SUB)
        self._emptied = False
        self._socket.linger = 0
        self._socket.rcvhwm = rcvhwm
        self._socket.rcvtimeo = self._waits_ms = _DEAF_MS
        for topic in topics:
            self._socket.subscribe(topic)
        if self._server_key:
            self._socket.curve_serverkey = self._server_key
            self._socket.curve_publickey, self._socket.curve_secretkey = zmq.curve_keypair()
        for endpoint in endpoints:
            try:
                self._socket.connect(endpoint)
            except zmq.ZMQError as e:
                self.close()  # the next configure tries again
                raise OSError(f"cannot connect to {endpoint!r}: {e.strerror}") from None

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """Receives one batch until the socket is empty; returns early if the control channel has a message."""
        socket = self._socket
        if socket is None or (self._emptied and not self._control.wait_with(socket, timeout_s)):
            return ()
        messages: list[bytes] = []
        self._emptied = True
        with contextlib.suppress(zmq.Again):
            self._drain(socket, messages, limit)
        return self._without_prefixes(messages) if self._prefix_bytes else messages

    def _without_prefixes(self, messages: list[bytes]) -> list[bytes]:
        """The messages without their topics."""
        length = self._prefix_bytes
        return [message[length:] for message in messages]

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Receives batches: waits for the first message of each, and takes the others that are there."""
        messages: list[bytes] = []
        batches: list[tuple[int, int]] = []
        socket, before, now_ns = self._socket, 0, time.monotonic_ns()
        until_ns = self._set_wait(now_ns, until_ns)
        while socket is not None and before < limit and now_ns < until_ns:
            try:
                messages.append(_receive(socket))
                # Rarely does another message wait behind one that has come alone, and looking for it takes a tenth of
                # the time that a process takes for a message.
                if self._expected or time.monotonic_ns() - now_ns < _CLOSE_NS:
                    self._drain(socket, messages, limit - before)
            except zmq.Again:
                if len(messages) == before:
                    break
            now_ns = time.monotonic_ns()
            batches.append((now_ns, len(messages) - before))
            before = len(messages)
        self._emptied = False  # unknown
        return self._without_prefixes(messages) if self._prefix_bytes else messages, batches

    def _set_wait(self, now_ns: int, until_ns: int) -> int:
        """Sets how long to wait for a batch; returns when the stream ends, so its last wait ends in time."""
        early_ns = until_ns - _WAIT_MS * 1_000_000
        waits_ms = _WAIT_MS if now_ns < early_ns else _DEAF_MS
        if self._socket is not None and waits_ms != self._waits_ms:
            self._socket.rcvtimeo = self._waits_ms = waits_ms
        return early_ns if waits_ms == _WAIT_MS else until_ns

    def _drain(self, socket: zmq.Socket[bytes], messages: list[bytes], limit: int) -> None:
        """Takes the messages that are there into a list, at most ``limit``.

        Raises:
            zmq.Again: nothing is left.
        """
        # No Python code runs between two messages. If a batch has the length of the previous one, or is one longer, no
        # exception ends it; this is usual if messages arrive singly or fill libzmq's reads. The exception takes as long
        # as ten messages, and ten times that in a process that is rarely scheduled.
        begin, expected = len(messages), self._expected
        try:
            for some in (expected, 1, limit):
                left = begin + limit - len(messages)
                messages.extend(map(_receive, repeat(socket, min(some, left)), repeat(_NOBLOCK)))
                if some >= left:
                    self._emptied = False
                    return
                if not int(_get(socket, _EVENTS)) & _POLLIN:
                    return
        finally:
            taken = len(messages) - begin
            if not expected <= taken <= expected + 1:
                self._expected = taken

    def reconnect(self) -> tuple[int, int]:
        """Replaces the socket by a new one; the messages queued in the old one are lost, as after a real disconnect."""
        begin_ns = time.monotonic_ns()
        self._connect()
        return begin_ns, time.monotonic_ns()

    def close(self) -> None:
        """Closes the socket and discards its queue."""
        if self._socket is not None:
            self._socket.close(0)
            self._socket = None


def _versions() -> dict[str, str]:
    return {"libzmq": zmq.zmq_version(), "pyzmq": zmq.pyzmq_version(), "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The kinds of clients that this program offers, by name."""
    return {
        "zmq-pub": Kind("publisher", "pyzmq", _versions, ZmqPublisher, [ZmqSettings]),
        "zmq-sub": Kind("subscriber", "pyzmq", _versions, ZmqSubscriber, [ZmqSettings]),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
