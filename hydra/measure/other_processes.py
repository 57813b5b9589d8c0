"""The CPU time of processes outside a run, from two readings of ``/proc/PID/stat``. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

PROCESS_FILES: Final = ("/proc/[0-9]*/stat",)
_TICKS_PER_S: Final = 100
"""The unit of the times in these files on every kernel (USER_HZ)."""
_KERNEL: Final = 2
"""The process of which all threads of the kernel are children."""


class ProcessTimes(NamedTuple):
    """A process: its parent, name and start (ticks since boot), its CPU time, and that of its children that ended."""

    parent: int
    name: str
    start: int
    own_s: float
    children_s: float

    @property
    def whole_s(self) -> float:
        """What its parent's ``children_s`` grows by when it ends."""
        return self.own_s + self.children_s


Processes = Mapping[int, ProcessTimes]


def processes_of(texts: Mapping[str, str]) -> dict[int, ProcessTimes]:
    """The processes in texts of ``/proc/PID/stat`` by path; unreadable ones are left out."""
    found: dict[int, ProcessTimes] = {}
    for path, text in texts.items():
        pid = path.removeprefix("/proc/").removesuffix("/stat")
        # The name stands in parentheses, and may contain some itself.
        before, _, after = text.rpartition(") ")
        fields = after.split()
        if pid.isdigit() and len(fields) > 19:
            user, system, of_children, in_kernel = (int(ticks) / _TICKS_PER_S for ticks in fields[11:15])
            name = before.partition(" (")[2]
            times = user + system, of_children + in_kernel
            found[int(pid)] = ProcessTimes(int(fields[1]), name, int(fields[19]), *times)
    return found


def descendants(processes: Processes, roots: Iterable[int]) -> set[int]:
    """These processes and all that descend from them."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, process in processes.items():
        children[process.parent].append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children[pid]
    return found


def used_by_others(before: Processes, after: Processes, own: Container[int]) -> dict[str, float]:
    """CPU seconds between two readings by name, the highest first.

    The threads of the kernel are left out, because they work for the processes of the run, too. The time of a process
    that ended between the readings counts for its parent, if that has waited for it.

    Args:
        before: the first reading.
        after: the second reading.
        own: processes that are no others.
    """
    ended: dict[int, float] = defaultdict(float)
    ended_pids = {
        pid
        for pid, process in before.items()
        if (later := after.get(pid)) is not process and pid not in own and not _is_same(process, later)
    }
    for pid in ended_pids:
        # A compiler ends with its shell: only their ancestor that continues has waited for both.
        ancestor = before[pid].parent
        while ancestor in ended_pids and ancestor != before[ancestor].parent:
            ancestor = before[ancestor].parent
        ended[ancestor] += before[pid].whole_s
    found: dict[str, float] = defaultdict(float)
    for pid, now in after.items():
        then = before.get(pid)
        # The same object was not read again, because the process has not run.
        if then is now or pid in own or pid == _KERNEL or now.parent == _KERNEL:
            continue
        known = then if then is not None and _is_same(then, now) else None
        own_s = now.own_s - (known.own_s if known else 0.0)
        # What ended children had used before the first reading is no use between the readings.
        children_s = now.children_s - (known.children_s + ended[pid] if known else 0.0)
        if (used_s := max(own_s, 0.0) + max(children_s, 0.0)) > 0:
            found[now.name] += used_s
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def _is_same(process: ProcessTimes, later: ProcessTimes | None) -> bool:
    """Whether this is the same process, not a later one with its id."""
    return later is not None and later.start == process.start
