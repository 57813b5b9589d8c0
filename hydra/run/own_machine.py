"""The controller's own machine: its record, and the CPUs to which roles are pinned."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from hydra.client.kernel_files import read_texts
from hydra.client.linux_process import process_cpu_ns
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.engine.pinning import RolePin, cpus_of_roles, refusal_of
from hydra.errors import UsageError
from hydra.measure.disturbance import FREQUENCY_BYTES, FREQUENCY_FILES, HEAT_FILES, Processes, descendants, processes_of
from hydra.measure.machine_facts import FILE_BYTES, Texts, group_files
from hydra.model import APART, GroupRole, MachineRecord, RoleSpec, Scenario, ServerSpec, format_cpus


def is_apart(resolved: ResolvedScenario) -> bool:
    """Whether a role of a scenario shares no core with the others."""
    return any(role.pin == APART for role in roles_of(resolved).values())


def roles_of(resolved: ResolvedScenario) -> dict[GroupRole, RolePin]:
    """The roles whose processes a run starts, with the pin and the number of processes of each."""
    scenario = resolved.scenario
    clients = max(count for _, count in scenario.sizes)
    packed = max(scenario.native.clients_per_process, 1)
    roles: dict[GroupRole, RolePin] = {"publisher": RolePin(scenario.publisher.pin, scenario.publishers)}
    if resolved.servers:
        roles["server"] = RolePin(scenario.server.pin, resolved.servers)
    if clients:
        roles["subscriber"] = RolePin(scenario.subscriber.pin, -(-clients // packed))
    return roles


def pinned_scenario(
    resolved: ResolvedScenario, machine: MachineRecord
) -> tuple[ResolvedScenario, Mapping[GroupRole, tuple[int, ...]]]:
    """The scenario with a list of CPUs as the pin of each role, and these CPUs; for a run on one machine.

    Raises:
        UsageError: the machine does not have these CPUs, or not enough cores.
    """
    roles = roles_of(resolved)
    if not any(role_pin.pin for role_pin in roles.values()):
        return resolved, {}
    cpus = cpus_of_roles(roles, machine)
    return resolved.adapted(_with_pins(resolved.scenario, cpus)), cpus


def _with_pins(scenario: Scenario, cpus: Mapping[GroupRole, tuple[int, ...]]) -> Scenario:
    pins = {role: format_cpus(its) for role, its in cpus.items()}
    return replace(
        scenario,
        publisher=_with_pin(scenario.publisher, pins.get("publisher", "")),
        subscriber=_with_pin(scenario.subscriber, pins.get("subscriber", "")),
        server=cast("ServerSpec", _with_pin(scenario.server, pins.get("server", ""))),
    )


def _with_pin(spec: RoleSpec, pin: str) -> RoleSpec:
    return replace(spec, pin=pin)


def unkept_pin(
    roles: Mapping[GroupRole, RolePin], hosts: Iterable[tuple[str, MachineRecord, frozenset[str]]]
) -> UsageError | None:
    """Why a host of a cluster does not keep the pins of its processes; None: no host is known not to.

    Args:
        roles: the roles of the run.
        hosts: the name of each host, its record as one of the run's processes there read it, and the roles there.
    """
    for name, record, on_host in hosts:
        pins = {role: processes.pin for role, processes in roles.items() if role in on_host}
        # A host of one role needs no CPUs of its own: the role shares no core with the others.
        if record.allowed is None or record.cpus is None or not all(pins.values()) or list(pins.values()) == [APART]:
            continue
        refusals = [refusal_of(role, pin, record.allowed, record.cpus, name) for role, pin in pins.items()]
        # The record does not show which of the host's processes read it.
        if refusals and all(refusals):
            return refusals[0]
    return None


_PROCESS_BYTES: Final = 384


@dataclass(frozen=True, slots=True)
class MachineReading:
    """One reading of a host.

    Attributes:
        time_ns: CLOCK_MONOTONIC of the host.
        texts: the texts of the kernel's files, without those of processes.
        processes: the processes that may be no part of the run; None if they are not known.
        own: the processes of the run.
    """

    time_ns: int
    texts: Texts
    processes: Processes | None
    own: frozenset[int]


class OwnMachine:
    """Reads this host.

    Args:
        root: the folder that contains ``proc`` and ``sys``.
        pid: the process of the command, which belongs to the run with all its descendants.
    """

    def __init__(self, root: Path = Path("/"), pid: int | None = None) -> None:
        self._root = root
        self._pid = os.getpid() if pid is None else pid
        self._own: frozenset[int] = frozenset()
        self._others = ProcessTable(root)
        self._groups: tuple[str, ...] | None = None

    def read(
        self, files: Sequence[str], groups: Mapping[int, str] | None = None, servers: Sequence[int] = ()
    ) -> MachineReading:
        """Reads these files, the processes of this host, and the counters that :class:`MachineActivity` needs.

        Args:
            files: the patterns of the files.
            groups: the relays and servers that report this host as theirs, by process id, with the name of their
                group. An engine may have started them, so they do not descend from the command.
            servers: further processes of this host that belong to the run with all their descendants.
        """
        if self._groups is None:
            self._groups = group_files(read_texts(["/proc/self/cgroup"], FILE_BYTES, self._root))
        time_ns = time.monotonic_ns()
        present = {int(name) for name in os.listdir(self._root / "proc") if name.isdigit()}  # noqa: PTH208  # thousands
        # Thousands of own processes are read once: whatever descends from them is known by its parent.
        self._own &= present
        processes = self._others.read(present, present - self._own)
        roots = self._roots(groups or {}, processes)
        self._own |= descendants(processes, (self._pid, *roots, *servers, *self._own)) & present
        texts = read_texts((*files, *HEAT_FILES, *self._groups), FILE_BYTES, self._root)
        return MachineReading(time_ns, texts, processes, self._own)

    def _roots(self, groups: Mapping[int, str], processes: Processes) -> Iterator[int]:
        """The first process of each group: the parent of a relay forks the clients, a server has no such parent.

        In a container the ids are others. So only a process counts whose command line has the name of its group.
        """
        for pid, group in groups.items():
            if pid in self._own or pid not in processes:
                continue
            parent = processes[pid].parent
            yield from (each for each in (pid, parent) if group in self._command_line(each))

    def _command_line(self, pid: int) -> list[str]:
        path = f"/proc/{pid}/cmdline"
        return read_texts([path], FILE_BYTES, self._root).get(path, "").split("\0")

    def frequency_texts(self) -> Texts:
        """The texts of the files with the present frequency of the cores, and their use."""
        return read_texts(FREQUENCY_FILES, FREQUENCY_BYTES, self._root)


class ProcessTable:
    """The processes of this host, of which only those are read again that have run since the reading before.

    A process whose CPU time is the same has not waited for a child either.

    Args:
        root: the folder that contains ``proc``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._times: Processes = {}
        self._clocks_ns: dict[int, int | None] = {}
        # Clocks belong to the process ids that this process sees; the folder may be that of other ids.
        try:
            self._has_clocks = (root / "proc/self").readlink() == Path(str(os.getpid()))
        except OSError:
            self._has_clocks = False

    def read(self, present: Set[int], wanted: Set[int]) -> Processes:
        """The times of processes now.

        Args:
            present: the ids of all processes.
            wanted: the ids of those to read.
        """
        clocks_ns = {pid: process_cpu_ns(pid) for pid in wanted} if self._has_clocks else {}
        known = self._clocks_ns
        # A process gets another parent, without running, if its parent ends.
        asleep = {
            pid: times
            for pid, times in self._times.items()
            if (now_ns := clocks_ns.get(pid)) is not None
            and now_ns == known[pid]
            and (times.parent in present or not times.parent)
        }
        # The clocks were read before the files: what runs between them counts as read at the next reading.
        texts = read_texts((f"/proc/{pid}/stat" for pid in wanted - asleep.keys()), _PROCESS_BYTES, self._root)
        self._times = {**asleep, **processes_of(texts)}
        self._clocks_ns = {pid: clocks_ns.get(pid) for pid in self._times}
        return self._times
