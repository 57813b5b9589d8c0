"""The suite's own end of the control channel: a ROUTER that believes nothing and remembers everything.

It is not :class:`hydra.control.controller.Controller`, whose idempotence would hide an answer that came twice.

What relays gather is taken apart again: a ``joined`` becomes an :class:`Arrival` for each client, and a ``batch`` an
:class:`Account` for each, so a test can read the messages of one client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import zmq

from hydra.control import curve_security
from hydra.model import SubscriberReport
from hydra.wire import messages as wire
from hydra.wire import subscriber_table
from hydra.wire.data_message import HEADER, pack
from tests.suite.waiting import LONG_S, SOON_S, wait_until


@dataclass(frozen=True, slots=True)
class Arrival:
    """One client of a ``joined``."""

    ids: Sequence[int]
    seq: int
    incarnation: int
    pid: int


@dataclass(frozen=True, slots=True)
class Account:
    """The report of one client of a ``batch``."""

    ids: Sequence[int]
    seq: int
    epoch: int
    report: SubscriberReport


Command = wire.Configure | wire.Start | wire.Stop | wire.Finish
_LAST_OF_ITS_KIND = 9
"""The first command of each kind in an epoch has a number up to this one."""
M = TypeVar("M", bound=wire.FromClient | Arrival | Account)


class ControlPeer:
    """Welcomes every relay and client, checks that each connection's ``seq`` rises, and keeps every message by arrival.

    Data sockets take part in the same loop: :meth:`watch` gives a socket a callback for when it is readable.

    Tests that share a program count their epochs from 1: :meth:`restart_epochs` decides what is added to them on
    the wire, on both channels, so that the program sees them rise.
    """

    def __init__(self, *, silence_s: float = 0.0, host: str = "127.0.0.1") -> None:
        self.silence_s = silence_s
        self.welcoming = True
        """Whether relays are welcomed."""
        self.knowing = True
        """Whether their clients are."""
        self.log: list[wire.FromClient | Arrival | Account] = []
        self.payloads: list[tuple[wire.Batch, bytes]] = []
        self.keys = curve_security.generate()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self.context.socket(zmq.ROUTER)
        self._socket.curve_server = True
        self._socket.curve_publickey = self.keys.server_public.encode()
        self._socket.curve_secretkey = self.keys.server_secret.encode()
        self._socket.linger = 0
        self._socket.bind(f"tcp://{host}:*")
        self.environment = curve_security.environment(self.keys, self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._watched: dict[zmq.Socket[bytes] | int, Callable[[], None]] = {}
        self._seq: dict[bytes, int] = {}
        self._hellos: dict[bytes, wire.Hello] = {}
        self._welcomed: set[bytes] = set()
        self._named: dict[tuple[bytes, int], int] = {}
        self._read: dict[tuple[bytes, int], dict[tuple[bytes, int], int]] = {}
        """By relay and ping: the clients that were welcomed before the ping."""
        self._settled: dict[tuple[bytes, int], int] = {}
        self._configured: dict[int, wire.Configure] = {}
        self._sent: list[Command] = []
        self._data: list[zmq.Socket[bytes]] = []
        self.first_epoch = 0
        """What is added to a test's epochs."""

    def restart_epochs(self, first_epoch: int) -> None:
        """Forgets all messages so far, keeps the connections, and closes the tests' data sockets."""
        self.first_epoch = first_epoch
        self.log[:] = [message for message in self.log if isinstance(message, wire.Hello | Arrival)]
        for forgotten in (self.payloads, self._configured, self._sent):
            forgotten.clear()
        for socket in self._data:
            if socket in self._watched:
                self.unwatch(socket)
            socket.close()
        self._data.clear()

    # --- the loop --------------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float = 0.01) -> None:
        """Takes what has arrived, waiting at most ``timeout_s`` for something."""
        for socket, _ in self._poller.poll(max(0, round(timeout_s * 1000))):
            if socket is self._socket:
                self._receive()
            else:
                self._watched[socket]()

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = SOON_S) -> None:
        """Serves the channel until the condition holds; fails with ``what`` and the last words when it does not."""
        wait_until(condition, what, timeout_s, between=self.poll, saw=lambda: self.log[-5:])

    def stays(self, condition: Callable[[], bool], what: str, for_s: float = 0.25) -> None:
        """Serves the channel for a while and fails as soon as the condition does not hold."""
        until = time.monotonic() + for_s
        while time.monotonic() < until:
            assert condition(), what
            self.poll()

    def socket(self, kind: int) -> zmq.Socket[bytes]:
        """A data socket of the test that runs."""
        self._data.append(self.context.socket(kind))
        self._data[-1].linger = 0
        return self._data[-1]

    def packed(self, epoch: int, publisher: int, sequence: int, time_ns: int, size: int = HEADER.size) -> bytes:
        """A data message of an epoch of this test's; a probe has the epoch in its sequence."""
        return packed(self.first_epoch, epoch, publisher, sequence, time_ns, size)

    def watch(self, socket: zmq.Socket[bytes] | int, readable: Callable[[], None]) -> None:
        """Calls back whenever this data socket, or descriptor, has something."""
        self._poller.register(socket, zmq.POLLIN)
        self._watched[socket] = readable

    def unwatch(self, socket: zmq.Socket[bytes] | int) -> None:
        """Forgets a data socket."""
        self._poller.unregister(socket)
        del self._watched[socket]

    # --- messages of clients -----------------------------------------------------------------------------------------

    def messages_of(self, kind: type[M], client: int | None = None, **required: object) -> list[M]:
        """The messages of this type so far, of this client and with these field values, oldest first."""
        return [
            m
            for m in self.log
            if isinstance(m, kind)
            and (client is None or client in m.ids)
            and all(getattr(m, name) == value for name, value in required.items())
        ]

    def heard(
        self, kind: type[M], ids: Iterable[int], *, times: int = 1, timeout_s: float = SOON_S, **required: object
    ) -> M:
        """Waits until each client has reported this ``times`` times; returns the last one of the last client."""
        clients = list(ids)
        self.wait(
            lambda: all(len(self.messages_of(kind, c, **required)) >= times for c in clients),
            f"{kind.__name__} {required} x{times} of clients {clients}",
            timeout_s,
        )
        return self.messages_of(kind, clients[-1], **required)[times - 1]

    def process(self, client: int) -> Arrival:
        """The latest process of this client."""
        return self.messages_of(Arrival, client)[-1]

    def relay(self, group: str = "g") -> wire.Hello:
        """The latest ``hello`` of a group's relay."""
        return self.messages_of(wire.Hello, group=group)[-1]

    def present(self, ids: Iterable[int]) -> None:
        """Waits until these clients are there."""
        self.heard(Arrival, ids, timeout_s=LONG_S)

    # --- messages to clients ----------------------------------------------------------------------------------------

    def send_to(self, ids: Iterable[int], message: wire.FromController) -> None:
        """Sends a command to these clients, through the latest relays of their groups."""
        if isinstance(message, Command):
            self._sent.append(message)
        for identity, carried, all_clients in self._connections(ids):
            if isinstance(message, wire.Configure):
                for client in carried:
                    if message.epoch >= (self._configured[client].epoch if client in self._configured else 0):
                        self._configured[client] = message
            self._send(identity, message if all_clients else msgspec.structs.replace(message, ids=carried))

    def send_new(self, ids: Iterable[int], message: Command) -> None:
        """Sends a command; one that was sent before becomes another one, with the next number that is free.

        A relay answers a repeated command by itself, so this one reaches its clients.
        """
        if message in self._sent:
            numbers = [reported.number for reported in self._sent if reported.epoch == message.epoch]
            message = msgspec.structs.replace(message, number=max(_LAST_OF_ITS_KIND, *numbers) + 1)
        self.send_to(ids, message)

    def send_raw(self, ids: Iterable[int], *frames: bytes) -> None:
        """Sends exactly these frames as one ZeroMQ message to the relays of these clients."""
        for identity, _, _ in self._connections(ids):
            self._socket.send_multipart((identity, *frames))

    def broadcast(self, message: wire.FromController) -> None:
        """Sends a command to every connection."""
        for identity in self._hellos:
            self._send(identity, message)

    def send_to_relay(self, group: str, message: wire.FromController) -> None:
        """Sends a command to a group's relay."""
        for identity, hello in self._hellos.items():
            if hello.group == group:
                self._send(identity, message)

    def _send(self, identity: bytes, message: wire.FromController) -> None:
        if epoch := getattr(message, "epoch", 0):
            message = msgspec.structs.replace(message, epoch=epoch + self.first_epoch)
        self._socket.send_multipart((identity, wire.encode(message)))

    def relays_in_sync(self, ids: Iterable[int]) -> None:
        """A ping and its echo: the relays of these clients have read everything that was sent before."""
        token = time.monotonic_ns()
        clients = list(ids)
        for identity, _, _ in self._connections(clients):
            self._read[identity, token] = {at: named for at, named in self._named.items() if at[0] == identity}
            self._send(identity, wire.Ping(time_ns=token, reply=True))
        self.heard(wire.Ack, clients, command="ping", echo=token)

    def sync(self, ids: Iterable[int]) -> float:
        """All earlier commands have been obeyed; the slowest round trip in seconds.

        Relays answer pings for themselves. So clients are given what they are configured for once more, a little
        different: a relay passes that on, and a client in this epoch only answers again. (Those that could not be
        configured try again and answer. For clients without a command yet, only the relay is asked.)
        """
        clients = list(ids)
        self.relays_in_sync(clients)
        began = time.monotonic()
        configured = [client for client in clients if client in self._configured]
        before = {client: self._answers(client) for client in configured}
        for client in configured:
            self.send_new([client], self._configured[client])
        self.wait(
            lambda: all(self._answers(client) > before[client] for client in configured),
            f"answers of {configured} to another configure of their epoch",
        )
        return time.monotonic() - began

    def _answers(self, client: int) -> int:
        epoch = self._configured[client].epoch
        acknowledged = self.messages_of(wire.Ack, client, epoch=epoch, command="configure")
        return len(acknowledged) + len(self.messages_of(wire.Error, client, epoch=epoch))

    def vanish(self) -> None:
        """Ends at once, without a message; nothing is received any more."""
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
            message = wire.decode_from_client(head)
            assert len(payload) == isinstance(message, wire.Batch), "a message is one frame, a batch two"
            assert message.ids, "every message names the clients that it is about"
            assert message.seq > self._seq.get(identity, 0), f"seq does not rise: {message}"
            self._seq[identity] = message.seq
            if isinstance(message, wire.Hello):
                self._introduced(identity, message)
            else:
                assert identity in self._hellos, "hello is the first message of a connection"
                assert set(message.ids) <= set(self._hellos[identity].ids), "a message about somebody else"
            if epoch := getattr(message, "epoch", 0):
                if epoch <= self.first_epoch:
                    continue  # of a test before
                message = msgspec.structs.replace(message, epoch=epoch - self.first_epoch)
            self.log.append(message)
            if isinstance(message, wire.Ack) and message.command == "ping":
                self._settled |= self._read.pop((identity, message.echo), {})
            if isinstance(message, wire.Joined):
                self._joined(identity, message)
            elif isinstance(message, wire.Batch):
                assert isinstance(message.number, msgspec.UnsetType), "a relay's batch answers many commands"
                self.payloads.append((message, payload[0]))
                self.log.extend(_accounts(message, payload[0]))

    def _introduced(self, identity: bytes, message: wire.Hello) -> None:
        first = self._hellos.setdefault(identity, message)
        assert without_seq(message) == without_seq(first), "a second hello that is not the first one's like"
        # Some may have been on their way when the welcome was: none comes after what shows that it was read.
        assert not any(relay == identity for relay, _ in self._named), "a hello after the welcome"
        if self.welcoming:
            self._welcomed.add(identity)
            self._send(identity, wire.Welcome(v=wire.VERSION, run="conformance", silence_s=self.silence_s))

    def _joined(self, identity: bytes, message: wire.Joined) -> None:
        assert identity in self._welcomed, "clients before the relay's welcome"
        for client, incarnation, pid in zip(message.ids, message.incarnations, message.pids, strict=True):
            settled = self._settled.get((identity, client), -1)
            assert incarnation > settled, "a client that is told of after its welcome"
            arrival = Arrival([client], message.seq, incarnation, pid)
            if not [a for a in self.messages_of(Arrival, client) if replace(a, seq=0) == replace(arrival, seq=0)]:
                self.log.append(arrival)
            if self.knowing:
                self._named[identity, client] = max(incarnation, self._named.get((identity, client), -1))
        if self.knowing:
            self._send(
                identity, wire.Welcome(v=wire.VERSION, ids=message.ids, run="conformance", silence_s=self.silence_s)
            )


