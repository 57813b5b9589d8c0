"""The specification of a system: everything that generic code knows about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hydra.measure.column import SystemColumns
from hydra.model import (
    Demand,
    EventSpec,
    Figure,
    NoOptions,
    Scenario,
    Settings,
    SetupPart,
    SystemOptions,
    SystemSettings,
    value_of,
    with_values,
)
from hydra.system.footprints import Implementation, ReadAhead, ServerFootprint
from hydra.system.interface import System

if TYPE_CHECKING:
    from hydra.system.experiment import Preset

_BURST: Final = 100
"""The default number of messages sent back to back."""
_AT_ONCE: Final = 1e-9
"""The earliest time of an event, as a share of its step; 0 is none."""


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


@dataclass(frozen=True, slots=True)
class SystemEvent:
    """A kind of event (``[[events]]``) of one system.

    Attributes:
        why_not: why a scenario cannot have it, or "".
        setting: the setting that causes it: its time as a share of the step; "": the run causes it.
    """

    why_not: Callable[[Scenario], str]
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a system is.

    Attributes:
        name: name in scenarios, and of its entry point.
        title: name in texts.
        implementations: what its clients are written with, by name; the default first.
        make: makes the system for a run from the scenario, whether servers are groups on agents, and whether they are
            local.
    """

    name: str
    title: str
    implementations: Mapping[str, Implementation]
    make: Callable[[Scenario, bool, bool], System]


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """What a scenario can state for a system.

    Attributes:
        step: a frozen dataclass of the settings that can change between steps. Every field has a default; further
            checks in ``__post_init__`` raise ValueError. A scenario's [settings] has its fields, too.
        tables: further tables of its scenarios by name: frozen dataclasses whose fields have defaults.
        native: a frozen dataclass of its further keys under [native].
        presets: presets for design goals by name, for ``--preset`` and the key ``preset`` of scenarios.
        events: further kinds of events by name.
        check: checks a scenario beyond its types; returns what is wrong.
        native_lacks: what a scenario asks for that native clients may not have, depending on how their library was
            built, or "".
        shown: the settings that stand in the line above the run's tables, in the order of the line. Those that have
            their usual value may be left out. :func:`setup_part` makes one.
        logins: user names, which may stand before a secret in HTTP's basic authentication, and secret values of a
            scenario, in pairs; "" stands for what a pair does not have.
        is_secret: whether the value of this (dotted) key is secret.
    """

    step: type[SystemSettings]
    tables: Mapping[str, type] = field(default_factory=dict)
    native: type[SystemOptions] = NoOptions
    presets: Mapping[str, Preset] = field(default_factory=dict)
    events: Mapping[str, SystemEvent] = field(default_factory=dict)
    check: Callable[[Scenario], Iterable[Refusal]] = lambda _: ()
    native_lacks: Callable[[Scenario], str] = lambda _: ""
    shown: Callable[[Scenario], Sequence[SetupPart]] = lambda _: ()
    logins: Callable[[Scenario], Iterable[tuple[str, str]]] = lambda _: ()
    is_secret: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class ServerKind:
    """The servers of a system.

    Attributes:
        footprint: the resources of a server that Hydra starts.
        demand: the default demand of one on an agent.
        address_key: the dotted key of the address of the user's servers.
        greeting: how a server is known by its first bytes; None: it is not.
        packages: Python packages with the programs of servers that Hydra starts, by program; the extra ``servers`` of
            Hydra, or your package, installs them. A program on PATH comes first.
    """

    footprint: ServerFootprint
    demand: Demand
    address_key: str
    greeting: Greeting | None = None
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScenarioResources:
    """What the clients and servers of a scenario need beside their footprints.

    Attributes:
        listener_bytes: memory of a publisher for each subscriber, if there is no server between them.
        connections: the maximum number of addresses to which each subscriber connects.
        copies: the number of servers that store each message.
        read_ahead: the largest read-ahead of its rows; None: there is none, or the footprint has it.
        socket_buffers: the sizes in bytes that clients request for the buffers of their sockets, 0: none. The keys are
            the facts of a machine that limit them: ``rmem_max`` (receive) and ``wmem_max`` (send).
    """

    listener_bytes: int = 0
    connections: Callable[[Scenario], int] = lambda _: 1
    copies: Callable[[Scenario], int] = lambda _: 1
    read_ahead: Callable[[Scenario], ReadAhead | None] = lambda _: None
    socket_buffers: Callable[[Scenario], Mapping[str, int]] = lambda _: {}


