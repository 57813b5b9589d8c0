"""Relays that speak the real protocol over real sockets, without clients: the other end of bench/simulation.py.

Reads commands from standard input, a JSON object a line, and answers each with a line:

- ``{"template": path}``: what every group reports, a list of :data:`Part` in MessagePack;
- ``{"environment": {...}, "groups": [{"id", "role", "first", "count", "agent"}]}``: these dial in with all of their
  clients;
- ``{"usage": true}``: the answer is ``{"commands": …}``, the number of settings that have arrived.

The end of the file ends it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from hydra.client.host_counters import HostSampler
from hydra.client.host_monitor import HostMonitor
from hydra.client.linux_process import raise_open_files
from hydra.control import curve_security
from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.model import GroupRole, Histogram, ProcessUsage, PublisherReport
from hydra.wire.clock import StepClock
from hydra.wire.messages import (
    Batch,
    Configure,
    Finish,
    FromController,
    Joined,
    Ping,
    Progress,
    Quit,
    Ready,
    Report,
    Start,
    Stop,
    Watch,
    Welcome,
)

_PID: Final = 1000
"""Process id of client 0: nobody asks the kernel for it."""
_WORK_EVERY_S: Final = 0.1
"""How often all relays look whether something is due, a hello or a sample."""

Part = tuple[int, list[tuple[str, int]], bytes]
"""A batch without its head: for how many clients, its columns, and their bytes."""


@dataclass
class Relay:
    """One group."""

    link: ControlClient
    role: GroupRole
    ids: list[int]
    watcher: HostMonitor
    joined: bool = False
    window: Start | None = None
    every_s: float = 0.0
    due_s: list[tuple[float, int]] = field(default_factory=list)
    """When each client that reports progress does so next (monotonic): a heap."""


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
        self._commands = 0
        self._here = ProcessLocation.read()
        self._work_s = 0.0

    def serve(self) -> None:
        """Until standard input ends."""
        while True:
            telling = any(relay.due_s for relay in self._of.values() if relay.window is not None)
            ready: dict[Any, int] = dict(self._poller.poll(20 if telling else 1000))
            if 0 in ready and not self._command(sys.stdin.readline()):
                return
            for socket_ in ready.keys() & self._of.keys():
                relay = self._of[socket_]
                while socket_ in self._of and (message := relay.link.receive(0)) is not None:
                    self._obey(relay, message)
            self._tell_progress()
            if time.monotonic() >= self._work_s:
                self._work_s = time.monotonic() + _WORK_EVERY_S
                for relay in self._of.values():
                    relay.link.introduce()
                    relay.watcher.work()

    def _command(self, line: str) -> bool:
        if not line:
            return False
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, object] = {}
        if "template" in command:
            self._template = msgspec.msgpack.decode(Path(command["template"]).read_bytes(), type=list[Part])
        elif "groups" in command:
            credentials = curve_security.credentials(command["environment"])
            for group in command["groups"]:
                self._dial(credentials, group)
        else:
            answer = {"commands": self._commands}
        print(json.dumps(answer), flush=True)
        return True

    def _dial(self, credentials: curve_security.Credentials, group: Mapping[str, Any]) -> None:
        ids = list(range(group["first"], group["first"] + group["count"]))
        here = replace(self._here, agent=str(group["agent"]))
        identity = ClientIdentity(ids, group["role"], group["id"], 0, "simulated", {}, here)
        link = ControlClient(credentials, identity, self._context)
        relay = Relay(link, group["role"], ids, HostMonitor(ids, link.send, HostSampler().read, list))
        self._of[link.socket] = relay
        self._poller.register(link.socket, zmq.POLLIN)

    def _obey(self, relay: Relay, message: FromController) -> None:
        named = list(message.ids or relay.ids)
        match message:
            case Welcome() if not relay.joined:
                relay.joined = True
                pids = [_PID + client for client in relay.ids]
                relay.link.send(Joined(ids=relay.ids, seq=1, incarnations=[0] * len(pids), pids=pids))
            case Ping() if message.reply:
                relay.link.answer(message)
            case Watch():
                relay.watcher.take(message)
            case Configure():
                self._configured(relay, message, named)
            case Start():
                relay.window = message
                relay.link.acknowledge(message, named)
            case Stop():
                relay.due_s.clear()
                if relay.role == "publisher":
                    self._report_sent(relay, message)
                else:
                    relay.link.acknowledge(message, named)
            case Finish():
                self._report(relay, message.epoch, named)
            case Quit():
                self._poller.unregister(relay.link.socket)
                del self._of[relay.link.socket]
                relay.link.close()

    def _configured(self, relay: Relay, message: Configure, named: Sequence[int]) -> None:
        relay.window = None
        self._commands += 1
        relay.link.acknowledge(message, named)
        if relay.role == "publisher" or message.probe:
            endpoint = "tcp://127.0.0.1:9" if relay.role == "publisher" else ""
            relay.link.send(
                Ready(ids=list(named), seq=1, epoch=message.epoch, number=message.number, endpoint=endpoint)
            )
        if message.progress_s:
            relay.every_s = message.progress_s
            again = set(named)
            relay.due_s = [(due_s, client) for due_s, client in relay.due_s if client not in again]
            relay.due_s += [(time.monotonic() + message.progress_s, client) for client in named]
            heapify(relay.due_s)
        if relay.role == "publisher" and message.settings.rate != "max":
            self._rate = message.settings.rate

    def _tell_progress(self) -> None:
        now_s = time.monotonic()
        for relay in self._of.values():
            if relay.window is None:
                continue
            if not relay.due_s or relay.due_s[0][0] > now_s:
                continue
            at_ns = StepClock(relay.window.clock).now_ns()
            count = max(int((at_ns - relay.window.start_at_ns) / 1e9 * self._rate), 0)
            while relay.due_s and relay.due_s[0][0] <= now_s:
                client = relay.due_s[0][1]
                heapreplace(relay.due_s, (now_s + relay.every_s, client))
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
            relay.link.send(Report(ids=[client], seq=1, epoch=stop.epoch, number=stop.number, publisher=report))

    def _report(self, relay: Relay, epoch: int, named: Sequence[int]) -> None:
        at = 0
        for count, columns, payload in self._template:
            ids = list(named[at : at + count])
            at += count
            if len(ids) == count:
                relay.link.send(Batch(ids=ids, seq=1, epoch=epoch, columns=columns), payload)


if __name__ == "__main__":
    raise_open_files()
    Relays().serve()
