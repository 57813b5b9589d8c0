"""What generic code needs of a system: what it is (``SystemSpec``), and what it does for a run (``System``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, get_args

import click

from hydra.columns.column import Column as Column
from hydra.columns.column import ReportColumn as ReportColumn
from hydra.columns.step import BATCH
from hydra.events.warnings import HydraWarning
from hydra.model import Figure, Role, Scenario, ServerSpec, Settings, value_of

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

    ``files`` are what it needs beside Hydra's modules, by their name in the package ``hydra``; ``libraries`` are the
    distributions that it imports beside those of ``hydra.control.LIBRARIES``, with what these need in turn.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()


class Servers(Protocol):
    """Servers of our own, wherever they run."""

    versions: Mapping[str, str]
    """Of what they run, once started."""

    def start(self) -> str:
        """Brings them up; returns their address for clients. May be called again after ``stop``.

        Raises:
            ServerError, MissingDependencyError, PlacementError: they cannot be.
        """

    def failure(self) -> str:
        """Why they are not all there any more, or ""; returns at once."""

    def stop(self) -> None:
        """Ends them with all their data; may be called twice."""


class ServerCluster(Protocol):
    """How a system's servers become one, each of which has told where it will listen (``host:port``, with commas).

    Whoever starts servers (:class:`Servers`) is given one of these, and has each server start with what ``join`` says.
    """

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """What each server has to know of the others to start, in their order; a cluster of its own by every call."""

    def address(self, endpoints: Sequence[str]) -> str:
        """Their address for clients."""

    def up(self, address: str) -> bool:
        """Whether those that were joined last all answer there; asked on a thread, may take about a second."""

    def warm_up(self, address: str) -> None:
        """Whatever makes fresh servers as quick as they will be; on a thread, ends by itself within some 30 s.

        Raises:
            ServerError: it did not succeed.
        """


class System(Protocol):
    """A system under test for the length of a run."""

    def check(self) -> None:
        """Looks whether the system could be brought up at all; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Brings up what is needed on the side of the servers, with its files under ``folder``.

        Args:
            run: the run's name.
            folder: the run's directory.
            wait: how this and every later call waits for others.
            servers: those on the cluster's agents, where ``server`` has named a program for them.

        Raises:
            ServerError, MissingDependencyError, PlacementError: it cannot.
        """

    def program(self, role: Role) -> Program:
        """The program of a role's clients."""

    def server(self) -> Program | None:
        """The program of a server on an agent; None if none are to be there."""

    def cluster(self) -> ServerCluster | None:
        """How servers on agents become one; None as above."""

    def configure(self, settings: Settings) -> dict[str, Any] | None:
        """The ``system`` object of the next step's ``configure``: what is the system's own, and where its data goes.

        Asked once whenever a step is begun, before anybody is configured.

        Raises:
            StepError: servers of our own do not tell, and count as failed from now on.
            ServerError: the user's do not.
        """

    def finish(self) -> dict[str, Any] | None:
        """The ``system`` object of ``finish``: where this step's data ends. Errors as above."""

    def proof(self, settings: Settings) -> Hashable:
        """What a subscriber's readiness depends on beside the processes at both ends.

        While it stays the same, whoever has received everything of a step is ready for the next one.
        """

    def log_end(self, settings: Settings) -> int | None:
        """The messages in the servers' log, where nothing but its growth tells what they took.

        None with all other settings: publishers get acknowledgements, or nobody keeps a log. Errors as above.
        """

    def failure(self) -> str:
        """Why this system can carry no more steps just now, or ""; returns at once."""

    def revive(self) -> None:
        """Recovers from a failure, by a new server for instance, or waits for the recovery.

        Raises:
            ServerError: it did not end.
        """

    def stored_bytes(self) -> int:
        """What servers of our own keep of the last steps on this machine's disk: the next ones take its place."""

    def metadata(self) -> dict[str, str]:
        """What to record of it: versions, its configuration, no secrets."""

    def warnings(self) -> list[HydraWarning]:
        """What the user has to know of it and was not told yet; empties the list."""

    def close(self) -> None:
        """Removes all that :meth:`open` made; may be called twice."""


