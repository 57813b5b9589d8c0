"""The setup of a run from its scenario, and from what its clients and servers reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import HydraError
from hydra.events.value_formatting import counted, duration, number
from hydra.measure.step_result import StepResult
from hydra.model import (
    APART,
    ClientSetup,
    Figure,
    HostSetup,
    MessageBytes,
    RunSetup,
    Scenario,
    ServerFacts,
    ServerSetup,
    SetupPart,
    merged,
)
from hydra.model.settings import size_ranges
from hydra.report.table import PartedLine
from hydra.store.database import CLIENTS_KEY, SERVERS_KEY, RunStore
from hydra.store.run_folders import DATABASE
from hydra.store.stored_scenario import stored_scenario

_MOST_LISTED: Final = 6
"""The most numbers that a list names one by one; of more it names the first and the last one."""
_IN_MINUTES_FROM_S: Final = 90
COLUMN: Final = "setup_"
"""The beginning of the names of all columns about the setup."""
_JOINT: Final = " / "


def setup_line(setup: RunSetup) -> PartedLine:
    """The line above a table: what was measured, without what is unknown."""
    return PartedLine(tuple(_parts(setup)))


def _parts(setup: RunSetup) -> Iterator[str]:
    if setup.publishers:
        yield f"{_counted(setup.publishers, 'publisher')} → {_counted(setup.subscribers, 'subscriber')}"
    if setup.message_bytes:
        yield f"{', '.join(map(_size, setup.message_bytes))} B"
    if setup.clients:
        yield " and ".join(client_texts(setup.clients))
    if any(packed > 1 for packed in setup.clients_per_process):
        yield f"{_numbers(setup.clients_per_process)} subscribers to a process"
    yield from (part_text(part) for part in setup.settings)
    ciphers = {server.tls for server in setup.servers}
    if True in ciphers:
        yield "with and without TLS" if False in ciphers else "TLS"
    yield from _places(setup)
    if setup.step_s:
        yield _steps(setup)


def _counted(counts: Sequence[int], one: str) -> str:
    if not any(counts):
        return f"no {one}s"
    return f"{_numbers(counts)} {one if counts == (1,) else f'{one}s'}"


def _numbers(values: Sequence[float]) -> str:
    if len(values) > _MOST_LISTED:
        return f"{number(values[0])}–{number(values[-1])}"
    return ", ".join(map(number, values))


def _size(size: MessageBytes) -> str:
    return number(size.most) if size.least == size.most else f"{number(size.least)}–{number(size.most)}"


def client_texts(clients: Iterable[ClientSetup]) -> list[str]:
    """Implementation and versions of the clients, such as ``native (libx 4.3.4)``; with the role if roles differ."""
    roles: dict[str, list[str]] = {}
    for client in clients:
        versions = ", ".join(f"{library} {version}" for library, version in client.versions.items())
        text = f"{client.implementation} ({versions})" if versions else client.implementation
        roles.setdefault(text, []).append(f"{client.role}s" if client.role else "")
    everywhere = {role for names in roles.values() for role in names if role}
    return [
        text if everywhere <= set(names) or "" in names else f"{' and '.join(dict.fromkeys(names))} {text}"
        for text, names in roles.items()
    ]


def part_text(part: SetupPart) -> str:
    """The text of a setting with all of its values."""
    return part.form.format(", ".join(part.words.get(value, number(value)) for value in part.values))


def _places(setup: RunSetup) -> Iterator[str]:
    """Where servers and clients ran: ``x-server 2.9 on this machine, 2 shared cores``."""
    several = len({host.names for host in setup.hosts}) > 1
    hosts = " and ".join(dict.fromkeys(_host(host, named=several) for host in setup.hosts))
    started = [server for server in setup.servers if server.count is not None]
    yield from dict.fromkeys(f"your own {_server(server)}" for server in setup.servers if server.count is None)
    if started:
        yield " ".join(filter(None, (" and ".join(dict.fromkeys(map(_server, started))), hosts)))
    elif hosts:
        yield f"clients {hosts}" if setup.servers else hosts


def _server(server: ServerSetup) -> str:
    """The program of a server with its version, and the versions of what it needs."""
    first, *others = [f"{name} {version}" for name, version in server.versions.items()] or [f"{server.title} server"]
    needs = f" ({', '.join(others)})" if others else ""
    times = f"{number(server.count)} × " if server.count is not None and server.count > 1 else ""
    return f"{times}{first}{needs}"


def _host(host: HostSetup, *, named: bool) -> str:
    local = f"on {host.names[0]}" if named and host.names else "on this machine"
    where = local if host.local else f"on {counted(len(host.names), 'host')}"
    pins = [f"{role} on {'cores' if cpus == APART else 'CPUs'} {cpus}" for role, cpus in host.pins.items()]
    shared = "shared " if host.local and not pins else ""
    cores = [] if host.cores is None else [counted(host.cores, f"{shared}core")]
    return ", ".join([where, *cores, *pins])


def _steps(setup: RunSetup) -> str:
    lengths = ", ".join(duration(s) if s >= _IN_MINUTES_FROM_S else f"{number(s)} s" for s in setup.step_s)
    if not setup.step_messages:
        return f"steps of {lengths}"
    return f"steps of {_numbers(setup.step_messages)} messages, at most {lengths}"


def setup_object(setup: RunSetup) -> dict[str, Any]:
    """The setup as a JSON object: the line, and its parts as values."""
    settings = {part.name: list(part.values) for part in setup.settings}
    return {"text": str(setup_line(setup)), **asdict(setup), "settings": settings}


def setup_columns(setup: RunSetup) -> dict[str, str]:
    """The setup as columns of a CSV file, by name; several values are joined by `` / ``, and "" is unknown."""
    listed: Mapping[str, Iterable[Figure]] = {
        "publishers": setup.publishers,
        "subscribers": setup.subscribers,
        "message_bytes": (f"{s.least}–{s.most}" if s.least < s.most else s.most for s in setup.message_bytes),
        "clients": (client.implementation for client in setup.clients),
        "libraries": (f"{name} {version}" for each in setup.clients for name, version in each.versions.items()),
        "clients_per_process": setup.clients_per_process,
        "servers": (server.count for server in setup.servers),
        "server_versions": (f"{name} {version}" for each in setup.servers for name, version in each.versions.items()),
        "server_sources": (f"{name} {source}" for each in setup.servers for name, source in each.sources.items()),
        "tls": (server.tls for server in setup.servers),
        "hosts": (name for host in setup.hosts for name in host.names),
        "cores": (host.cores for host in setup.hosts),
        "step_s": setup.step_s,
        "step_messages": setup.step_messages,
        **{part.name: part.values for part in setup.settings},
    }
    return {
        f"{COLUMN}{name}": _JOINT.join(dict.fromkeys(str(value) for value in values if value is not None))
        for name, values in listed.items()
    }


@dataclass(frozen=True, slots=True)
class ReportedFacts:
    """What a run knows beyond its scenario, each () as long as it is unknown.

    Attributes:
        clients: the kinds of clients that reported.
        servers: what was found out about the servers.
        hosts: the hosts, without pins.
    """

    clients: tuple[ClientSetup, ...] = ()
    servers: tuple[ServerFacts, ...] = ()
    hosts: tuple[HostSetup, ...] = ()


def setup_of(resolved: ResolvedScenario, facts: ReportedFacts | None = None) -> RunSetup:
    """The setup of a run.

    Args:
        resolved: the scenario, with its system's tables as dataclasses.
        facts: what the run reported; None: nothing yet.
    """
    scenario, spec, facts = resolved.scenario, resolved.system, facts or ReportedFacts()
    pins = {role: pin for role in ("publisher", "subscriber", "server") if (pin := getattr(scenario, role).pin)}
    has_servers, count = spec.servers is not None, None if resolved.users_servers else resolved.servers
    return RunSetup(
        publishers=tuple(sorted({publishers for publishers, _ in scenario.sizes})),
        subscribers=tuple(sorted({subscribers for _, subscribers in scenario.sizes})),
        message_bytes=tuple(dict.fromkeys(_sizes(scenario))),
        clients=facts.clients or (ClientSetup(None, scenario.client),),
        clients_per_process=(scenario.native.clients_per_process,),
        settings=(*_traffic(scenario), *spec.settings.shown(scenario)),
        servers=tuple(
            ServerSetup(spec.identity.title, count, each.versions, each.tls, each.sources) for each in facts.servers
        )
        or ((ServerSetup(spec.identity.title, count),) if has_servers else ()),
        hosts=tuple(replace(host, pins=pins) for host in facts.hosts),
        step_s=tuple(sorted({scenario.sweep.shortest_s, scenario.sweep.longest_s})),
        step_messages=tuple(sorted({value for value in scenario.values_of("messages") if isinstance(value, int)})),
    )


def _sizes(scenario: Scenario) -> Iterable[MessageBytes]:
    names = ("message_sizes", "message_size", "message_size_min")
    for ranges, size, least in product(*map(scenario.values_of, names)):
        if ranges:
            found = size_ranges(str(ranges))
            yield MessageBytes(min(low for low, _, _ in found), max(high for _, high, _ in found))
        elif isinstance(size, int):
            yield MessageBytes(least if isinstance(least, int) else size, size)


_TRAFFIC: Mapping[str, tuple[Figure, str]] = {
    "payload": ("zeros", "payload {}"),
    "topics": (1, "{} topics"),
    "keys": (0, "{} keys"),
}
"""The settings of traffic that are named unless they have their usual value in all rows, with their texts."""


def _traffic(scenario: Scenario) -> Iterable[SetupPart]:
    for name, (usual, form) in _TRAFFIC.items():
        if (values := scenario.values_of(name)) != (usual,):
            yield SetupPart(name, values, form)


def stored_setup(store: RunStore, results: Sequence[StepResult]) -> RunSetup:
    """The setup of a stored run.

    Args:
        store: the store of the run.
        results: the steps of the run.

    Raises:
        ConfigError: its system is not installed.
        RunDirectoryError: the run cannot be read.
    """
    metadata = store.metadata()
    measured = next((result.epoch for result in reversed(results) if result.status == "ok"), None)
    with store.reading():
        facts = ReportedFacts(
            msgspec.convert(metadata.get(CLIENTS_KEY, []), tuple[ClientSetup, ...]),
            msgspec.convert(metadata.get(SERVERS_KEY, []), tuple[ServerFacts, ...]),
            () if measured is None else _hosts(store, measured),
        )
        return setup_of(stored_scenario(metadata["scenario"]), facts)


def _hosts(store: RunStore, epoch: int) -> tuple[HostSetup, ...]:
    """The hosts of a step; () if they are unknown."""
    names = tuple(sorted(set(store.host_of(epoch).values())))
    if not names:
        return ()
    clocks, machines = store.clocks(epoch), store.machines()
    local = bool(clocks) and all(clock.same_host for clock in clocks.values())
    cpus = [machines[name].allowed or machines[name].cpus if name in machines else None for name in names]
    return (HostSetup(local, names, sum(len(each or ()) for each in cpus) if all(cpus) else None),)


def setup_of_folders(directories: Iterable[Path]) -> RunSetup:
    """The setup of all of these runs together, without those that are not there or cannot be read."""
    found = []
    for directory in directories:
        if (directory / DATABASE).is_file():
            with contextlib.suppress(HydraError), RunStore.open(directory) as store:
                found.append(stored_setup(store, store.results()))
    return merged(found)