@dataclass(frozen=True, slots=True)
class Published:
    """What a system adds to tables, files and commands.

    Attributes:
        folder: a folder whose folders ``scenarios`` and ``experiments`` have further TOML files, beside those in
            ``conf``; None: there are none.
        reference: the published table of the experiment that a scenario repeats; None: there is none.
        columns: the column of the setting with the number of messages sent together, if this is not ``burst``, and
            columns that only this system's clients report.
        cannot: flags that users may expect, and what Hydra does instead, as an error states it.
    """

    folder: Path | None = None
    reference: Callable[[Scenario], Reference | None] = lambda _: None
    columns: SystemColumns = field(default_factory=SystemColumns)
    cannot: Mapping[str, str] = field(default_factory=dict)


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
class MessageLog:
    """A log in which servers store what is sent, so a step may have no subscribers.

    Attributes:
        read_after: whether subscribers read from the log, after everything has been sent.
        keeps_all: whether Hydra's servers store the messages of all steps, and not only of the last ones.
    """

    read_after: bool = False
    keeps_all: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryRules:
    """How a system delivers the messages of a step.

    Attributes:
        queue: name of the queue that fills if the system is the bottleneck, for verdicts, such as ``high-water mark``.
        guarantees: what it acknowledges to publishers and what it keeps, as a sentence without its subject.
        traffic: the shared settings of traffic that its clients obey, beside the size of messages.
        group: the consumer group of the subscribers, of which at least one member receives each message. "" means no
            group: every subscriber receives each message.
        silent_group: what a user checks if no member of a group receives anything; "": there is nothing special.
        one_publisher: whether each subscriber subscribes to one publisher only (:mod:`hydra.wire.arrays`).
        held_back_s: the longest time by which settings delay a message, such as the wait of a producer for a full
            batch.
        capacity: how many messages can wait for a slow subscriber before messages are lost; None: unknown.
        log_acknowledges: whether only the growth of the log shows how many messages the servers accepted.
        log: None: there is none that shows what arrived.
    """

    queue: str
    guarantees: str = ""
    traffic: Collection[Literal["topics", "keys", "wildcard"]] = ()
    group: str = ""
    silent_group: str = ""
    one_publisher: bool = False
    held_back_s: float = 0.0
    capacity: QueueCapacity | None = None
    log_acknowledges: bool = False
    log: MessageLog | None = None


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """Everything that generic code knows about a system.

    Attributes:
        identity: what it is.
        settings: what a scenario can state for it.
        delivery: how it delivers messages, from the scenario of a run and the settings of one of its rows.
        servers: its servers; None: it has none.
        resources: what clients and servers need beside their footprints.
        published: what it adds to tables, files and commands.
    """

    identity: Identity
    settings: OwnSettings
    delivery: Callable[[Scenario, Settings], DeliveryRules]
    servers: ServerKind | None = None
    resources: ScenarioResources = ScenarioResources()
    published: Published = Published()


def setup_part(
    kind: type[SystemSettings],
    scenario: Scenario,
    name: str,
    form: str = "{}",
    words: Mapping[Figure, str] | None = None,
) -> SetupPart:
    """A setting of a system with its values in all rows; further arguments as for :class:`SetupPart`."""
    usual = getattr(kind(), name)
    values = (usual if value is None else value for value in scenario.values_of(name))
    return SetupPart(name, tuple(dict.fromkeys(values)), form, words or {})


def batch_of(settings: Settings, columns: SystemColumns) -> int:
    """The number of messages sent together: the figure of the column ``batch``."""
    value = value_of(settings, columns.batch.name)
    return value if isinstance(value, int) else _BURST


def disturbed(spec: SystemSpec, settings: Settings, event: EventSpec, duration_s: float) -> Settings:
    """The settings of a step with an event; ``duration_s`` is the length of the step."""
    own = spec.settings.events.get(event.kind)
    if own is None or not own.setting:
        return settings
    return with_values(settings, {own.setting: max(event.at_s / duration_s, _AT_ONCE)})


def undisturbed(spec: SystemSpec, settings: Settings) -> Settings:
    """The settings of a step's warm-up: without the failures that the step causes on purpose."""
    return with_values(settings, {event.setting: None for event in spec.settings.events.values() if event.setting})
