"""Facts about a host, and whether a run can use it. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hydra.engine.resources import without
from hydra.model import Agent, Resources
from hydra.ssh.failures import HostFailure
from hydra.ssh.hosts import HostEntry, listed

PORTS: Final = (20_000, 32_000)
"""The range from which servers get ports, below the ports that kernels choose."""
_WINDOW: Final = 200
"""A run takes its ports from this number of this range; two runs at the same time most often have different ones."""
ROOM_MB: Final = 200.0
"""The free space that programs, and what groups write, need on a host."""
_MANY_FILES: Final = 65_536
_GIVE: Final = "give its own address as address under [[hosts]]"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the supervisor reports about its host.

    Attributes:
        machine: the machine type, as ``uname -m`` prints it.
        cpus: the number of CPUs that the user may use.
        mem, disk: the available memory, and the free space in ``folder``, in MB.
        folder: the folder for programs and groups.
        nofile: the hard limit of open files of a process; None: none.
        python: the path of the Python that the archive needs; "" if there is none.
        addresses: the host's IPv4 addresses.
        connection: the addresses of both ends of the connection, as the host sees them: this machine's, the host's.
            Both are "" if the connection has none.
        listening: the ports on which a process listens.
        archive: whether the host has the archive.
    """

    machine: str = ""
    cpus: float = 0.0
    mem: float = 0.0
    disk: float = 0.0
    folder: str = "/tmp"  # noqa: S108  # the host's folder
    nofile: int | None = None
    python: str = ""
    addresses: tuple[str, ...] = ()
    connection: tuple[str, str] = ("", "")
    listening: tuple[int, ...] = ()
    archive: bool = False


def host_facts(texts: Mapping[str, str]) -> HostFacts:
    """The facts from the texts that the supervisor reports, by name; a text that is no number counts as 0."""
    ends = texts.get("connection", "").split()
    limit = texts.get("nofile", "")
    return HostFacts(
        machine=texts.get("machine", ""),
        cpus=_number(texts.get("cpus", "")),
        mem=_number(texts.get("mem", "")),
        disk=_number(texts.get("disk", "")),
        folder=texts.get("folder", ""),
        nofile=int(limit) if limit.isdecimal() else None,
        python=texts.get("python", ""),
        addresses=tuple(texts.get("addresses", "").split()),
        connection=(ends[0], ends[2]) if len(ends) == 4 else ("", ""),
        listening=tuple(sorted({int(port, 16) for port in texts.get("listening", "").split()})),
        archive=texts.get("archive") == "kept",
    )


def data_address(host: HostEntry, facts: HostFacts) -> str:
    """The address of the host for clients of other hosts; "" if none of its addresses is known to be the right one.

    It is the address that the user gave, or the one at which the connection arrived.
    """
    return next((each for each in (host.address, facts.connection[1]) if each in facts.addresses), "")


def unusable(hosts: Mapping[str, HostEntry], facts: Mapping[str, HostFacts], machine: str) -> dict[str, HostFailure]:
    """Why a run cannot use some of the hosts, by their names.

    Args:
        hosts: the hosts as the user named them, by name.
        facts: what some of them report.
        machine: the machine type of the archive.
    """
    found = {name: why for name, each in facts.items() if (why := _unusable(hosts[name], each, machine))}
    addresses = {name: data_address(hosts[name], each) for name, each in facts.items() if name not in found}
    inside = [name for name, address in addresses.items() if ipaddress.ip_address(address).is_loopback]
    if len(inside) < len(addresses):
        for name in inside:
            found[name] = HostFailure(
                f"other hosts cannot reach it: only its address {addresses[name]} is known", _GIVE
            )
    return found


def _unusable(host: HostEntry, facts: HostFacts, machine: str) -> HostFailure | None:
    if facts.machine != machine:
        return HostFailure(
            f"its machine type is {facts.machine}, and the programs are built for {machine}",
            "run hydra on a machine like the hosts",
        )
    if facts.disk < ROOM_MB:
        return HostFailure(
            f"its disk is full: {facts.disk:g} MB are free in {facts.folder}, and Hydra needs {ROOM_MB:g} MB",
            "make room there, or set TMPDIR for commands over ssh",
        )
    if not data_address(host, facts):
        address, its = host.address or facts.connection[1] or host.name, ", ".join(facts.addresses) or "none"
        return HostFailure(
            f"no server or publisher could bind {address}, which is no IPv4 address of it ({its})", _GIVE
        )
    return None


def here(facts: Iterable[HostFacts]) -> list[str]:
    """The addresses of the machine that connected, as hosts see it; those that most hosts see come first."""
    return [address for address, _ in Counter(each.connection[0] for each in facts).most_common() if "." in address]


def agent_of(host: HostEntry, facts: HostFacts, run: int) -> Agent:
    """The host as an agent with its free resources.

    Args:
        host: the host as the user named it.
        facts: what it reports.
        run: a number of the run, which chooses its ports.
    """
    resources = host.resources
    if resources is None:
        first = PORTS[0] + run % ((PORTS[1] - PORTS[0]) // _WINDOW) * _WINDOW
        resources = Resources(facts.cpus, facts.mem, facts.disk, ((first, first + _WINDOW - 1),))
    ports = without(resources.ports, ((port, port) for port in facts.listening))
    return Agent(host.name, host.name, host.attributes, replace(resources, ports=ports))


def advice(facts: Mapping[str, HostFacts], python: str) -> list[str]:
    """Lines for ``hydra check`` about hosts that limit runs.

    Args:
        facts: the facts of each host.
        python: the name of the Python that the archive needs.
    """
    without_python = [name for name, each in facts.items() if not each.python]
    few = [name for name, each in facts.items() if each.nofile is not None and each.nofile < _MANY_FILES]
    lines = []
    if without_python:
        lines.append(f"{listed(without_python)}: no {python} is on PATH there, so only native clients run there.")
    if few:
        least = min(facts[name].nofile or 0 for name in few)
        lines.append(
            f"{listed(few)}: a process may open {least:,} files (ulimit -Hn); a publisher or server needs one for "
            f"each subscriber: raise nofile in /etc/security/limits.conf there."
        )
    return lines


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
