"""What a system tells of itself: everything that generic code knows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from hydra.analysis.constants import Costs
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
class Held:
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
        costs: what its clients are known to cost, by implementation, where no run tells it.
        listener_bytes: what each subscriber takes at its publisher, where there is no server between them.
        natives: those of the implementations that are Hydra's native program and have the options of [native].
        tools: those of the implementations that drive a program of the system's own, once in every step. Its messages
            have no header: they are counted by the log, and whose they are and how long they took is not known.
        servers: footprint of a server that Hydra brings along; None: the system has none.
        server_spec: how many servers, where and with what, unless a scenario says so; None as above.
        aliases: other names of keys in scenarios and ``--set``: the dotted key by the dotted alias, both of one table.
        table_words: other words for a scenario's ``table``.
        batch: the column of the setting that says how many messages travel together, where it is not ``burst``.
        elsewhere: flags that name servers of the user's own (``hydra.options.keyed``), for commands that prepare a run.
        commands: click commands, added to ``hydra``, of a package that has none under its entry points
            (``hydra.commands``): for them ``hydra --help`` has to import the specification.
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
        has_log: whether servers keep what is sent, so that a step may have no subscribers.
        stored: whether a step's subscribers begin to read when everything has been sent, from the log.
        presets: for design goals, by name: ``--preset`` of every command of the system, ``preset`` in a scenario.
        experiments: published ones that it repeats.
        log_acknowledges: whether nothing but the growth of that log tells what the servers took of a step.
        keeps: whether servers of ours keep what all steps have sent, and not only the last ones.
        undisturbed: a step's settings without what it breaks on purpose: those of its warm-up.
        connections_of: to how many addresses each subscriber of a scenario connects, at most.
        one_publisher: whether each subscriber of a step listens to one publisher only (:mod:`hydra.wire.subscription`).
        servers_of: how many servers of ours a scenario needs.
        copies_of: on how many servers each message is kept.
        held: what waits for a slow subscriber before messages are lost; None: nobody can say.
        events: the kinds of events (``[[events]]``) that it makes beside those of all systems; each with why a scenario
            cannot have it, or "".
        disturbed: a step's settings with such an event, given the length of the step in seconds.
    """

    name: str
    title: str
    queue: str
    settings: type
    implementations: Mapping[str, Footprint]
    make: Callable[[Scenario, bool, bool], System]
    costs: Mapping[str, Costs] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tables: Mapping[str, type] = field(default_factory=dict)
    native: type | None = None
    listener_bytes: int = 0
    natives: Sequence[str] = ("native",)
    tools: Sequence[str] = ()
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
    stored: Callable[[Settings], bool] = lambda _: False
    has_log: bool = False
    log_acknowledges: Callable[[Settings], bool] = lambda _: False
    presets: Mapping[str, Preset] = field(default_factory=dict)
    experiments: Sequence[Experiment] = ()
    keeps: Callable[[Settings], bool] = lambda _: False
    undisturbed: Callable[[Settings], Settings] = lambda settings: settings
    connections_of: Callable[[Scenario], int] = lambda _: 1
    one_publisher: Callable[[Settings], bool] = lambda _: False
    servers_of: Callable[[Scenario], int] = lambda _: 0
    copies_of: Callable[[Scenario], int] = lambda _: 1
    held: Callable[[Scenario], Held | None] = lambda _: None
    events: Mapping[str, Callable[[Scenario], str]] = field(default_factory=dict)
    disturbed: Callable[[Settings, EventSpec, float], Settings] = lambda settings, _event, _duration_s: settings

    def batch_of(self, settings: Settings) -> Figure:
        """How many messages travel together at these settings: the figure of the batch column."""
        value = value_of(settings, self.batch.name)
        return self.burst(settings.system) if value is None else value
