"""What the runner needs of a system under test; ``zmqtest`` and ``kafkatest`` each provide one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

import click

from hydra.events.warnings import HydraWarning
from hydra.model import Figure, Role, Scenario
from hydra.wire.messages import KafkaTopic

Waiting = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition holds, for at most so many seconds, and says whether it does.

A run waits through its controller (``Controller.wait_until``), so that clients are served meanwhile. The condition is
asked often and returns at once.
"""

_LOOK_EVERY_S: Final = 0.005


def wait_alone(condition: Callable[[], bool], timeout_s: float) -> bool:
    """A :data:`Waiting` for whoever has nobody to serve."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """How an agent starts a group of one kind: the group's own flags are appended to ``command``.

    ``files`` are what it needs beside Hydra's modules, by their name in the package ``hydra``.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)


class Brokers(Protocol):
    """Brokers of our own, wherever they run."""

    version: str
    """Of what they run, once started."""

    def start(self) -> str:
        """Brings them up; returns their address for clients. May be called again after ``stop``.

        Raises:
            BrokerError, MissingDependencyError, PlacementError: they cannot be.
        """

    def failure(self) -> str:
        """Why they are not all there any more, or ""; returns at once."""

    def stop(self) -> None:
        """Ends them with all their data; may be called twice."""


class System(Protocol):
    """A system under test for the length of a run."""

    def check(self) -> None:
        """Looks whether the system could be brought up at all; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """

    def open(self, run: str, folder: Path, wait: Waiting, brokers: Brokers | None = None) -> None:
        """Brings up what is needed (a broker, a topic), with its files under ``folder``.

        Args:
            run: the run's name.
            folder: the run's directory.
            wait: how this and every later call waits for others.
            brokers: those on the cluster's agents, where ``broker`` has named a program for them.

        Raises:
            BrokerError, MissingDependencyError, PlacementError: it cannot.
        """

    def program(self, role: Role) -> Program:
        """The program of a role's clients."""

    def broker(self) -> Program | None:
        """The program of a broker on an agent; None if none are to be there."""

    def topic(self) -> KafkaTopic | None:
        """Where the next step's data goes, with the offsets at which it starts; None where there are no topics.

        Raises:
            StepError: brokers of our own do not tell, and count as failed from now on.
            BrokerError: the user's do not.
        """

    def end_offsets(self) -> dict[int, int]:
        """The offsets at which this step's data ends, by partition; empty where there are none. Errors as above."""

    def failure(self) -> str:
        """Why this system can carry no more steps just now, or ""; returns at once."""

    def revive(self) -> None:
        """Recovers from a failure, by a new broker for instance, or waits for the recovery.

        Raises:
            BrokerError: it did not end.
        """

    def stored_bytes(self) -> int:
        """What brokers of our own keep of the last steps on this machine's disk: the next ones take its place."""

    def metadata(self) -> dict[str, str]:
        """What to record of it: versions, its configuration, no secrets."""

    def warnings(self) -> list[HydraWarning]:
        """What the user has to know of it and was not told yet; empties the list."""

    def close(self) -> None:
        """Removes all that :meth:`open` made; may be called twice."""


