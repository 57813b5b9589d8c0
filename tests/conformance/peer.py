"""The suite's own end of the control channel: a ROUTER that believes nothing and remembers everything.

It is not :class:`hydra.control.controller.Controller`, whose idempotence would hide an answer that came twice.

What relays gather is taken apart again: a ``joined`` becomes an :class:`Arrival` for each client, and a ``batch`` a
``report`` for each, so that a test can ask what one client said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import zmq

from hydra.control import curve
from hydra.model import SubscriberReport
from hydra.wire import table
from hydra.wire.messages import (
    Ack,
    Batch,
    Configure,
    Error,
    Finish,
    FromClient,
    FromController,
    Hello,
    Joined,
    Ping,
    Report,
    Reports,
    Start,
    Stop,
    Welcome,
    decode_from_client,
    encode,
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a ``joined`` tells of one client."""

    ids: Sequence[int]
    seq: int
    incarnation: int
    pid: int


Command = Configure | Start | Stop | Finish
M = TypeVar("M", bound=FromClient | Arrival)


class ControlPeer:
    """Welcomes every relay and client, checks that each connection's ``seq`` rises, and keeps every message by arrival.

    Data sockets take part in the same loop: :meth:`watch` gives a socket a callback for when it is readable.
    """

    def __init__(self, *, silence_s: float = 0.0, host: str = "127.0.0.1") -> None:
        self.silence_s = silence_s
        self.welcoming = True
        """Whether relays are welcomed."""
        self.knowing = True
        """Whether their clients are."""
        self.log: list[FromClient | Arrival] = []
        self.payloads: list[tuple[Batch, bytes]] = []
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
        self._watched: dict[zmq.Socket[bytes] | int, Callable[[], None]] = {}
        self._seq: dict[bytes, int] = {}
        self._hellos: dict[bytes, Hello] = {}
        self._welcomed: dict[bytes, float] = {}
        self._named: dict[tuple[bytes, int], tuple[int, float]] = {}
        self._configured: dict[int, Configure] = {}
        self._told: list[Command] = []

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

    def watch(self, socket: zmq.Socket[bytes] | int, readable: Callable[[], None]) -> None:
        """Calls back whenever this data socket, or descriptor, has something."""
        self._poller.register(socket, zmq.POLLIN)
        self._watched[socket] = readable

    def unwatch(self, socket: zmq.Socket[bytes] | int) -> None:
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

    def process(self, client: int) -> Arrival:
        """The latest process of this client."""
        return self.said(Arrival, client)[-1]

    def relay(self, group: str = "g") -> Hello:
        """What the latest relay of a group says of it."""
        return self.said(Hello, group=group)[-1]

    def present(self, ids: Iterable[int], *, timeout_s: float = 30.0) -> None:
        """Waits until these clients are there."""
        self.heard(Arrival, ids, timeout_s=timeout_s)

    # --- what they are told ----------------------------------------------------------------------------------------

    def tell(self, ids: Iterable[int], message: FromController) -> None:
        """Sends a command to these clients, through the latest relays of their groups."""
        if isinstance(message, Command):
            self._told.append(message)
        for identity, carried, everybody in self._connections(ids):
            if isinstance(message, Configure):
                for client in carried:
                    if message.epoch >= (self._configured[client].epoch if client in self._configured else 0):
                        self._configured[client] = message
            frame = encode(message if everybody else msgspec.structs.replace(message, ids=carried))
            self._socket.send_multipart((identity, frame))

    def tell_anew(self, ids: Iterable[int], message: Command) -> None:
        """Sends a command; one that was sent before becomes another one, by what a client does not heed.

        A relay answers what is said again by itself, and its clients are asked here.
        """
        while message in self._told:
            message = _another(message)
        self.tell(ids, message)

    def tell_raw(self, ids: Iterable[int], *frames: bytes) -> None:
        """Sends exactly these frames as one ZeroMQ message to the relays of these clients."""
        for identity, _, _ in self._connections(ids):
            self._socket.send_multipart((identity, *frames))

    def tell_everyone(self, message: FromController) -> None:
        """Sends a command to every connection."""
        for identity in self._hellos:
            self._socket.send_multipart((identity, encode(message)))

    def tell_relay(self, group: str, message: FromController) -> None:
        """Sends a command to a group's relay."""
        for identity, hello in self._hellos.items():
            if hello.group == group:
                self._socket.send_multipart((identity, encode(message)))

    def relays_in_sync(self, ids: Iterable[int], timeout_s: float = 10.0) -> None:
        """A ping and its echo: the relays of these clients have read everything that was told before."""
        token = time.monotonic_ns()
        clients = list(ids)
        for identity, _, _ in self._connections(clients):
            self._socket.send_multipart((identity, encode(Ping(time_ns=token, reply=True))))
        self.heard(Ack, clients, command="ping", echo=token, timeout_s=timeout_s)

    def sync(self, ids: Iterable[int], timeout_s: float = 10.0) -> float:
        """Everything told before has been obeyed; the slowest round trip in seconds.

        Relays answer pings for themselves. So clients are given what they are configured for once more, a little
        different: a relay passes that on, and a client that has this epoch only says so again. (Those that could not be
        configured try again and say that. Of those that have not been told yet, only the relay is asked.)
        """
        clients = list(ids)
        self.relays_in_sync(clients, timeout_s)
        began = time.monotonic()
        configured = [client for client in clients if client in self._configured]
        before = {client: self._answers(client) for client in configured}
        for client in configured:
            self.tell_anew([client], self._configured[client])
        self.wait(
            lambda: all(self._answers(client) > before[client] for client in configured),
            f"answers of {configured} to another configure of their epoch",
            timeout_s,
        )
        return time.monotonic() - began

    def _answers(self, client: int) -> int:
        epoch = self._configured[client].epoch
        acknowledged = self.said(Ack, client, epoch=epoch, command="configure")
        return len(acknowledged) + len(self.said(Error, client, epoch=epoch))

    def vanish(self) -> None:
        """Is gone from one moment to the next, without a word; nothing is heard any more."""
        self._poller.unregister(self._socket)
        self._socket.close()

    def close(self) -> None:
        """Closes the channel."""
        self._socket.close()
        self.context.destroy(linger=0)

    def _connections(self, ids: Iterable[int]) -> list[tuple[bytes, list[int], bool]]:
        """The connections that carry these clients, with those that each carries, and whether these are all of them."""
        owner: dict[int, bytes] = {}
        for identity, hello in self._hellos.items():
            owner.update(dict.fromkeys(hello.ids, identity))
        carried: dict[bytes, list[int]] = {}
        for client in ids:
            carried.setdefault(owner[client], []).append(client)
        return [(i, c, len(c) == len(self._hellos[i].ids)) for i, c in carried.items()]

    def _receive(self) -> None:
        while True:
            try:
                identity, head, *payload = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            message = decode_from_client(head)
            assert len(payload) == isinstance(message, Batch), "a message is one frame, a batch two"
            assert message.ids, "every message names the clients that it is about"
            assert message.seq > self._seq.get(identity, 0), f"seq does not rise: {message}"
            self._seq[identity] = message.seq
            if isinstance(message, Hello):
                self._introduced(identity, message)
            else:
                assert identity in self._hellos, "hello is the first message of a connection"
                assert set(message.ids) <= set(self._hellos[identity].ids), "a message about somebody else"
            self.log.append(message)
            if isinstance(message, Joined):
                self._joined(identity, message)
            elif isinstance(message, Batch):
                self.payloads.append((message, payload[0]))
                self.log.extend(_reports(message, payload[0]))
            else:
                assert not isinstance(message, Reports), "relays send what clients report as a batch"
                assert not (isinstance(message, Report) and message.subscriber), "relays send that as a batch"

    def _introduced(self, identity: bytes, message: Hello) -> None:
        first = self._hellos.setdefault(identity, message)
        assert without_seq(message) == without_seq(first), "a second hello that is not the first one's like"
        # One may have been on its way when the welcome was.
        assert time.monotonic() < self._welcomed.get(identity, math.inf) + 1, "a hello after the welcome"
        if self.welcoming:
            self._welcomed.setdefault(identity, time.monotonic())
            self._socket.send_multipart((identity, encode(Welcome(run="conformance", silence_s=self.silence_s))))

    def _joined(self, identity: bytes, message: Joined) -> None:
        assert identity in self._welcomed, "clients before the relay's welcome"
        for client, incarnation, pid in zip(message.ids, message.incarnations, message.pids, strict=True):
            named, at_s = self._named.get((identity, client), (-1, math.inf))
            assert incarnation > named or time.monotonic() < at_s + 3, "a client that is told of after its welcome"
            arrival = Arrival([client], message.seq, incarnation, pid)
            if not [a for a in self.said(Arrival, client) if replace(a, seq=0) == replace(arrival, seq=0)]:
                self.log.append(arrival)
            if self.knowing and incarnation > named:
                self._named[identity, client] = (incarnation, time.monotonic())
        if self.knowing:
            welcome = Welcome(ids=message.ids, run="conformance", silence_s=self.silence_s)
            self._socket.send_multipart((identity, encode(welcome)))


