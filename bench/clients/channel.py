"""Hydra's clients of any system over the real control channel, and bare loops with the same settings and servers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, NamedTuple

import msgspec

from bench import programs
from hydra.config.scenario import resolve
from hydra.control.controller import Controller
from hydra.model import PublisherReport, Rate, Settings, SharedSettings, shared_of
from hydra.native.build import PROGRAM
from hydra.system import Program, System, batch_of
from hydra.wire.buckets import percentiles_us
from hydra.wire.clock import wall_offset_ns
from hydra.wire.messages import (
    Configure,
    Finish,
    HostClock,
    PublisherEndpoint,
    PublisherTotal,
    Start,
    Stop,
    SystemObject,
)
from hydra.wire.subscriber_table import SubscriberTable

PUBLISHER: Final = 0
OWN: Final = ("subscribers", "size", "warm", "seconds", "rate")
"""What a bare side is given of a workload besides the system's settings; rate 0: as many messages as possible."""
_LEAD_NS: Final = 200_000_000
_DRAIN_S: Final = 0.5
_ANSWER_WITHIN_S: Final = 60.0


class Figures(NamedTuple):
    """What one side reached in its window.

    Attributes:
        rate_pps: messages/s that all subscribers received together.
        cpu_us: CPU of the subscribers for each message that they received, in µs.
        publisher_cpu_us: CPU of the publisher for each message that it sent, in µs.
        p50_us, p99_us: latency of all received messages from their due times, in µs; 0 without due times.
        pss_bytes: mean PSS of a subscriber's process before its first message; 0 if the side does not measure it.
    """

    rate_pps: float
    cpu_us: float
    publisher_cpu_us: float
    p50_us: float
    p99_us: float
    pss_bytes: float = 0.0

    @property
    def throughput(self) -> Sequence[float]:
        """The figures of a measurement at rate ``max``."""
        return self[:3]

    @property
    def latency(self) -> Sequence[float]:
        """The figures of a measurement at a fixed rate."""
        return self[3:5]


@dataclass(frozen=True, slots=True)
class Workload:
    """What both sides carry: one publisher, and subscribers that receive everything.

    Attributes:
        scenario: the name of the scenario whose settings apply.
        client: the implementation of Hydra's clients.
        subscribers: the number of subscribers.
        size: bytes of a message.
        rate: messages/s, or ``"max"``.
        seconds: length of the window.
        settings: further keys of the scenario.
        warm_s: seconds of messages before the window, on the same connections; a connection whose socket buffers have
            grown carries up to a fifth less than a new one.
    """

    scenario: str
    client: str
    subscribers: int
    size: int
    rate: Rate = "max"
    seconds: float = 3.0
    settings: Mapping[str, object] = field(default_factory=dict)
    warm_s: float = 0.0

    @contextmanager
    def opened(self, servers: Mapping[str, str]) -> Iterator[tuple[Controller, System, Settings]]:
        """A controller, the system under test, and the settings of the step.

        Args:
            servers: the scenario's keys that name the servers.
        """
        own = {"client": self.client, "settings.rate": self.rate, "settings.message_size": self.size}
        resolved = resolve(self.scenario, {**own, **self.settings, **servers}, alone=False)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            controller = Controller("bench")
            stack.callback(controller.close)
            system = resolved.system.identity.make(resolved.scenario, False, True)
            stack.callback(system.close)
            system.open("bench", folder, controller.wait_until)
            settings = resolved.scenario.settings
            yield controller, system, replace(settings, burst=batch_of(settings, resolved.system.published.columns))


class ControlledClients:
    """One publisher and its subscribers, each role a process group, over the real control channel.

    Arguments:
        controller: the other end of the channel.
        publisher, subscriber: the programs of both roles.
        subscribers: the number of subscribers.
    """

    def __init__(self, controller: Controller, publisher: Program, subscriber: Program, subscribers: int) -> None:
        self._controller = controller
        self._ids = list(range(1, subscribers + 1))
        self._epoch = 0
        self._lifeline = os.pipe()
        self._groups = [self._launch(publisher, "p", [PUBLISHER]), self._launch(subscriber, "s", self._ids)]
        present = controller.roster.present
        self._await(lambda: len(present()) == subscribers + 1, "hello")

    def _launch(self, program: Program, group: str, ids: list[int]) -> subprocess.Popen[bytes]:
        self._controller.roster.expect(group, ids)
        names = ["--group", group, "--first-id", str(ids[0]), "--count", str(len(ids))]
        own = {"HYDRA_LIFELINE": str(self._lifeline[0]), **program.environment}
        environment = {**os.environ, **self._controller.environment, **own}
        return subprocess.Popen([*program.command, *names], env=environment, pass_fds=(self._lifeline[0],))

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        errors = self._controller.roster.answers.errors
        in_time = self._controller.wait_until(lambda: bool(errors) or condition(), _ANSWER_WITHIN_S)
        if errors or not in_time:
            raise RuntimeError(f"{what}: {dict(errors) or 'no answer'}")

    def measure(
        self, shared: SharedSettings, system: SystemObject, seconds: float, end: Callable[[], SystemObject]
    ) -> Figures:
        """One window.

        Args:
            shared: the settings of every system.
            system: the system's object in ``configure``.
            seconds: length of the window.
            end: the system's object in ``finish``, after the publisher's report.
        """
        controller, everyone = self._controller, [PUBLISHER, *self._ids]
        self._epoch += 1
        epoch = self._epoch
        controller.roster.begin(epoch)
        answers = controller.roster.answers
        configure = Configure(epoch=epoch, number=1, settings=shared, publishers=[], probe=True, system=system)
        controller.send_to([PUBLISHER], configure)
        self._await(lambda: PUBLISHER in answers.ready, "the publisher")
        endpoint = PublisherEndpoint(PUBLISHER, answers.endpoints[PUBLISHER])
        controller.send_to(self._ids, msgspec.structs.replace(configure, publishers=[endpoint]))
        self._await(lambda: len(answers.ready) == len(everyone), "the subscribers")
        offset = wall_offset_ns()
        start_ns = time.monotonic_ns() + offset + _LEAD_NS
        stop_ns = start_ns + int(seconds * 1e9)
        clock = HostClock(at_ns=0, step_ns=offset)
        controller.send_to(
            everyone, Start(epoch=epoch, number=2, start_at_ns=start_ns, stop_at_ns=stop_ns, clock=clock)
        )
        self._await(lambda: time.monotonic_ns() + offset > stop_ns, "the window")
        controller.send_to(everyone, Stop(epoch=epoch, number=3, stop_at_ns=stop_ns))
        self._await(lambda: PUBLISHER in answers.publisher_reports, "the publisher's report")
        sender = answers.publisher_reports[PUBLISHER]
        total = PublisherTotal(publisher=PUBLISHER, sent=sender.sent, unacknowledged=sender.unacknowledged)
        controller.send_to(
            self._ids, Finish(epoch=epoch, number=4, publishers=[total], drain_max_s=_DRAIN_S, system=end())
        )
        self._await(lambda: len(answers.subscriber_reports.ids) == len(self._ids), "the reports")
        return _figures(answers.subscriber_reports.table(), sender, seconds)

    def close(self) -> None:
        """Ends both groups."""
        self._controller.quit()
        self._controller.wait_until(lambda: all(group.poll() is not None for group in self._groups), 10)
        for end in self._lifeline:
            os.close(end)


