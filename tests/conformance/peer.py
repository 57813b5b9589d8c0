"""The suite's own end of the control channel: a ROUTER that believes nothing and remembers everything.

It is not :class:`hydra.control.controller.Controller`, whose idempotence would hide an answer that came twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
import zmq

from hydra.control import curve
from hydra.wire.messages import (
    Ack,
    FromClient,
    FromController,
    Hello,
    Ping,
    Reports,
    Welcome,
    decode_from_client,
    encode,
)

M = TypeVar("M", bound=FromClient)


class ControlPeer:
    """Welcomes every client, checks that each connection's ``seq`` rises, and keeps every message by arrival.

    Data sockets take part in the same loop: :meth:`watch` gives a socket a callback for when it is readable.
    """

    def __init__(self, *, silence_s: float = 0.0, host: str = "127.0.0.1") -> None:
        self.silence_s = silence_s
        self.welcoming = True
        self.log: list[FromClient] = []
        self.keys = curve.generate()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self.context.socket(zmq.ROUTER)
        self._socket.curve_server = True
        self._socket.curve_publickey = self.keys.server_public.encode()
        self._socket.curve_secretkey = self.keys.server_secret.encode()
        self._socket.linger = 0
        self._socket.bind(f"tcp://{host}:*")
        self.environment = curve.environment(self.keys, self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._watched: dict[zmq.Socket[bytes], Callable[[], None]] = {}
        self._seq: dict[bytes, int] = {}
        self._hellos: dict[bytes, Hello] = {}
        self._welcomed: dict[bytes, float] = {}
        self._pings = 0

    # --- the loop --------------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float = 0.01) -> None:
        """Takes what has arrived, waiting at most ``timeout_s`` for something."""
        for socket, _ in self._poller.poll(max(0, round(timeout_s * 1000))):
            if socket is self._socket:
                self._receive()
            else:
                self._watched[socket]()

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 10.0) -> None:
        """Serves the channel until the condition holds; fails with ``what`` when it does not."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
            self.poll()

    def stays(self, condition: Callable[[], bool], what: str, for_s: float = 0.25) -> None:
        """Serves the channel for a while and fails as soon as the condition does not hold."""
        until = time.monotonic() + for_s
        while time.monotonic() < until:
            assert condition(), what
            self.poll()

    def watch(self, socket: zmq.Socket[bytes], readable: Callable[[], None]) -> None:
        """Calls back whenever this data socket has something."""
        self._poller.register(socket, zmq.POLLIN)
        self._watched[socket] = readable

    def unwatch(self, socket: zmq.Socket[bytes]) -> None:
        """Forgets a data socket."""
        self._poller.unregister(socket)
        del self._watched[socket]

    # --- what clients said -----------------------------------------------------------------------------------------

    def said(self, kind: type[M], client: int | None = None, **required: object) -> list[M]:
        """The messages of this type so far, of this client and with these field values, oldest first."""
        return [
            m
            for m in self.log
            if isinstance(m, kind)
            and (client is None or client in m.ids)
            and all(getattr(m, name) == value for name, value in required.items())
        ]

    def heard(
        self, kind: type[M], ids: Iterable[int], *, times: int = 1, timeout_s: float = 10.0, **required: object
    ) -> M:
        """Waits until each client has said this ``times`` times; returns the last one of the last client."""
        clients = list(ids)
        missing = clients

        def everyone() -> bool:
            nonlocal missing
            missing = [c for c in clients if len(self.said(kind, c, **required)) < times]
            return not missing

        self.wait(everyone, f"{kind.__name__} {required} x{times} of clients {clients}", timeout_s)
        return self.said(kind, clients[-1], **required)[times - 1]

    def hello(self, client: int) -> Hello:
        """The latest hello of this client's own connection."""
        return self.said(Hello, client, warden=False)[-1]

    # --- what they are told ----------------------------------------------------------------------------------------

    def tell(self, ids: Iterable[int], message: FromController) -> None:
        """Sends a command to these clients' latest connections."""
        for identity, carried, everybody in self._connections(ids):
            frame = encode(message if everybody else msgspec.structs.replace(message, ids=carried))
            self._socket.send_multipart((identity, frame))

    def tell_raw(self, ids: Iterable[int], *frames: bytes) -> None:
        """Sends exactly these frames as one ZeroMQ message."""
        for identity, _, _ in self._connections(ids):
            self._socket.send_multipart((identity, *frames))

    def tell_everyone(self, message: FromController) -> None:
        """Sends a command to every connection, wardens included."""
        for identity in self._hellos:
            self._socket.send_multipart((identity, encode(message)))

    def tell_warden(self, group: str, message: FromController) -> None:
        """Sends a command to a group's warden."""
        for identity, hello in self._hellos.items():
            if hello.warden and hello.group == group:
                self._socket.send_multipart((identity, encode(message)))

    def sync(self, ids: Iterable[int], timeout_s: float = 10.0) -> float:
        """A ping and its echo: everything told before has been obeyed; the slowest round trip in seconds."""
        clients = list(ids)
        self._pings += 1
        token = time.monotonic_ns()
        self.tell(clients, Ping(time_ns=token, reply=True))
        self.heard(Ack, clients, command="ping", echo=token, timeout_s=timeout_s)
        return (time.monotonic_ns() - token) / 1e9

    def vanish(self) -> None:
        """Is gone from one moment to the next, without a word; nothing is heard any more."""
        self._poller.unregister(self._socket)
        self._socket.close()

    def close(self) -> None:
        """Closes the channel."""
        self._socket.close()
        self.context.destroy(linger=0)

    def _connections(self, ids: Iterable[int]) -> list[tuple[bytes, list[int], bool]]:
        owner: dict[int, bytes] = {}
        for identity, hello in self._hellos.items():
            if not hello.warden:
                owner.update(dict.fromkeys(hello.ids, identity))
        carried: dict[bytes, list[int]] = {}
        for client in ids:
            carried.setdefault(owner[client], []).append(client)
        return [(i, c, len(c) == len(self._hellos[i].ids)) for i, c in carried.items()]

    def _receive(self) -> None:
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            assert len(frames) == 2, f"one message is one frame, not {len(frames) - 1}"
            identity, frame = frames
            message = decode_from_client(frame)
            assert message.ids, "every message names the clients that it is about"
            assert message.seq > self._seq.get(identity, 0), f"seq does not rise: {message}"
            self._seq[identity] = message.seq
            if isinstance(message, Hello):
                first = self._hellos.setdefault(identity, message)
                assert without_seq(message) == without_seq(first), "a second hello that is not the first one's like"
                # One may have been on its way when the welcome was.
                assert time.monotonic() < self._welcomed.get(identity, math.inf) + 1, "a hello after the welcome"
                if self.welcoming:
                    self._welcomed.setdefault(identity, time.monotonic())
                    welcome = Welcome(ids=message.ids, run="conformance", silence_s=self.silence_s)
                    self._socket.send_multipart((identity, encode(welcome)))
            else:
                assert identity in self._hellos, "hello is the first message of a connection"
                assert set(message.ids) <= set(self._hellos[identity].ids), "a message about somebody else"
            self.log.append(message)
            if isinstance(message, Reports):
                self.log.extend(message.each())


def without_seq(message: FromClient) -> Mapping[str, object]:
    """A message without the one field that differs when it is sent again."""
    fields = msgspec.structs.asdict(message)
    del fields["seq"]
    return fields
