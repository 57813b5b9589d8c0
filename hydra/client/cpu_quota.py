"""How long the CPU quota of a control group stopped processes, from the kernel's counters."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_NS_PER_US: Final = 1000
_MOST_KEPT: Final = 1024
"""The most processes whose groups are kept; groups of others are read again."""


class QuotaReader:
    """Reads how long the control groups of a process were stopped because their quota was used up.

    Args:
        proc: the folder of the kernel's files about processes.
        groups: the folder in which control groups are mounted.
    """

    def __init__(self, proc: Path, groups: Path = CONTROL_GROUPS) -> None:
        self._proc = proc
        self._groups = groups
        self._folders = lru_cache(_MOST_KEPT)(self._folders_of)

    def stopped_ns(self, pids: Iterable[int]) -> dict[int, int]:
        """The time since the groups of each process exist (ns): the sum over its group and those above it.

        The kernel adds up the times of all cores. 0 if there is no quota. Processes of one group cost one reading.
        """
        folders = {pid: self._folders(pid) for pid in pids}
        times_ns = {folder: _stopped_ns(folder) for folder in {each for its in folders.values() for each in its}}
        return {pid: sum(times_ns[folder] for folder in its) for pid, its in folders.items()}

    def _folders_of(self, pid: int) -> tuple[Path, ...]:
        try:
            lines = (self._proc / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return ()
        found = []
        for line in lines:
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if controllers and "cpu" not in controllers.split(","):
                continue
            inside = Path(path.lstrip("/"))
            if ".." in inside.parts:
                continue  # the group lies outside of what this process sees
            mounted = self._groups / "cpu" if controllers else self._groups
            found += [mounted / each for each in (inside, *inside.parents)]
        return tuple(found)


def _stopped_ns(folder: Path) -> int:
    """The time of one group: version 1 counts it in ns, version 2 in µs."""
    try:
        text = (folder / "cpu.stat").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "throttled_time":
            return int(value)
        if name == "throttled_usec":
            return int(value) * _NS_PER_US
    return 0
