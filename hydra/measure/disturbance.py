"""What disturbed a step: other processes on its hosts, changes of the machines, and jumps of their clocks. Pure.

The CPU time of processes outside the run is that of two readings of ``/proc/PID/stat``; whether the CPU was slowed down
is known from its frequency under load, and from the counters of heat and of used up quotas.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from hydra.measure.machine_facts import CPUS, POLICIES, Texts, whole_number
from hydra.measure.verdict import OTHERS_PCT
from hydra.model import Evidence, FactChange, MachineActivity

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


FREQUENCY_FILES: Final = (f"{POLICIES}/scaling_cur_freq", "/proc/stat")
"""The files with the present frequency of the cores, in kHz, and with the time that each core was busy."""
FREQUENCY_BYTES: Final = 16_384
"""The most bytes of each of these files: the lines of the first 200 cores or more."""
HEAT_FILES: Final = (
    f"{CPUS}/cpu[0-9]*/thermal_throttle/core_throttle_count",
    f"{CPUS}/cpu[0-9]*/thermal_throttle/package_throttle_count",
)
"""The files that count how often the CPU was slowed down because it was too hot."""
LOADED_PCT: Final = 80.0
"""The least use of the busiest core at which a frequency counts as one under load.

From this use on, the governors that follow the load (``ondemand``, ``conservative``, ``schedutil``) select the highest
frequency; below it, the frequency falls and rises with the load of the run itself.
"""
FREQUENCY_FALL: Final = 0.1
"""The least relative fall of the fastest core's frequency under load that is a slowdown."""

_CORE: Final = re.compile(r"^(cpu\d+)((?: \d+){8})(?=[ \n])", re.MULTILINE)
"""A core's ticks: user, nice, system, idle, iowait, irq, softirq, steal; user and nice contain those of guests."""


class FrequencySeries:
    """The frequency of a host's CPU, from one reading of :data:`FREQUENCY_FILES` after the other.

    Attributes:
        mhz: the frequency of the fastest core at each reading.
        busiest_pct: the use of the busiest core between the reading before and this one, in %; 0 for the first one.
    """

    def __init__(self) -> None:
        self.mhz: list[float] = []
        self.busiest_pct: list[float] = []
        self._before: Mapping[str, tuple[int, int]] = {}

    def add(self, texts: Texts) -> None:
        """Adds a reading, unless the kernel shows no frequency."""
        if (mhz := fastest_mhz(texts)) is None:
            return
        now = _core_ticks(texts.get("/proc/stat", ""))
        self.mhz.append(round(mhz, 1))
        self.busiest_pct.append(round(_busiest_pct(self._before, now), 1))
        self._before = now


def fastest_mhz(texts: Texts) -> float | None:
    """The present frequency of the fastest core; None if the kernel does not show it."""
    found = [whole_number(text) for path, text in texts.items() if path.endswith("/scaling_cur_freq")]
    return max((khz / 1000 for khz in found if khz is not None), default=None)


def throttle_count(texts: Texts) -> int | None:
    """How often the CPU was slowed down since boot, by heat or by the quota of a control group; None: not known."""
    heat = [whole_number(text) for path, text in texts.items() if path.endswith("_throttle_count")]
    quota = [
        int(found[1])
        for path, text in texts.items()
        if path.endswith("/cpu.stat") and (found := re.search(r"^nr_throttled (\d+)$", text, re.MULTILINE))
    ]
    known = [*(count for count in heat if count is not None), *quota]
    return sum(known) if known else None


def fall_under_load(mhz: Sequence[float], busiest_pct: Sequence[float]) -> tuple[float, float] | None:
    """The largest fall of the frequency under load: the lower and the higher frequency; None if there was none.

    The rise from the frequency of an idle machine is no fall, and neither is the fall after the load.

    Args:
        mhz: the frequency of the fastest core at each reading.
        busiest_pct: the use of the busiest core before each reading, in %; a reading without it has no load.
    """
    highest, worst = 0.0, None
    for now, used_pct in zip(mhz, busiest_pct, strict=False):
        if used_pct < LOADED_PCT:
            continue
        highest = max(highest, now)
        if now < (1 - FREQUENCY_FALL) * highest and (worst is None or now / highest < worst[0] / worst[1]):
            worst = now, highest
    return worst