def _figures(table: SubscriberTable, sender: PublisherReport, seconds: float) -> Figures:
    p50_us, p99_us = percentiles_us(table.latency, (50, 99))
    received = int(table.received.sum() + table.duplicates.sum())
    return Figures(
        rate_pps=int(table.in_window.sum()) / seconds,
        cpu_us=float((table.cpu_user_s + table.cpu_system_s).sum()) * 1e6 / max(received, 1),
        publisher_cpu_us=(sender.usage.cpu_user_s + sender.usage.cpu_system_s) * 1e6 / max(sender.sent, 1),
        p50_us=p50_us or 0,
        p99_us=p99_us or 0,
    )


def _compiled(program: Program) -> Program:
    """The program; a native one is that of the benches, compiled from the present sources."""
    first, *rest = program.command
    if Path(first).name != Path(PROGRAM).name:
        return program
    return replace(program, command=(str(programs.client()), *rest))


class SharedServer(AbstractContextManager["SharedServer"]):
    """A server that both sides of consecutive lines use; it can be started again after its end.

    Arguments:
        make: makes the server, with its files in a folder.
        key: the scenario's key for its address.

    Attributes:
        address: this key with the address while the server runs.
        where: the address alone.
    """

    def __init__(self, make: Callable[[Path], Any], key: str) -> None:
        self._make = make
        self._key = key
        self._running = ExitStack()
        self.address: Mapping[str, str] = {}
        self.where = ""

    def __enter__(self) -> SharedServer:
        folder = Path(self._running.enter_context(TemporaryDirectory()))
        server = self._running.enter_context(self._make(folder / "server"))
        self.where = server.address
        self.address = {self._key: self.where}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.close()


@dataclass(frozen=True, slots=True)
class Sides:
    """How both sides of a system are measured.

    Attributes:
        command: the command line of the bare side, from the name of Hydra's client, and from the system's object in
            ``configure`` with :data:`OWN`.
        server: the server of both sides; None if the system has none.
        lacks: what this machine lacks for it.
    """

    command: Callable[[str, Mapping[str, Any]], Sequence[str]]
    server: SharedServer | None = None
    lacks: Callable[[], str] = programs.lacks

    @property
    def within(self) -> AbstractContextManager[object]:
        """What runs during the measurements."""
        return self.server or _NOTHING

    def ours(self, load: Workload) -> Figures:
        """One window of Hydra's clients, on new connections that ``warm_s`` has warmed."""
        with load.opened(self._servers) as (controller, system, settings), ExitStack() as stack:
            publisher, subscriber = _compiled(system.program("publisher")), _compiled(system.program("subscriber"))
            clients = ControlledClients(controller, publisher, subscriber, load.subscribers)
            stack.callback(clients.close)
            for seconds in filter(None, (load.warm_s, load.seconds)):
                found = clients.measure(shared_of(settings), system.configure(settings), seconds, system.finish)
            return found

    def bare(self, load: Workload) -> Figures:
        """One window of a bare program, on new connections."""
        with load.opened(self._servers) as (_, system, settings):
            rate = 0 if load.rate == "max" else load.rate
            own = dict(zip(OWN, (load.subscribers, load.size, load.warm_s, load.seconds, rate), strict=True))
            command = self.command(load.client, {**(system.configure(settings) or {}), **own})
            done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=programs.WITHIN_S)
        return Figures(**json.loads(done.stdout))

    @property
    def where(self) -> str:
        """The address of the server; "" if the system has none."""
        return self.server.where if self.server else ""

    @property
    def _servers(self) -> Mapping[str, str]:
        return self.server.address if self.server else {}


_NOTHING: Final = nullcontext()
"""The same object for all systems without a server."""


def words(program: Path, values: Mapping[str, Any]) -> list[str]:
    """A command line of words NAME=VALUE, for the bare loops in C++."""
    return [str(program), *(f"{name}={value}" for name, value in values.items())]