def packed(first_epoch: int, epoch: int, publisher: int, sequence: int, time_ns: int, size: int = HEADER.size) -> bytes:
    """A data message of a test whose epochs begin above ``first_epoch``; a probe has the epoch in its sequence."""
    if epoch == wire.PROBE_EPOCH:
        return pack(epoch, publisher, sequence + first_epoch, time_ns, size)
    return pack(epoch + first_epoch, publisher, sequence, time_ns, size)


def unpacked(first_epoch: int, message: bytes) -> tuple[int, int, int, int]:
    """Epoch, publisher, sequence and time of such a message."""
    epoch, publisher, sequence, time_ns = HEADER.unpack_from(message)
    if epoch == wire.PROBE_EPOCH:
        return epoch, publisher, sequence - first_epoch, time_ns
    return epoch - first_epoch, publisher, sequence, time_ns


def _accounts(head: wire.Batch, payload: bytes) -> list[Account]:
    """A report for each client of a batch, with its histogram if it is alone there: of others, the sum is known."""
    rows = subscriber_table.decode(head.ids, head.columns, payload)
    reports: list[SubscriberReport] = [rows.report(client) for client in head.ids]
    if len(reports) == 1:
        reports = [replace(reports[0], latency=rows.latency if rows.latency.counts else rows.cohort_latency)]
    return [Account([client], head.seq, head.epoch, report) for client, report in zip(head.ids, reports, strict=True)]


def without_seq(message: wire.FromClient) -> Mapping[str, object]:
    """A message without the one field that differs when it is sent again."""
    fields = msgspec.structs.asdict(message)
    del fields["seq"]
    return fields
