"""The specification of a system: everything that generic code knows about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.measure.column import BATCH, Column, ReportColumn
from hydra.model import (
    EventSpec,
    Figure,
    NoOptions,
    Scenario,
    ServerSpec,
    Settings,
    SetupPart,
    SystemOptions,
    SystemSettings,
    value_of,
)
from hydra.system.interface import System

if TYPE_CHECKING:
    import click

    from hydra.system.experiment import Preset


@dataclass(frozen=True, slots=True)
class Greeting:
    """How a kind of server is known.

    Attributes:
        protocol: what it speaks.
        server: what it is called.
        answer: the beginning of its first bytes, a regular expression.
        question: what makes it answer; ``b""``: it greets its clients first.
    """

    protocol: str
    server: str
    answer: bytes
    question: bytes = b""

    def matches(self, answer: bytes) -> bool:
        """Whether such a server has answered this."""
        return re.match(self.answer, answer, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Footprint:
    """The resources of one subscriber process of an implementation; memory is PSS plus the kernel's memory for it.

    ``further`` is the need of each further subscriber in the same process; None: the implementation cannot be packed.
    ``packed`` is the default number of connections of a process, which is its number of subscribers if each has one.
    ``cpus`` is the default demand of one subscriber. ``ports`` is the number of connections to one address that share a
    local address; None: all connections of a host do. ``server`` is what each server beyond the first adds to every
    subscriber, packed or not: a library may have a thread for each known server. ``ordered_topics``: whether the
    messages of several topics arrive in the order in which a publisher sent them. If not, a subscriber's account keeps
    a byte for each message.
    """

    threads: int
    files: int
    memory_bytes: int
    further: Footprint | None = None
    packed: int = 1
    cpus: float = 0.0
    ports: int | None = None
    server: Footprint | None = None
    ordered_topics: bool = True

    def of(self, packed: int, servers: int = 1) -> Footprint:
        """The resources of a process with this many subscribers that know this many servers.

        Raises:
            ValueError: there are several subscribers, and the implementation cannot be packed.
        """
        system = self
        if packed > 1:
            if self.further is None:
                raise ValueError(f"{packed} subscribers in a process of an implementation that takes one")
            system = system._with(self.further, packed - 1)
        if servers > 1 and self.server is not None:
            system = system._with(self.server, packed * (servers - 1))
        return system

    def _with(self, other: Footprint, times: int) -> Footprint:
        return Footprint(
            threads=self.threads + times * other.threads,
            files=self.files + times * other.files,
            memory_bytes=self.memory_bytes + times * other.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class ServerFootprint:
    """The resources that one server of a system needs on its machine.

    ``connections`` is the number of its descriptors for each client. ``record_bytes`` is what it stores for a message
    in addition to the payload, 0 if it stores no messages on disk. ``most_bytes_a_second`` is the highest measured
    write rate. ``start_s`` is the time in seconds until a started server answers, ``join_s`` the time that new clients
    need with it beyond the start of their processes, ``back_s`` the time until all clients are connected again after a
    killed server was started again. ``memory_of`` returns the memory of each of N servers on one
    machine; None: always ``memory_bytes``.
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
    start_s: float = 0.0
    join_s: float = 0.0
    back_s: float = 0.0
    memory_of: Callable[[int], int] | None = None

    def memory(self, sharing: int) -> int:
        """The memory in bytes of each of ``sharing`` servers on one machine."""
        return self.memory_bytes if self.memory_of is None else self.memory_of(sharing)


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """How many messages can wait for a slow subscriber before a message is lost.

    Attributes:
        queue: messages that the system's queues hold; None: there is no limit.
        queues: the names of the settings with this limit, as text.
        kernel: maximum number of further messages in the kernel's buffers; the actual number depends on the traffic.
    """

    queue: float | None
    queues: str
    kernel: float = 0.0


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The messages that a subscriber's library fetches before the subscriber takes them.

    Attributes:
        messages: the most that it keeps of each place, such as a partition.
        places: the places of a subscriber, or of all subscribers of a group.
        shared: whether the subscribers are a group in every row, whose places are divided among them.
        more: further messages of a place, of the fetch under way.
        message_bytes: memory of each message.
        least: the fewest messages with which a subscriber still works as usual.
        key: the dotted key that limits ``messages``; "": the user has set a limit, and Hydra sets none.
    """

    messages: int
    places: int
    shared: bool
    more: int
    message_bytes: int
    least: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """The published table of an experiment.

    Attributes:
        file: a file of ``conf/reference`` or a path.
        experiment: name of Hydra's scenario that repeats the experiment.
        keys: columns that identify the same row in the measured and the published table.
    """

    file: str
    experiment: str
    keys: tuple[str, ...] = ("clients",)


Refusal = tuple[tuple[str, ...], str, str] | tuple[tuple[str, ...], str, str, Sequence[tuple[str, ...]]]
"""Why a scenario is invalid: the key's path, what is wrong, what to try, the paths of other keys that it depends on."""


