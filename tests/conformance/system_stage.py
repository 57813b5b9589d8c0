"""A system of any package on a stage: its servers, its clients' programs, and steps between a test's data ends."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.model import NativeSpec, Role, Scenario, Settings, SubscriberReport, SweepSpec, shared_of
from hydra.system import DeliveryRules, Implementation, System, SystemSpec, wait_alone
from hydra.wire.data_message import SEQUENCE_LIMIT
from hydra.wire.messages import PROBE_EPOCH, Ready, Traffic
from hydra.wire.traffic import topic_choice, traffic_of
from tests.conformance.bench import CLIENT, Bench, StepSettings, Window
from tests.conformance.data_ends import DataEnds
from tests.conformance.peer import unpacked
from tests.suite.native_client import native_client

_PROBE_EVERY_S = 0.05
"""A probe reaches one member of a group, so probes continue until all are ready."""


@dataclass(frozen=True)
class Subject:
    """What is put on the stage: a system with an implementation of its clients and some of its own settings.

    Attributes:
        spec: the specification, from its package.
        ends: its adapter.
        client: the implementation.
        own: settings of the system that are not its defaults.
    """

    spec: SystemSpec
    ends: type[DataEnds]
    client: str
    own: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.spec.identity.name, *map(str, self.own.values()), self.client])

    def settings(self, **values: Any) -> Settings:
        """Settings of a step, with some shared ones changed."""
        return replace(Settings(system=self.spec.settings.step(**self.own), burst=100), **values)

    @cached_property
    def scenario(self) -> Scenario:
        """A scenario whose servers are Hydra's."""
        return Scenario(
            name="conformance",
            system=self.spec.identity.name,
            client=self.client,
            table="fixed",
            sweep=SweepSpec(duration_s=1.0, clients=(1,)),
            settings=self.settings(),
            native=NativeSpec(system=self.spec.settings.native()),
            tables={name: kind() for name, kind in self.spec.settings.tables.items()},
        )

    @cached_property
    def delivery(self) -> DeliveryRules:
        """How the system delivers messages with these settings."""
        return self.spec.delivery(self.scenario, self.scenario.settings)

    @property
    def group(self) -> str:
        """The consumer group of the subscribers; "": each has all messages."""
        return self.delivery.group

    @property
    def implementation(self) -> Implementation:
        """The implementation of its clients."""
        return self.spec.identity.implementations[self.client]

    @property
    def is_native(self) -> bool:
        """Whether its clients are Hydra's native program."""
        return self.implementation.program == "native"

    @property
    def is_to_be_had(self) -> bool:
        """Whether the program of its clients is there."""
        return not self.is_native or native_client(f"{self.spec.identity.name}-sub") is not None


def subjects(spec: SystemSpec, ends: type[DataEnds], *owns: Mapping[str, Any]) -> list[Subject]:
    """A system with each implementation whose program is there, except tools, and each of these settings."""
    clients = [name for name, kind in spec.identity.implementations.items() if kind.program != "tool"]
    found = [Subject(spec, ends, client, own) for own in owns for client in clients]
    return [subject for subject in found if subject.is_to_be_had]


class SystemStage:
    """An open system. Systems of a package differ in their clients' program only, so they share its servers."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        folder.mkdir()
        self.system: System = subject.spec.identity.make(subject.scenario, False, True)
        self.system.check()
        self.system.open("conformance", folder, wait_alone)

    def close(self) -> None:
        self.system.close()


def command(subject: Subject, role: Role) -> str:
    """The command line of a subject's clients, to which only the flags of a group are added."""
    program = subject.spec.identity.make(subject.scenario, False, True).program(role)
    words, native = list(program.command), native_client(f"{subject.spec.identity.name}-sub")
    if subject.is_native and native is not None:
        words[:1] = shlex.split(native)
    return shlex.join(["env", *(f"{name}={value}" for name, value in program.environment.items()), *words])