# --- what a system tells of itself ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one subscriber process of an implementation takes: memory as PSS and what the kernel keeps for it.

    ``further`` is what each further subscriber takes that is packed into the same process; None: it cannot be packed.
    """

    threads: int
    files: int
    memory_bytes: int
    further: Footprint | None = None

    def of(self, packed: int) -> Footprint:
        """What a process with so many subscribers takes.

        Raises:
            ValueError: more than one, of an implementation that cannot be packed.
        """
        if packed == 1:
            return self
        if self.further is None:
            raise ValueError(f"{packed} subscribers in a process of an implementation that takes one")
        more = packed - 1
        return Footprint(
            threads=self.threads + more * self.further.threads,
            files=self.files + more * self.further.files,
            memory_bytes=self.memory_bytes + more * self.further.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class ServerFootprint:
    """What one server of a system (a broker) takes on its machine.

    ``connections`` is how many of its descriptors each client takes; ``record_bytes`` what it keeps of a message beside
    its payload, 0 where it keeps none on disk; ``most_bytes_a_second`` the fastest that one was seen to write.
    """

    processes: int
    threads: int
    files: int
    connections: int
    memory_bytes: int
    record_bytes: int = 0
    steps_kept: int = 2
    late_s: float = 10.0
    most_bytes_a_second: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an experiment's published table is, and what tells its rows apart.

    Attributes:
        file: a file of ``conf/reference`` or a path.
        experiment: the scenario that comes with Hydra and asks for what was published.
        keys: columns in which a measured row and its published counterpart agree.
    """

    file: str
    experiment: str
    keys: tuple[str, ...] = ("clients",)


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column of a system's own: what clients said under one key of the ``system`` object of their reports.

    Attributes:
        name, unit, help: as in :class:`hydra.columns.column.Column`.
        role: whose reports.
        key: of the object; a client that does not name it does not count.
        fold: what becomes of the figures of all these clients.
    """

    name: str
    unit: str
    help: str
    role: Role
    key: str
    fold: Literal["sum", "max", "common"] = "sum"


Refusal = tuple[tuple[str, ...], str, str]
"""Why a scenario cannot be: the key's path, what is wrong, what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec:
    """Everything that generic code knows of a system.

    Attributes:
        name: in scenarios, and of its entry point.
        title: for people, such as ``raw ZMQ PUB/SUB``.
        queue: what fills when the system is the bottleneck, for verdicts: ``broker``, ``high-water mark``.
        settings: a frozen dataclass: what can change between two steps beside what all systems share; every field has
            a default, checks in ``__post_init__`` raise ValueError. In a scenario's [settings] its fields stand beside
            the shared ones.
        bounds: for its numbers, by dotted key: least and most.
        tables: further tables of its scenarios, by their name: frozen dataclasses whose fields have defaults.
        native: its further keys under [native], a frozen dataclass; None: it has none.
        implementations: footprint by name; the default first.
        servers: footprint of a server that Hydra brings along; None: the system has none.
        server_spec: how many servers, where and with what; None as above.
        flags: options of its commands, by the name that the callback gets: the dotted key of a scenario.
        commands: click commands, added to ``hydra``.
        scenarios: the names of those in ``conf/scenarios`` that are its own.
        columns: what its clients report that others do not.
        differs: settings in which a run is compared with another one of this system.
        make: the system for a run: the scenario, whether its servers are groups on agents, whether these are local.
        check: what is wrong with a scenario that its types cannot see.
        burst: messages sent back to back where a scenario does not say so, from the system's settings.
        reference: the published table of the experiment that a scenario repeats; None: there is none.
        secrets: values of a scenario that must not be seen.
        is_secret: whether what stands under this (dotted) key must not be seen.
        servers_of: how many servers of ours a scenario needs.
    """

    name: str
    title: str
    queue: str
    settings: type
    implementations: Mapping[str, Footprint]
    make: Callable[[Scenario, bool, bool], System]
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tables: Mapping[str, type] = field(default_factory=dict)
    native: type | None = None
    servers: ServerFootprint | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[click.Command] = ()
    columns: Sequence[ReportColumn] = ()
    differs: Sequence[str] = ()
    check: Callable[[Scenario], Iterable[Refusal]] = lambda _: ()
    burst: Callable[[Mapping[str, Figure]], int] = lambda _: 100
    reference: Callable[[Scenario], Reference | None] = lambda _: None
    secrets: Callable[[Scenario], Iterable[str]] = lambda _: ()
    is_secret: Callable[[str], bool] = lambda _: False
    servers_of: Callable[[Scenario], int] = lambda _: 0
