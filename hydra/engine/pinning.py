"""Decides on which CPUs the processes of each role run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from hydra.errors import UsageError
from hydra.model import APART, GroupRole, MachineRecord, format_cpus, parse_cpus
from hydra.wire import CPUS_VARIABLE

_ROLES: Final[Sequence[GroupRole]] = ("publisher", "server", "subscriber")
_THREADS: Final = 2
"""The CPUs that one process of clients can use: for its own thread, and for the thread of its library."""
_ANY: Final = 1 << 30

Cores = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class RolePin:
    """The pin of a role that a run starts: a list of CPUs, ``apart``, or "", and the number of its processes.

    A server can use any number of cores, so its ``processes`` do not limit them.
    """

    pin: str
    processes: int


def cpus_of_roles(roles: Mapping[GroupRole, RolePin], machine: MachineRecord) -> dict[GroupRole, tuple[int, ...]]:
    """The CPUs of each role that all run on one machine; a role without a pin is left out if no role is ``apart``.

    A role with ``apart`` gets whole cores that no other role uses; roles without a pin share the cores that remain.
    First each gets one core; then they get one more in turn, clients at most two CPUs for each process. All cores are
    of one NUMA node if clients get there what they can use; a server takes what remains of that node.

    Args:
        roles: the roles that the run starts.
        machine: the record of the machine.

    Raises:
        UsageError: the machine does not have these CPUs, or not enough cores; or its cores are not known.
    """
    found = {
        role: _listed(role, processes.pin, machine)
        for role, processes in roles.items()
        if processes.pin not in ("", APART)
    }
    apart = [role for role in _ROLES if role in roles and roles[role].pin == APART]
    if not apart:
        return found
    rest = [role for role in _ROLES if role in roles and roles[role].pin == ""]
    parts = [*((role,) for role in apart), *([tuple(rest)] if rest else [])]
    cores = _free_cores(machine, {cpu for cpus in found.values() for cpu in cpus})
    if len(cores) < len(parts):
        others = f", and one for {' and '.join(rest)} together" if rest else ""
        raise UsageError(
            f'pin = "apart" needs a core for {" and ".join(apart)} each{others}: {len(parts)} cores, and this machine '
            f"has {len(cores)} free for it",
            "pin fewer roles, or name CPUs that roles share, such as --subscriber-pin 0-1",
        )
    needed = [_needed(roles, part, len(cores[0])) for part in parts]
    wanted = [_ANY if "server" in part else need for part, need in zip(parts, needed, strict=True)]
    cores = _of_one_node(cores, needed, wanted, machine)
    for part, share in zip(parts, _shares(wanted, len(cores)), strict=True):
        its, cores = cores[:share], cores[share:]
        cpus = tuple(sorted(cpu for core in its for cpu in core))
        found |= dict.fromkeys(part, cpus)
    return {role: found[role] for role in _ROLES if role in found}


def refusal_of(role: str, pin: str, allowed: Collection[int], online: Collection[int], host: str) -> UsageError | None:
    """Why the processes of a role on another host do not run on the CPUs of their pin; None: they do.

    Args:
        role: the role of the processes.
        pin: a list of CPUs, or ``apart``, which another host fulfils by CPUs of the processes' own.
        allowed: the CPUs on which the processes may run.
        online: the CPUs of the host.
        host: the name of the host.
    """
    if pin == APART and len(allowed) >= len(online):
        return UsageError(
            f'{role}.pin = "apart": on {host}, processes may use all {len(online)} CPUs, so none belong to them alone',
            "have the cluster give exclusive CPUs (of a Pod: whole CPUs as request and limit, on nodes with the static "
            "CPU policy), or name CPUs",
        )
    if pin != APART and set(allowed) != set(parse_cpus(pin)):
        return UsageError(
            f"{role}.pin = {pin!r}: on {host}, processes may use CPUs {format_cpus(allowed)}",
            "name CPUs that the host has, and that the control group of these processes may use",
        )
    return None


def pin_environment(pin: str) -> dict[str, str]:
    """The environment variable with which a group's parent confines itself; an engine fulfils ``apart``."""
    return {CPUS_VARIABLE: pin} if pin not in ("", APART) else {}


def _listed(role: str, pin: str, machine: MachineRecord) -> tuple[int, ...]:
    """The CPUs of a list, if this machine has them all.

    Raises:
        UsageError: it lacks one.
    """
    cpus = parse_cpus(pin)
    usable = machine.usable
    missing = set(cpus).difference(usable) if usable is not None else set()
    if missing:
        within = "its control group (cpuset)" if usable != machine.cpus else "this machine"
        raise UsageError(
            f"{role}.pin = {pin!r}: {within} has no CPU {format_cpus(missing)}",
            f"name some of the CPUs {format_cpus(usable or ())}",
        )
    return cpus


def _free_cores(machine: MachineRecord, taken: Collection[int]) -> Cores:
    """The whole cores that this process may use, without those in lists of CPUs; cores of one NUMA node are neighbours.

    Raises:
        UsageError: the kernel does not show which CPUs share a core.
    """
    if machine.cores is None or machine.allowed is None:
        raise UsageError(
            'pin = "apart": the kernel does not show here which CPUs share a core',
            "name CPUs, such as --server-pin 2-3",
        )
    whole = [core for core in machine.cores if set(core) <= set(machine.allowed) and not set(core) & set(taken)]
    return sorted(whole, key=lambda core: (_node(core, machine), core))


def _node(core: Sequence[int], machine: MachineRecord) -> int:
    """The number of a core's NUMA node."""
    return next((number for number, cpus in enumerate(machine.nodes or ()) if core[0] in cpus), 0)


def _of_one_node(cores: Cores, needed: Sequence[int], wanted: Sequence[int], machine: MachineRecord) -> Cores:
    """The cores of the first NUMA node on which each part gets what it needs; all cores if there is no such node."""
    for number in range(len(machine.nodes or ())):
        its = [core for core in cores if _node(core, machine) == number]
        if len(its) < len(wanted):
            continue
        if all(has >= need for has, need in zip(_shares(wanted, len(its)), needed, strict=True)):
            return its
    return cores


def _needed(roles: Mapping[GroupRole, RolePin], its: Sequence[GroupRole], cpus: int) -> int:
    """The cores, of this number of CPUs each, that clients of these roles can use, and one for a server."""
    clients = sum(group.processes for role, group in roles.items() if role in its and role != "server")
    return -(-_THREADS * clients // cpus) + ("server" in its)


def _shares(wanted: Sequence[int], cores: int) -> list[int]:
    """The number of cores of each part: one first, then another one in turn, beginning with the largest part.

    Args:
        wanted: the most cores that each part can use.
        cores: the number of cores, one for each part or more.
    """
    shares = [1] * len(wanted)
    for part in cycle(sorted(range(len(wanted)), key=lambda part: -wanted[part])):
        if sum(shares) == cores or all(has >= want for has, want in zip(shares, wanted, strict=True)):
            break
        shares[part] += shares[part] < wanted[part]
    return shares