class SystemStep:
    """The steps of one test: its subject's clients at a bench, and data ends beside them.

    Attributes:
        subject: what is tested.
        bench: a controller with the clients; their epochs begin with 1.
        settings: those of the latest step.
        further: arguments of every ``configure``.
    """

    def __init__(self, subject: Subject, stage: SystemStage, bench: Bench) -> None:
        self.subject = subject
        self.bench = bench
        self.system = stage.system
        self._ends: DataEnds | None = None
        self.settings = subject.settings()
        self.further: dict[str, Any] = {}

    @property
    def ends(self) -> DataEnds:
        """The ends of the latest step."""
        assert self._ends is not None
        return self._ends

    @property
    def traffic(self) -> Traffic:
        """The topics of the latest step."""
        return traffic_of(self.settings)

    def close(self) -> None:
        if self._ends is not None:
            self._ends.close()

    def renew(self) -> None:
        """Opens the ends again, whose connections ended with the server."""
        before = self.ends
        before.close()
        self._ends = self.subject.ends(before.step, before.topics)

    # --- commands ----------------------------------------------------------------------------------------------------

    def prepared(self, **values: Any) -> tuple[StepSettings, dict[str, Any]]:
        """The settings of the next step, and the other arguments of ``configure``."""
        self.settings = self.subject.settings(**values)
        step = self.system.configure(self.settings) or {}
        if self._ends is None or self.settings.topics != self._ends.topics:
            self.close()
            self._ends = self.subject.ends(step, self.settings.topics)
        topics = {"traffic": self.traffic} if self.settings.topics > 1 else {}
        return StepSettings(shared_of(self.settings), step), {"group": self.subject.group, **topics, **self.further}

    def publisher(self, epoch: int, *, probe: bool = False, **values: Any) -> str:
        """Configures the publisher; returns the endpoint that it named."""
        settings, more = self.prepared(**values)
        return self.bench.configure_publisher(CLIENT, epoch, settings, probe=probe, **more)

    def subscribers(
        self, epoch: int, publishers: Iterable[int], *, ids: Sequence[int] = (CLIENT,), **values: Any
    ) -> None:
        """Configures subscribers and waits until they have heard probes of these publishers."""
        settings, more = self.prepared(**values)
        known = list(publishers)
        self.bench.configure_subscribers(
            ids, epoch, settings, publishers=dict.fromkeys(known, ""), progress_s=0.02, **more
        )

        due_s = 0.0

        def ready() -> bool:
            nonlocal due_s
            if all(self.bench.peer.messages_of(Ready, client, epoch=epoch) for client in ids):
                return True
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + _PROBE_EVERY_S
                for publisher in known:
                    self.probe(epoch, publisher)
            return False

        self.bench.peer.wait(ready, f"readiness of {ids}")

    def begun(
        self, epoch: int, *publishers: int, ids: Sequence[int] = (CLIENT,), seconds: float = 30.0, **values: Any
    ) -> Window:
        """The same, and a window that has begun."""
        self.subscribers(epoch, publishers, ids=ids, **values)
        window = self.bench.start(ids, epoch, seconds)
        self.bench.await_moment(window, 0.0)
        return window

    def end_of_data(self) -> dict[str, Any] | None:
        """The ``system`` object of ``finish``; None: only publishers know where the data ends."""
        return self.system.finish()

    def report(self, epoch: int, sent: Mapping[int, int], **more: Any) -> SubscriberReport:
        """Finishes the subscriber's step; if only publishers know where their data ends, they mark its end."""
        end = self.end_of_data()
        for publisher in sent if end is None else ():
            self.mark_end(epoch, publisher)
        return self.bench.subscriber_report(CLIENT, epoch, sent, system=end, **more)

    # --- data --------------------------------------------------------------------------------------------------------

    def write(self, epoch: int, sequences: Iterable[int], publisher: int, size: int = 24) -> None:
        """Writes data messages of a publisher, each with the topic that it draws."""
        numbers = list(sequences)
        topics = [topic_choice(self.traffic, publisher).at(n) for n in numbers] if self.settings.topics > 1 else None
        packed = [self.bench.peer.packed(epoch, publisher, n, time.time_ns(), size) for n in numbers]
        self.ends.write(packed, publisher, topics)

    def probe(self, epoch: int, publisher: int) -> None:
        """Writes one probe of a publisher that was configured for this epoch, to each topic that has probes."""
        self._signal(epoch, publisher)

    def mark_end(self, epoch: int, publisher: int) -> None:
        """Writes one end marker of a publisher whose step is over."""
        self._signal(SEQUENCE_LIMIT | epoch, publisher)

    def _signal(self, sequence: int, publisher: int) -> None:
        message = self.bench.peer.packed(PROBE_EPOCH, publisher, sequence, time.time_ns())
        topics = list(self.traffic.probed) if self.settings.topics > 1 else None
        self.ends.write([message] * (len(topics) if topics else 1), publisher, topics, signals=True)

    def arrivals(self) -> list[Arrived]:
        """All messages that the ends have read."""
        first = self.bench.peer.first_epoch
        return [Arrived(topic, len(raw), *unpacked(first, raw)) for topic, raw in self.ends.read()]

    def data(self, epoch: int) -> list[Arrived]:
        """The data messages of an epoch."""
        return [each for each in self.arrivals() if each.epoch == epoch]

    def signals(self, sequence: int) -> list[Arrived]:
        """The probes of an epoch, or with ``SEQUENCE_LIMIT | epoch`` its end markers."""
        return [each for each in self.data(PROBE_EPOCH) if each.sequence == sequence]


@dataclass(frozen=True)
class Arrived:
    """One message that the system has delivered."""

    topic: int
    size: int
    epoch: int
    publisher: int
    sequence: int
    time_ns: int
