"""What a system tells of itself: everything that generic code knows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hydra.analysis.declared_costs import Costs
from hydra.measure.column import Column, ReportColumn
from hydra.measure.step_columns import BATCH
from hydra.model import EventSpec, Figure, Scenario, ServerSpec, Settings, value_of
from hydra.system.experiment import Experiment, Preset
from hydra.system.interface import System


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one subscriber process of an implementation takes: memory as PSS and what the kernel keeps for it.

    ``further`` is what each further subscriber takes that is packed into the same process; None: it cannot be packed.
    ``packed`` is how many connections a process has, and with one each, how many subscribers, unless the scenario says
    otherwise. ``cpus`` is what one subscriber asks of its agent, unless the scenario says that. ``ports`` is how many
    connections to an address share a local address, where not all of a host do. ``server`` is what each server beyond
    the first adds to every subscriber, packed or not: a library may have a thread for each that it knows of.
    """

    threads: int
    files: int
    memory_bytes: int
    further: Footprint | None = None
    packed: int = 1
    cpus: float = 0.0
    ports: int | None = None
    server: Footprint | None = None

    def of(self, packed: int, servers: int = 1) -> Footprint:
        """What a process with so many subscribers takes where they know of so many servers.

        Raises:
            ValueError: more than one, of an implementation that cannot be packed.
        """
        it = self
        if packed > 1:
            if self.further is None:
                raise ValueError(f"{packed} subscribers in a process of an implementation that takes one")
            it = it._with(self.further, packed - 1)
        if servers > 1 and self.server is not None:
            it = it._with(self.server, packed * (servers - 1))
        return it

    def _with(self, other: Footprint, times: int) -> Footprint:
        return Footprint(
            threads=self.threads + times * other.threads,
            files=self.files + times * other.files,
            memory_bytes=self.memory_bytes + times * other.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class ServerFootprint:
    """What one server of a system takes on its machine.

    ``connections`` is how many of its descriptors each client takes; ``record_bytes`` what it keeps of a message beside
    its payload, 0 where it keeps none on disk; ``most_bytes_a_second`` the fastest that one was seen to write.
    ``memory_of`` is what each of so many on one machine takes, where that is not ``memory_bytes`` of one alone.
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
    memory_of: Callable[[int], int] | None = None

    def memory(self, sharing: int) -> int:
        """What each of so many servers on one machine takes, in bytes."""
        return self.memory_bytes if self.memory_of is None else self.memory_of(sharing)


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """What waits for a slow subscriber before any message is lost.

    Attributes:
        queue: messages that the system's queues hold; None: there is no limit.
        queues: the settings that limit it, in words.
        kernel: messages that the kernel's buffers hold beside those at most; how many it is depends on the traffic.
    """

    queue: float | None
    queues: str
    kernel: float = 0.0


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


class SystemSpec:
    """Everything that generic code knows of a system: derive a class, and override what is different in the system.

    A package may give every attribute and every method by its keyword instead: ``SystemSpec(name=…, group=…)``.

    Attributes:
        name: in scenarios, and of its entry point.
        title: for people.
        queue: what fills when the system is the bottleneck, for verdicts, such as ``high-water mark``.
        settings: a frozen dataclass: what can change between two steps beside what all systems share; every field has
            a default, checks in ``__post_init__`` raise ValueError. In a scenario's [settings] its fields stand beside
            the shared ones.
        implementations: footprint by name; the default first.
        make: the system for a run: the scenario, whether its servers are groups on agents, whether these are local.
        costs: what its clients are known to cost, by implementation, where no run tells it.
        bounds: for its numbers, by dotted key: least and most.
        tables: further tables of its scenarios, by their name: frozen dataclasses whose fields have defaults.
        native: its further keys under [native], a frozen dataclass; None: it has none.
        listener_bytes: what each subscriber takes at its publisher, where there is no server between them.
        natives: those of the implementations that are Hydra's native program and have the options of [native].
        tools: those of the implementations that drive a program of the system's own, once in every step. Its messages
            have no header: they are counted by the log, and whose they are and how long they took is not known.
        servers: footprint of a server that Hydra brings along; None: the system has none.
        server_spec: how many servers, where and with what, unless a scenario says so; None as above.
        aliases: other names of keys in scenarios and ``--set``: the dotted key by the dotted alias, both of one table.
        table_words: other words for a scenario's ``table``.
        elsewhere: flags that name servers of the user's own (``hydra.options.keyed``), for commands that prepare a run.
        commands: click commands, added to ``hydra``, of a package that has none under its entry points
            (``hydra.commands``): for them ``hydra --help`` has to import the specification.
        batch: the column of the setting that says how many messages travel together, where it is not ``burst``.
        scenarios: a folder with further scenarios, which are known by their names like those of ``conf/scenarios``.
        columns: what its clients report that others do not.
        differs: settings in which a run is compared with another one of this system.
        has_log: whether servers keep what is sent, so that a step may have no subscribers.
        presets: for design goals, by name: ``--preset`` of every command of the system, ``preset`` in a scenario.
        experiments: published ones that it repeats.
        events: the kinds of events (``[[events]]``) that it makes beside those of all systems; each with why a scenario
            cannot have it, or "".

    Raises:
        TypeError: a keyword is no part of a specification, or what every system has is missing.
    """

    name: str
    title: str
    queue: str
    settings: type
    implementations: Mapping[str, Footprint]
    make: Callable[[Scenario, bool, bool], System]
    costs: Mapping[str, Costs] = {}
    bounds: Mapping[str, tuple[float, float]] = {}
    tables: Mapping[str, type] = {}
    native: type | None = None
    listener_bytes: int = 0
    natives: Sequence[str] = ("native",)
    tools: Sequence[str] = ()
    servers: ServerFootprint | None = None
    server_spec: ServerSpec | None = None
    aliases: Mapping[str, str] = {}
    table_words: Mapping[str, str] = {}
    elsewhere: Sequence[Callable[[Any], Any]] = ()
    commands: Sequence[click.Command] = ()
    batch: Column = BATCH
    scenarios: Path | None = None
    columns: Sequence[ReportColumn] = ()
    differs: Sequence[str] = ()
    has_log: bool = False
    presets: Mapping[str, Preset] = {}
    experiments: Sequence[Experiment] = ()
    events: Mapping[str, Callable[[Scenario], str]] = {}

    def __init__(self, **own: Any) -> None:
        known = SystemSpec.__annotations__.keys() | vars(SystemSpec).keys()
        if unknown := own.keys() - known:
            raise TypeError(f"a SystemSpec has no {', '.join(sorted(unknown))}")
        vars(self).update(own)
        if missing := [name for name in SystemSpec.__annotations__ if not hasattr(self, name)]:
            raise TypeError(f"a SystemSpec needs {', '.join(missing)}")

    def check(self, scenario: Scenario) -> Iterable[Refusal]:
        """What is wrong with a scenario that its types cannot see."""
        return ()

    # --- of a scenario -----------------------------------------------------------------------------------------------

    def address(self, scenario: Scenario) -> str:
        """Of the user's own servers; "": there are none, or Hydra brings them along."""
        return ""

    def servers_of(self, scenario: Scenario) -> int:
        """How many servers of ours it needs."""
        return 0 if self.servers is None or self.address(scenario) else scenario.server.count

    def copies_of(self, scenario: Scenario) -> int:
        """On how many servers each message is kept."""
        return 1

    def connections_of(self, scenario: Scenario) -> int:
        """To how many addresses each subscriber connects, at most."""
        return 1

    def held(self, scenario: Scenario) -> QueueCapacity | None:
        """What waits for a slow subscriber before messages are lost; None: nobody can say."""
        return None

    def reference(self, scenario: Scenario) -> Reference | None:
        """The published table of the experiment that it repeats; None: there is none."""
        return None

    def secrets(self, scenario: Scenario) -> Iterable[str]:
        """Values that must not be seen."""
        return ()

    def users(self, scenario: Scenario) -> Iterable[str]:
        """Names that may stand before a secret in HTTP's basic authentication."""
        return ()

    def is_secret(self, key: str) -> bool:
        """Whether what stands under this (dotted) key must not be seen."""
        return False

    # --- of a step ---------------------------------------------------------------------------------------------------

    def burst(self, system: Mapping[str, Figure]) -> int:
        """Messages sent back to back where a scenario does not say so, from the system's settings."""
        return 100

    def batch_of(self, settings: Settings) -> Figure:
        """How many messages travel together: the figure of the batch column."""
        value = value_of(settings, self.batch.name)
        return self.burst(settings.system) if value is None else value

    def group(self, settings: Settings) -> str:
        """The consumer group that the subscribers are members of, each message going to at least one of them.

        "": there is none, each message goes to all of them.
        """
        return ""

    def one_publisher(self, settings: Settings) -> bool:
        """Whether each subscriber listens to one publisher only (:mod:`hydra.wire.arrays`)."""
        return False

    def stored(self, settings: Settings) -> bool:
        """Whether subscribers begin to read when everything has been sent, from the log."""
        return False

    def log_acknowledges(self, settings: Settings) -> bool:
        """Whether nothing but the growth of that log tells what the servers took."""
        return False

    def keeps(self, settings: Settings) -> bool:
        """Whether servers of ours keep what all steps have sent, and not only the last ones."""
        return False

    def disturbed(self, settings: Settings, event: EventSpec, duration_s: float) -> Settings:
        """The settings with one of its events, given the length of the step in seconds."""
        return settings

    def undisturbed(self, settings: Settings) -> Settings:
        """The settings without what the step breaks on purpose: those of its warm-up."""
        return settings