class SystemSpec:
    """Everything that generic code knows about a system: derive a class, and override what differs for the system.

    A package may also pass attributes and methods as keywords: ``SystemSpec(name=…, group=…)``.

    Attributes:
        name: name in scenarios, and of its entry point.
        title: name in texts.
        queue: name of the queue that fills if the system is the bottleneck, for verdicts, such as ``high-water mark``.
        settings: a frozen dataclass of the system's own settings, which can change between steps. Every field has a
            default; further checks in ``__post_init__`` raise ValueError. A scenario's [settings] has its fields, too.
        implementations: footprint of each implementation by name; the default first.
        make: makes the system for a run from the scenario, whether servers are groups on agents, and whether they are
            local.
        tables: further tables of its scenarios by name: frozen dataclasses whose fields have defaults.
        native: a frozen dataclass of its further keys under [native].
        listener_bytes: memory of a publisher for each subscriber, if there is no server between them.
        address_key: the dotted key of the address of the user's servers; "": there are none.
        natives: names of the implementations that are Hydra's native program and have the options of [native].
        greeting: how a server of this system is known by its first bytes; None: it is not.
        tools: names of the implementations that run a program of the system, once in every step. Its messages have no
            header: the log counts them; their subscribers and latencies are unknown.
        servers: footprint of a server that Hydra starts; None: the system has no servers.
        server_spec: default number, place and demand of servers; None: the system has no servers.
        elsewhere: flags that name the user's servers (``hydra.options.keyed``), for commands that prepare a run.
        commands: click commands of a package without entry points in ``hydra.commands``; for them ``hydra --help`` has
            to import the specification.
        batch: the column of the setting with the number of messages sent together, if this is not ``burst``.
        scenarios: a folder with further scenarios, which are found by name like those of ``conf/scenarios``.
        columns: columns that only this system's clients report.
        cannot: flags that users may expect, and what Hydra does instead, as an error states it.
        has_topics: whether the clients obey ``configure.traffic``.
        has_keys: whether messages can have keys, which choose the partition.
        has_patterns: whether a subscriber can take all topics by one pattern.
        shows_disconnections: the implementations whose subscribers report when a connection was lost, and when it was
            there again.
        own_ports: the local ports that Hydra itself occupies, beside its clients: those of its connections with a
            server, of those that ended less than a minute ago, and those at which a server that it starts listens.
        connects_to_all: whether a client has a connection to each of several servers, so it may continue without one.
        has_log: whether servers store what is sent, so a step may have no subscribers.
        presets: presets for design goals by name, for ``--preset`` and the key ``preset`` of scenarios.
        experiments: a folder with TOML files of published experiments, in addition to those in ``conf/experiments``.
        events: further kinds of events (``[[events]]``), each with a function that returns why a scenario cannot have
            it, or "".

    Raises:
        TypeError: a keyword is unknown, or a required attribute is missing.
    """

    name: str
    title: str
    queue: str
    settings: type[SystemSettings]
    implementations: Mapping[str, Footprint]
    make: Callable[[Scenario, bool, bool], System]
    tables: Mapping[str, type] = {}
    native: type[SystemOptions] = NoOptions
    listener_bytes: int = 0
    natives: Sequence[str] = ("native",)
    address_key: str = ""
    greeting: Greeting | None = None
    tools: Sequence[str] = ()
    servers: ServerFootprint | None = None
    server_spec: ServerSpec | None = None
    elsewhere: Sequence[Callable[[Any], Any]] = ()
    commands: Sequence[click.Command] = ()
    batch: Column = BATCH
    scenarios: Path | None = None
    columns: Sequence[ReportColumn] = ()
    cannot: Mapping[str, str] = {}
    has_topics: bool = False
    has_keys: bool = False
    has_patterns: bool = True
    shows_disconnections: Collection[str] = ()
    own_ports: int = 0
    connects_to_all: bool = False
    has_log: bool = False
    presets: Mapping[str, Preset] = {}
    experiments: Path | None = None
    events: Mapping[str, Callable[[Scenario], str]] = {}

    def __init__(self, **own: Any) -> None:
        known = SystemSpec.__annotations__.keys() | vars(SystemSpec).keys()
        if unknown := own.keys() - known:
            raise TypeError(f"a SystemSpec has no {', '.join(sorted(unknown))}")
        vars(self).update(own)
        if missing := [name for name in SystemSpec.__annotations__ if not hasattr(self, name)]:
            raise TypeError(f"a SystemSpec needs {', '.join(missing)}")

    def check(self, scenario: Scenario) -> Iterable[Refusal]:
        """Checks a scenario beyond its types; returns what is wrong."""
        return ()

    # --- of a scenario -----------------------------------------------------------------------------------------------

    def address(self, scenario: Scenario) -> str:
        """The address of the user's servers; "" if there are none, or Hydra starts them."""
        table, _, name = self.address_key.rpartition(".")
        return str(getattr(scenario.tables.get(table, self.tables[table]()), name)) if table else ""

    def native_lacks(self, scenario: Scenario) -> str:
        """What a scenario asks for that native clients may not have, depending on how their library was built; ""."""
        return ""

    def servers_of(self, scenario: Scenario) -> int:
        """The number of servers that Hydra starts for a scenario."""
        return 0 if self.servers is None or self.address(scenario) else scenario.server.count

    def copies_of(self, scenario: Scenario) -> int:
        """The number of servers that store each message."""
        return 1

    def connections_of(self, scenario: Scenario) -> int:
        """The maximum number of addresses to which each subscriber connects."""
        return 1

    def held(self, scenario: Scenario) -> QueueCapacity | None:
        """How many messages can wait for a slow subscriber before messages are lost; None: unknown."""
        return None

    def read_ahead(self, scenario: Scenario) -> ReadAhead | None:
        """The largest read-ahead of its rows; None: there is none, or the footprint has it."""
        return None

    def socket_buffers(self, scenario: Scenario) -> Mapping[str, int]:
        """The sizes in bytes that clients request for the buffers of their sockets, 0: none.

        The keys are the facts of a machine that limit them: ``rmem_max`` (receive) and ``wmem_max`` (send).
        """
        return {}

    def setup_parts(self, scenario: Scenario) -> Sequence[SetupPart]:
        """The settings of the system that stand in the line above the run's tables, in the order of the line.

        :meth:`setup_part` makes one. Those that have their usual value may be left out.
        """
        return ()

    def setup_part(
        self, scenario: Scenario, name: str, form: str = "{}", words: Mapping[Figure, str] | None = None
    ) -> SetupPart:
        """A setting of the system with its values in all rows; further arguments as for :class:`SetupPart`."""
        usual = getattr(self.settings(), name)
        values = (usual if value is None else value for value in scenario.values_of(name))
        return SetupPart(name, tuple(dict.fromkeys(values)), form, words or {})

    def reference(self, scenario: Scenario) -> Reference | None:
        """The published table of the experiment that a scenario repeats; None: there is none."""
        return None

    def secrets(self, scenario: Scenario) -> Iterable[str]:
        """Secret values of a scenario."""
        return ()

    def users(self, scenario: Scenario) -> Iterable[str]:
        """User names that may stand before a secret in HTTP's basic authentication."""
        return ()

    def is_secret(self, key: str) -> bool:
        """Whether the value of this (dotted) key is secret."""
        return False

    # --- of a step ---------------------------------------------------------------------------------------------------

    def guarantees(self, scenario: Scenario, settings: Settings) -> str:
        """What the system acknowledges to publishers and what it keeps, as a sentence without its subject.

        Args:
            scenario: of a run.
            settings: of one of its rows.
        """
        return ""

    def burst(self, settings: Settings) -> int:
        """The default number of messages sent back to back."""
        return 100

    def batch_of(self, settings: Settings) -> Figure:
        """The number of messages sent together: the figure of the batch column."""
        value = value_of(settings, self.batch.name)
        return self.burst(settings) if value is None else value

    def held_back_s(self, settings: Settings) -> float:
        """The longest time by which settings delay a message, such as the wait of a producer for a full batch."""
        return 0.0

    def group(self, settings: Settings) -> str:
        """The consumer group of the subscribers; at least one member receives each message.

        "" means no group: every subscriber receives each message.
        """
        return ""

    @property
    def of_silent_groups(self) -> str:
        """What a user checks if no member of a group receives anything; "": there is nothing special."""
        return ""

    def one_publisher(self, settings: Settings) -> bool:
        """Whether each subscriber subscribes to one publisher only (:mod:`hydra.wire.arrays`)."""
        return False

    def stored(self, settings: Settings) -> bool:
        """Whether subscribers read from the log, after everything has been sent."""
        return False

    def log_acknowledges(self, settings: Settings) -> bool:
        """Whether only the growth of the log shows how many messages the servers accepted."""
        return False

    def keeps(self, settings: Settings) -> bool:
        """Whether Hydra's servers store the messages of all steps, and not only of the last ones."""
        return False

    def disturbed(self, settings: Settings, event: EventSpec, duration_s: float) -> Settings:
        """The settings of a step with one of the system's events; ``duration_s`` is the length of the step."""
        return settings

    def undisturbed(self, settings: Settings) -> Settings:
        """The settings of a step's warm-up: without the failures that the step causes on purpose."""
        return settings