def _core_ticks(stat: str) -> dict[str, tuple[int, int]]:
    """The ticks in which each core was busy, and all its ticks, by its name; a line that is cut off is left out."""
    found = {}
    for name, words in _CORE.findall(stat):
        ticks = [int(word) for word in words.split()]
        idle, waiting = ticks[3:5]
        found[name] = sum(ticks) - idle - waiting, sum(ticks)
    return found


def _busiest_pct(before: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]]) -> float:
    """The use of the busiest core between two readings, in %; 0 if no core is in both."""
    grown = [(busy - before[core][0], all_ - before[core][1]) for core, (busy, all_) in now.items() if core in before]
    return max((100 * busy / all_ for busy, all_ in grown if all_ > 0), default=0.0)


_NAMED: Final = 8
"""The most processes that are named for a host."""
_SWAPPED_BYTES: Final = 1_000_000
"""The least growth of the used swap space that counts: the kernel moves single pages at any time."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What disturbed a step on one host.

    Attributes:
        host: the name of the host.
        others_pct: the CPU of all cores that processes outside the run used, in %; 0 if it was little.
        by: the processes that used most of it, with the CPU of each in %.
        throttled: how often the CPU was slowed down.
        frequencies_mhz: the frequency of the fastest core after and before it fell under load; () if it did not fall.
        swapped_bytes: by how much the used swap space grew; 0 if it was less than 1 MB.
        changed: the facts of the machine that changed since the run began.
        clock_jumps: how often CLOCK_MONOTONIC jumped against the controller's.
    """

    host: str
    others_pct: float = 0.0
    by: tuple[tuple[str, float], ...] = ()
    throttled: int = 0
    frequencies_mhz: tuple[float, ...] = ()
    swapped_bytes: int = 0
    changed: tuple[FactChange, ...] = ()
    clock_jumps: int = 0


@dataclass(frozen=True, slots=True)
class Disturbances(Evidence):
    """What disturbed a step, for each host on which something did; at least one."""

    hosts: tuple[Disturbance, ...]

    def __str__(self) -> str:
        return msgspec.json.encode(self.hosts).decode()


def others_pct(activity: MachineActivity) -> float | None:
    """The CPU of all cores that processes outside the run used during a step, in %; None: not known."""
    if activity.others is None or activity.seconds <= 0 or not activity.cpus:
        return None
    return min(100 * sum(activity.others.values()) / (activity.seconds * activity.cpus), 100.0)


_UNOBSERVED: Final = MachineActivity(seconds=0.0, cpus=0, others=None)


def disturbances(hosts: Mapping[str, MachineActivity], clock_jumps: Mapping[str, int]) -> Disturbances | None:
    """What disturbed a step; None: nothing did.

    Args:
        hosts: what happened on each host.
        clock_jumps: how often the clock of each host jumped.
    """
    found = []
    for host in {**hosts, **clock_jumps}:
        activity = hosts.get(host, _UNOBSERVED)
        pct = others_pct(activity) or 0.0
        disturbed = pct > OTHERS_PCT
        fall = fall_under_load(activity.frequencies_mhz, activity.busiest_core_pct)
        disturbance = Disturbance(
            host,
            others_pct=round(pct, 1) if disturbed else 0.0,
            by=named(activity.others or {}, activity.seconds * activity.cpus) if disturbed else (),
            throttled=activity.throttled or 0,
            frequencies_mhz=tuple(map(round, fall or ())),
            swapped_bytes=activity.swapped_bytes if activity.swapped_bytes >= _SWAPPED_BYTES else 0,
            changed=activity.changed,
            clock_jumps=clock_jumps.get(host, 0),
        )
        if disturbance != Disturbance(host):
            found.append(disturbance)
    return Disturbances(tuple(found)) if found else None


def named(others: Mapping[str, float], cpu_s: float) -> tuple[tuple[str, float], ...]:
    """The processes that used most CPU, each with its part in %.

    Args:
        others: CPU seconds by name.
        cpu_s: the CPU seconds of all cores in that time.
    """
    largest = sorted(others.items(), key=lambda each: -each[1])[:_NAMED]
    parts = ((name, round(100 * used_s / cpu_s, 1)) for name, used_s in largest)
    return tuple((name, pct) for name, pct in parts if pct >= 0.1)
