"""What a run measured: its clients, messages, settings, servers, hosts and steps, on which its figures depend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hydra.model.base import Figure, Role


@dataclass(frozen=True, slots=True)
class SetupPart:
    """A setting on which figures depend.

    Attributes:
        name: the name of the setting.
        values: the values that it has in some row.
        form: the text of the part, with ``{}`` in place of the values.
        words: the texts of values that cannot be understood as they are.
    """

    name: str
    values: tuple[Figure, ...]
    form: str = "{}"
    words: Mapping[Figure, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageBytes:
    """The smallest and the largest size of a row's messages, headers included."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """Clients of one kind.

    Attributes:
        role: their role; None: the clients have not reported, and both roles have this implementation.
        implementation: the name of their implementation.
        versions: the versions of their libraries, by name.
    """

    role: Role | None
    implementation: str
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of servers after the first contact.

    Attributes:
        versions: the versions of the server and of what it needs, by name, that of the server first; {} if unknown.
        tls: whether clients use TLS with them.
        sources: where Hydra found the programs that it started, by name: ``PATH``, or a Python package; {} if unknown.
    """

    versions: Mapping[str, str]
    tls: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """The servers of a run.

    Attributes:
        title: the name of the system, for a server whose program is unknown.
        count: the number of servers that Hydra started; None: the servers are the user's.
        versions: the versions of the server and of what it needs, by name; {} if unknown.
        tls: whether clients use TLS with the servers; None: unknown.
        sources: where Hydra found the programs that it started, by name: ``PATH``, or a Python package; {} if unknown.
    """

    title: str
    count: int | None
    versions: Mapping[str, str] = field(default_factory=dict)
    tls: bool | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostSetup:
    """The hosts of a run.

    Attributes:
        local: whether everything ran on the host of the command.
        names: the names of the hosts.
        cores: the number of CPUs that the run could use on all hosts together; None: unknown.
        pins: the CPUs of the roles that are pinned.
    """

    local: bool
    names: tuple[str, ...]
    cores: int | None = None
    pins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a run, or several together, measured; each attribute has all of its values, and none if it is unknown.

    Attributes:
        publishers, subscribers: the numbers of clients of the rows, ascending.
        message_bytes: the sizes of messages.
        clients: the implementations and libraries of the clients.
        clients_per_process: the number of subscribers in a process.
        settings: the settings of the traffic and of the system.
        servers: the servers; empty if the system has none.
        hosts: the hosts.
        step_s: the lengths of the steps in seconds, ascending.
        step_messages: the numbers of messages after which a publisher ends its step.
    """

    publishers: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    message_bytes: tuple[MessageBytes, ...] = ()
    clients: tuple[ClientSetup, ...] = ()
    clients_per_process: tuple[int, ...] = ()
    settings: tuple[SetupPart, ...] = ()
    servers: tuple[ServerSetup, ...] = ()
    hosts: tuple[HostSetup, ...] = ()
    step_s: tuple[float, ...] = ()
    step_messages: tuple[int, ...] = ()


_ASCENDING = ("publishers", "subscribers", "clients_per_process", "step_s", "step_messages")


def merged(setups: Iterable[RunSetup]) -> RunSetup:
    """The setup of several runs together: every value that one of them has."""
    found: dict[str, Any] = {}
    several = tuple(setups)
    for name in (each.name for each in fields(RunSetup)):
        values = _each_once(value for setup in several for value in getattr(setup, name))
        found[name] = tuple(sorted(values)) if name in _ASCENDING else values
    found["settings"] = _by_name(found["settings"])
    return RunSetup(**found)


def _by_name(parts: Iterable[SetupPart]) -> tuple[SetupPart, ...]:
    """One part for each name, with the values of all parts of this name."""
    found: dict[str, SetupPart] = {}
    for part in parts:
        before = found.get(part.name, part)
        values = _each_once((*before.values, *part.values))
        found[part.name] = SetupPart(part.name, values, part.form, {**before.words, **part.words})
    return tuple(found.values())


def _each_once(values: Iterable[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return tuple(found)