def programs(system: System) -> list[Program]:
    """The programs of all groups of a run: of clients, and of servers if some are groups.

    Raises:
        MissingDependencyError: something that one needs is not there and cannot be fetched.
    """
    server = system.server()
    return [*(system.program(role) for role in get_args(Role)), *([] if server is None else [server])]


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
    """What one server of a system takes on its machine.

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


Refusal = tuple[tuple[str, ...], str, str]
"""Why a scenario cannot be: the key's path, what is wrong, what to try."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemSpec:
    """Everything that generic code knows of a system.

    Attributes:
        name: in scenarios, and of its entry point.
        title: for people.
        queue: what fills when the system is the bottleneck, for verdicts, such as ``high-water mark``.
        settings: a frozen dataclass: what can change between two steps beside what all systems share; every field has
            a default, checks in ``__post_init__`` raise ValueError. In a scenario's [settings] its fields stand beside
            the shared ones.
        bounds: for its numbers, by dotted key: least and most.
        tables: further tables of its scenarios, by their name: frozen dataclasses whose fields have defaults.
        native: its further keys under [native], a frozen dataclass; None: it has none.
        implementations: footprint by name; the default first.
        servers: footprint of a server that Hydra brings along; None: the system has none.
        server_spec: how many servers, where and with what, unless a scenario says so; None as above.
        aliases: other names of keys in scenarios and ``--set``: the dotted key by the dotted alias, both of one table.
        table_words: other words for a scenario's ``table``.
        batch: the column of the setting that says how many messages travel together, where it is not ``burst``.
        elsewhere: flags that name servers of the user's own (``hydra.options.keyed``), for commands that prepare a run.
        commands: click commands, added to ``hydra`` (``hydra.options.scenario_command`` makes those that run a
            scenario). An option that takes KEY=VALUE, which may be a secret, has that as its metavar.
        scenarios: a folder with further scenarios, which are known by their names like those of ``conf/scenarios``.
        columns: what its clients report that others do not.
        differs: settings in which a run is compared with another one of this system.
        make: the system for a run: the scenario, whether its servers are groups on agents, whether these are local.
        check: what is wrong with a scenario that its types cannot see.
        burst: messages sent back to back where a scenario does not say so, from the system's settings.
        group: the consumer group that a step's subscribers are members of, each message going to at least one of them;
            "": there is none, each message goes to all of them.
        reference: the published table of the experiment that a scenario repeats; None: there is none.
        secrets: values of a scenario that must not be seen.
        users: names that may stand before a secret in HTTP's basic authentication.
        is_secret: whether what stands under this (dotted) key must not be seen.
        servers_of: how many servers of ours a scenario needs.
        copies_of: on how many servers each message is kept.
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
    server_spec: ServerSpec | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    table_words: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Sequence[Callable[[Any], Any]] = ()
    commands: Sequence[click.Command] = ()
    batch: Column = BATCH
    scenarios: Path | None = None
    columns: Sequence[ReportColumn] = ()
    differs: Sequence[str] = ()
    check: Callable[[Scenario], Iterable[Refusal]] = lambda _: ()
    burst: Callable[[Mapping[str, Figure]], int] = lambda _: 100
    group: Callable[[Settings], str] = lambda _: ""
    reference: Callable[[Scenario], Reference | None] = lambda _: None
    secrets: Callable[[Scenario], Iterable[str]] = lambda _: ()
    users: Callable[[Scenario], Iterable[str]] = lambda _: ()
    is_secret: Callable[[str], bool] = lambda _: False
    servers_of: Callable[[Scenario], int] = lambda _: 0
    copies_of: Callable[[Scenario], int] = lambda _: 1

    def batch_of(self, settings: Settings) -> Figure:
        """How many messages travel together at these settings: the figure of the batch column."""
        value = value_of(settings, self.batch.name)
        return self.burst(settings.system) if value is None else value
