"""What was measured, as the line above every table, as a JSON object, and as columns of a CSV file. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from hydra.events.value_formatting import counted, duration, number
from hydra.model import APART, ClientSetup, Figure, HostSetup, MessageBytes, RunSetup, ServerSetup, SetupPart
from hydra.report.table import PartedLine

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