def _reports(head: Batch, payload: bytes) -> list[Report]:
    """A report for each client of a batch, with its histogram if it is alone there: of others, the sum is known."""
    rows = table.decode(head.ids, head.columns, payload)
    reports: list[SubscriberReport] = [rows.report(client) for client in head.ids]
    if len(reports) == 1:
        reports = [replace(reports[0], latency=rows.latency if rows.latency.counts else rows.cohort_latency)]
    return [
        Report(ids=[client], seq=head.seq, epoch=head.epoch, subscriber=report)
        for client, report in zip(head.ids, reports, strict=True)
    ]


def _another(command: Command) -> Command:
    """The same to whoever has obeyed such a command of this epoch already, and another one to its relay."""
    match command:
        case Configure():
            return msgspec.structs.replace(command, payload_share=(command.payload_share + 1) % 10_000)
        case Finish():
            return msgspec.structs.replace(command, drain_max_s=command.drain_max_s + 1e-6)
        case Start() | Stop():
            # The first start counts, and the earliest stop.
            return msgspec.structs.replace(command, stop_at_ns=command.stop_at_ns + 1)


def without_seq(message: FromClient) -> Mapping[str, object]:
    """A message without the one field that differs when it is sent again."""
    fields = msgspec.structs.asdict(message)
    del fields["seq"]
    return fields
