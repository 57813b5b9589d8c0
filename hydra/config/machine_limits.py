"""Reads the limits of this machine that a run of thousands of processes may reach. Linux only."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from hydra.events.value_formatting import counted

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
