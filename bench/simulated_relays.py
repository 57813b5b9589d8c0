"""Relays that speak the real protocol over real sockets, without clients: the other end of bench/controller_scale.py.

Reads commands from standard input, a JSON object a line, and answers each with a line:

- ``{"template": path}``: what every group reports, a list of :data:`Part` in MessagePack;
- ``{"environment": {...}, "groups": [{"id", "role", "first", "count", "agent"}]}``: these dial in with all of their
  clients;
- ``{"usage": true}``: is answered with ``{"cpu_s": …}``, the CPU time of this process until now.

The end of the file ends it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from hydra.control import curve
from hydra.model import Histogram, ProcessUsage, PublisherReport
from hydra.wire.clock import StepClock, boot_id, network_namespace, time_namespace
from hydra.wire.messages import (
    Ack,
    Batch,
    Configure,
    Finish,
    FromClient,
    FromController,
    Hello,
    Joined,
    Ping,
    Progress,
    Quit,
    Ready,
    Report,
    Start,
    Stop,
    Welcome,
    decode_from_controller,
    encode,
)

_PID: Final = 1000
"""Process id of client 0: nobody asks the kernel for it."""

Part = tuple[int, list[tuple[str, int]], bytes]
"""A batch without its head: for how many clients, its columns, and their bytes."""


class Link:
    """A relay's encrypted connection to the controller."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], credentials: curve.Credentials) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.routing_id = os.urandom(8).hex().encode()
        self.socket.curve_serverkey = credentials.server_public.encode()
        self.socket.curve_publickey = credentials.client_public.encode()
        self.socket.curve_secretkey = credentials.client_secret.encode()
        self.socket.sndhwm = 0
        self.socket.connect(credentials.endpoint)
        self._seq = 0

    def send(self, message: FromClient, *payload: bytes) -> None:
        """Sends a message with the next ``seq``."""
        self._seq += 1
        self.socket.send_multipart((encode(msgspec.structs.replace(message, seq=self._seq)), *payload))

    def receive(self) -> FromController | None:
        """The next message; None if there is none."""
        try:
            return decode_from_controller(self.socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            return None


@dataclass
class Relay:
    """One group."""

    link: Link
    role: str
    ids: list[int]
    joined: bool = False
    window: Start | None = None
    every_s: float = 0.0
    due_s: dict[int, float] = field(default_factory=dict)
    """When each client that reports progress does so next (monotonic)."""


class Relays:
    """All groups of a run."""

    def __init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.max_sockets = 4096
        self._poller = zmq.Poller()
        self._poller.register(0, zmq.POLLIN)
        self._of: dict[zmq.Socket[bytes], Relay] = {}
        self._template: list[Part] = []
        self._rate = 0.0

    def serve(self) -> None:
        """Until standard input ends."""
        while True:
            telling = any(relay.due_s for relay in self._of.values())
            ready: dict[Any, int] = dict(self._poller.poll(20 if telling else 1000))
            if 0 in ready and not self._command(sys.stdin.readline()):
                return
            for socket_ in ready.keys() & self._of.keys():
                relay = self._of[socket_]
                while socket_ in self._of and (message := relay.link.receive()) is not None:
                    self._obey(relay, message)
            self._tell_progress()

    def _command(self, line: str) -> bool:
        if not line:
            return False
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, object] = {}
        if "template" in command:
            self._template = msgspec.msgpack.decode(Path(command["template"]).read_bytes(), type=list[Part])
        elif "groups" in command:
            credentials = curve.credentials(command["environment"])
            for group in command["groups"]:
                self._dial(credentials, group)
        else:
            times = os.times()
            answer = {"cpu_s": times.user + times.system}
        print(json.dumps(answer), flush=True)
        return True

    def _dial(self, credentials: curve.Credentials, group: Mapping[str, Any]) -> None:
        relay = Relay(
            Link(self._context, credentials),
            group["role"],
            list(range(group["first"], group["first"] + group["count"])),
        )
        hello = Hello(
            ids=relay.ids,
            seq=1,
            role=group["role"],
            group=group["id"],
            incarnation=0,
            implementation="simulated",
            versions={},
            agent=group["agent"],
            host=socket.gethostname(),
            boot_id=boot_id(),
            time_namespace=time_namespace(),
            network_namespace=network_namespace(),
            pid=os.getpid(),
        )
        relay.link.send(hello)
        self._of[relay.link.socket] = relay
        self._poller.register(relay.link.socket, zmq.POLLIN)

    def _obey(self, relay: Relay, message: FromController) -> None:
        named = list(message.ids or relay.ids)
        match message:
            case Welcome() if not relay.joined:
                relay.joined = True
                pids = [_PID + client for client in relay.ids]
                relay.link.send(Joined(ids=relay.ids, seq=1, incarnations=[0] * len(pids), pids=pids))
            case Ping() if message.reply:
                answer = Ack(ids=relay.ids, seq=1, epoch=0, command="ping", time_ns=time.monotonic_ns())
                relay.link.send(msgspec.structs.replace(answer, echo=message.time_ns))
            case Configure():
                self._configured(relay, message, named)
            case Start():
                relay.window = message
                relay.link.send(Ack(ids=named, seq=1, epoch=message.epoch, command="start"))
            case Stop():
                relay.due_s.clear()
                if relay.role == "publisher":
                    self._report_sent(relay, message)
                else:
                    relay.link.send(Ack(ids=named, seq=1, epoch=message.epoch, command="stop"))
            case Finish():
                self._report(relay, message.epoch, named)
            case Quit():
                self._poller.unregister(relay.link.socket)
                del self._of[relay.link.socket]
                relay.link.socket.close()

    def _configured(self, relay: Relay, message: Configure, named: Sequence[int]) -> None:
        relay.window = None
        relay.link.send(Ack(ids=list(named), seq=1, epoch=message.epoch, command="configure"))
        if relay.role == "publisher" or message.probe:
            endpoint = "tcp://127.0.0.1:9" if relay.role == "publisher" else ""
            relay.link.send(Ready(ids=list(named), seq=1, epoch=message.epoch, endpoint=endpoint))
        if message.progress_s:
            relay.every_s = message.progress_s
            relay.due_s.update((client, time.monotonic() + message.progress_s) for client in named)
        if relay.role == "publisher" and message.settings.rate != "max":
            self._rate = message.settings.rate

    def _tell_progress(self) -> None:
        now_s = time.monotonic()
        for relay in self._of.values():
            if relay.window is None:
                continue
            at_ns = StepClock(relay.window.clock).now_ns()
            count = max(int((at_ns - relay.window.start_at_ns) / 1e9 * self._rate), 0)
            for client in [c for c, due_s in relay.due_s.items() if now_s >= due_s]:
                relay.due_s[client] = now_s + relay.every_s
                epoch = relay.window.epoch
                relay.link.send(Progress(ids=[client], seq=1, epoch=epoch, messages=count, time_ns=at_ns))

    def _report_sent(self, relay: Relay, stop: Stop) -> None:
        if relay.window is None:
            return
        begin_ns = relay.window.start_at_ns
        sent = round(self._rate * (stop.stop_at_ns - begin_ns) / 1e9)
        report = PublisherReport(
            sent=sent,
            acknowledged=sent,
            failed=0,
            first_ns=begin_ns,
            last_ns=stop.stop_at_ns,
            bytes=24 * sent,
            lag=Histogram(),
            usage=ProcessUsage(),
        )
        for client in relay.ids:
            relay.link.send(Report(ids=[client], seq=1, epoch=stop.epoch, publisher=report))

    def _report(self, relay: Relay, epoch: int, named: Sequence[int]) -> None:
        at = 0
        for count, columns, payload in self._template:
            ids = list(named[at : at + count])
            at += count
            if len(ids) == count:
                relay.link.send(Batch(ids=ids, seq=1, epoch=epoch, columns=columns), payload)


if __name__ == "__main__":
    Relays().serve()
