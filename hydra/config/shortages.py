"""The limits of this machine, and what a row needs beyond them."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.resource_needs import MachineNeeds, needs
from hydra.events.value_formatting import bytes_text, counted
from hydra.model import ClusterSpec, Scenario

_PROC_SYS: Final = Path("/proc/sys")
_CLOCK: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CGROUP: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The current limits; a limit of 0 is unlimited.

    ``privileged``: whether this process may write kernel settings; ``threads`` counts the threads of the whole host.
    """

    nofile_soft: int
    nofile_hard: int
    nproc_soft: int
    file_max: int
    pid_max: int
    threads_max: int
    cgroup_pids_max: int
    threads: int
    somaxconn: int
    ports_first: int
    ports_last: int
    memory_available_bytes: int
    disk_available_bytes: int
    clock_source: str
    privileged: bool


def read_limits(folder: Path = Path()) -> MachineLimits:
    """Reads all limits; a limit that the kernel does not show counts as unlimited.

    Args:
        folder: the folder of the run, where servers store their messages.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    nproc, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    first, last = (int(word) for word in _text(_PROC_SYS / "net/ipv4/ip_local_port_range", "32768 60999").split())
    load = _text(Path("/proc/loadavg"), "0 0 0 0/0 0").split()[3].split("/")
    return MachineLimits(
        nofile_soft=soft,
        nofile_hard=hard,
        # The kernel does not apply this limit to root's processes.
        nproc_soft=0 if nproc == resource.RLIM_INFINITY or os.geteuid() == 0 else nproc,
        file_max=_number(_PROC_SYS / "fs/file-max"),
        pid_max=_number(_PROC_SYS / "kernel/pid_max"),
        threads_max=_number(_PROC_SYS / "kernel/threads-max"),
        cgroup_pids_max=_number(_CGROUP / "pids.max"),
        threads=int(load[1]),
        somaxconn=_number(_PROC_SYS / "net/core/somaxconn"),
        ports_first=first,
        ports_last=last,
        memory_available_bytes=_memory(),
        disk_available_bytes=_disk(folder.absolute()),
        clock_source=_text(_CLOCK, "unknown"),
        privileged=os.access(_PROC_SYS / "kernel/pid_max", os.W_OK),
    )


@dataclass(frozen=True, slots=True)
class MachineResources:
    """The resources of this machine, for users to compare with those that they declared."""

    cores: int
    memory_bytes: int
    available_bytes: int
    disk_bytes: int

    def __str__(self) -> str:
        memory, available, disk = (n / 1e9 for n in (self.memory_bytes, self.available_bytes, self.disk_bytes))
        cores = counted(self.cores, "core")
        return f"{cores}, {memory:.1f} GB of memory ({available:.1f} GB available) and {disk:.1f} GB of free disk here"


def machine_resources(folder: Path) -> MachineResources:
    """The cores that this process may use, memory, and free space at a folder."""
    limit = _number(_CGROUP / "memory.max")
    total = int(psutil.virtual_memory().total)
    return MachineResources(
        len(os.sched_getaffinity(0)), min(total, limit) if limit else total, _memory(), _disk(folder)
    )


def _memory() -> int:
    available = int(psutil.virtual_memory().available)
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    return min(available, limit - used) if limit else available


def _disk(folder: Path) -> int:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return int(psutil.disk_usage(str(existing)).free)


def _text(path: Path, default: str) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return default


def _number(path: Path) -> int:
    text = _text(path, "0")
    return int(text) if text.isdigit() else 0


GOOD_CLOCKS: Final = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
"""Clock sources that are read without a system call."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which the machine has less than is needed.

    ``severe``: whether the step does not fit; otherwise it is only slower or less exact. ``remedy`` is the command to
    type, or states that this machine's limit cannot be changed.
    """

    what: str
    has: str
    needed: str
    remedy: str
    severe: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.has}, needs {self.needed}; {self.remedy}"


def shortages(machine: MachineLimits, needed: MachineNeeds, running: MachineNeeds | None = None) -> list[Shortage]:
    """Every shortage, first those with which the step does not fit.

    Args:
        machine: the machine's current limits.
        needed: what the step needs in total.
        running: the needs of the part that is running already; the machine's used threads and memory include it, so
            that only the difference has to be free.
    """
    threads = needed.threads - (running.threads if running else 0)
    memory_bytes = needed.memory_bytes - (running.memory_bytes if running else 0)
    return sorted(_all(machine, needed, threads, memory_bytes), key=lambda shortage: not shortage.severe)


def _all(machine: MachineLimits, needed: MachineNeeds, threads: int, memory_bytes: int) -> Iterator[Shortage]:
    """``threads`` and ``memory_bytes`` are needed in addition to what is running; all else is compared in total."""
    if machine.nofile_hard < needed.files:
        yield Shortage(
            "open files of one process (hard limit)",
            str(machine.nofile_hard),
            str(needed.files),
            f"add to /etc/security/limits.conf: * hard nofile {needed.files}"
            if machine.privileged
            else _cannot("the hard limit of open files"),
        )
    elif machine.nofile_soft < needed.files:
        yield Shortage(
            "open files of one process (soft limit)",
            str(machine.nofile_soft),
            str(needed.files),
            f"ulimit -n {needed.files} (a run does this by itself)",
            severe=False,
        )
    yield from _counted(machine, "processes of one user", machine.nproc_soft, 0, needed.processes, "ulimit -u {}")
    yield from _sysctl(machine, "open files of the host", "fs.file-max", machine.file_max, 0, needed.all_files)
    yield from _sysctl(machine, "process ids", "kernel.pid_max", machine.pid_max, machine.threads, threads)
    yield from _sysctl(machine, "threads", "kernel.threads-max", machine.threads_max, machine.threads, threads)
    yield from _counted(
        machine, "tasks of this control group", machine.cgroup_pids_max, machine.threads, threads,
        "echo {} > /sys/fs/cgroup/pids.max",
    )  # fmt: skip
    yield from _network(machine, needed)
    if machine.memory_available_bytes < memory_bytes:
        yield Shortage(
            "memory",
            f"{bytes_text(machine.memory_available_bytes)} available",
            bytes_text(memory_bytes),
            "this process cannot raise the available memory; use a larger machine, more machines, or fewer clients",
        )
    if machine.disk_available_bytes < needed.disk_bytes:
        yield Shortage(
            "disk for the servers' logs",
            f"{bytes_text(machine.disk_available_bytes)} available",
            f"{'up to ' if needed.disk_guessed else ''}{bytes_text(needed.disk_bytes)}",
            "make room, name a folder on another disk with --out, or take shorter steps",
            severe=not needed.disk_guessed,
        )
    if machine.clock_source not in GOOD_CLOCKS:
        yield Shortage(
            "clock source", machine.clock_source, f"one of {', '.join(GOOD_CLOCKS)}",
            "latencies are less exact: every reading is a system call", severe=False,
        )  # fmt: skip


def _network(machine: MachineLimits, needed: MachineNeeds) -> Iterator[Shortage]:
    ports = machine.ports_last - machine.ports_first + 1
    # Linux first gives every second port to connect(); then it searches for the others, which takes longer.
    if ports < 2 * needed.ports:
        yield Shortage(
            "local ports",
            f"{ports} ({machine.ports_first}-{machine.ports_last})",
            str(needed.ports) if ports < needed.ports else f"{2 * needed.ports} to connect without a search",
            'sysctl -w net.ipv4.ip_local_port_range="1024 65535"',
            severe=ports < needed.ports,
        )
    if machine.somaxconn < needed.backlog:
        yield Shortage(
            "listen queue", str(machine.somaxconn), str(needed.backlog),
            f"sysctl -w net.core.somaxconn={needed.backlog}", severe=False,
        )  # fmt: skip


def _sysctl(machine: MachineLimits, what: str, key: str, limit: int, used: int, needed: int) -> Iterator[Shortage]:
    yield from _counted(machine, what, limit, used, needed, f"sysctl -w {key}={{}}")


def _counted(machine: MachineLimits, what: str, limit: int, used: int, needed: int, line: str) -> Iterator[Shortage]:
    """The shortage of a counted resource, some of which is in use already; a limit of 0 is no limit."""
    if limit and limit < used + needed:
        remedy = line.format(used + needed) if machine.privileged or "ulimit" in line else _cannot(what)
        yield Shortage(what, f"{limit} with {used} in use" if used else str(limit), str(needed), remedy)


def _cannot(what: str) -> str:
    return f"{what} cannot be raised by this process; use a larger machine, more machines, or fewer clients"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """The check of one size of the deployment against the machine."""

    publishers: int
    clients: int
    needs: MachineNeeds
    shortages: list[Shortage]

    @property
    def fits(self) -> bool:
        """Whether the row fits: no shortage is severe."""
        return not any(s.severe for s in self.shortages)


Size = tuple[int, int]
"""The numbers of publishers and of subscribers."""


def check_row(
    resolved: ResolvedScenario,
    cluster: ClusterSpec,
    machine: MachineLimits,
    size: Size,
    running: Size | None = None,
    stored_bytes: int = 0,
) -> RowCheck:
    """Checks one size of the scenario's deployment against the machine.

    Args:
        resolved: the scenario.
        cluster: the settings of the cluster file.
        machine: the machine's current limits.
        size: the publishers and subscribers of the row.
        running: the clients that are running already, in addition to the run's servers; None if nothing is running.
        stored_bytes: space that the run's servers use on the disk already; it is deleted before it is needed again.
    """
    machine = replace(machine, disk_available_bytes=machine.disk_available_bytes + stored_bytes)
    needed = needs_of_size(resolved, cluster, size)
    taken = needs_of_size(resolved, cluster, running) if running is not None else None
    return RowCheck(*size, needed, shortages(machine, needed, taken))


def needs_of_size(resolved: ResolvedScenario, cluster: ClusterSpec, size: Size) -> MachineNeeds:
    """What one size of the scenario's deployment needs."""
    scenario, (publishers, clients) = resolved.scenario, size
    # Each growth of the client count launches new groups, at least one on each agent.
    growths = sum(1 for count in scenario.sweep.counts if count <= clients) or 1
    most = cluster.most_in_group(scenario.native.clients_per_process)
    subscriber_groups = max(-(-clients // most), min(len(cluster.agents) * growths, clients))
    return needs(resolved, clients, subscriber_groups + publishers, cluster.fork_window, publishers)


def check_all(resolved: ResolvedScenario, cluster: ClusterSpec, machine: MachineLimits) -> list[RowCheck]:
    """The check of every size of the scenario's deployment, in ascending order."""
    return [check_row(resolved, cluster, machine, size) for size in resolved.scenario.sizes]


def checked_line(scenario: Scenario, name: str, file: Path, *, named: bool) -> str:
    """The line that names the checked scenario.

    Args:
        scenario: the scenario with the user's replacements.
        name: the scenario's name on the command line.
        file: the scenario's file.
        named: whether the user named the scenario.
    """
    about = f": {scenario.description}" if scenario.description else ""
    usual = "" if named else "; no scenario was named, so this is the default: hydra check SCENARIO checks another"
    return f"Scenario {name} ({file}){about}; clients: {scenario.client}{usual}"


def needs_line(row: RowCheck) -> dict[str, str | float]:
    """A row of the table of needed resources."""
    missing = ", ".join(s.what for s in row.shortages if s.severe)
    return {
        "clients": row.clients,
        "publishers": row.publishers,
        "processes": row.needs.processes,
        "threads": row.needs.threads,
        "open files (one process)": row.needs.files,
        "local ports": row.needs.ports,
        "memory (GB)": row.needs.memory_bytes / 1e9,
        "disk (GB)": row.needs.disk_bytes / 1e9,
        "fits": "yes" if row.fits else f"no: {missing}",
    }
