"""What disturbed a step: other processes on its hosts, changes of the machines, and jumps of their clocks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from hydra.measure.cpu_slowdown import fall_under_load
from hydra.measure.verdict import OTHERS_PCT
from hydra.model import Evidence, FactChange, MachineActivity

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
