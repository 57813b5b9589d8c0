"""Judges a machine's record: what makes figures vary, or lowers them, and the command that would change it. Pure.

Hydra changes none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.measure.verdict import OTHERS_PCT
from hydra.model import MachineRecord, format_cpus

_STEADY_GOVERNORS: Final = ("performance",)
_LEAST_TCP_BYTES: Final = 4 * 2**20
"""The kernel's own limit of a TCP buffer is 4 MiB (sending) and 6 MiB (receiving); less was set by a user."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A fact of a machine that affects figures: what the fact is, its effect, and what would change the fact."""

    fact: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}"


def judged(machine: MachineRecord, buffers: Mapping[str, int] | None = None) -> list[Judgement]:
    """What a user should know or change before measuring, the largest effects first.

    Args:
        machine: the record of the machine.
        buffers: the sizes in bytes that clients request for the buffers of their sockets, by the fact that limits them.
    """
    return [
        *_limits(machine),
        *_frequency(machine),
        *_layout(machine),
        *_memory(machine),
        *_virtual(machine),
        *_network(machine, buffers or {}),
    ]


def lines_by_host(judgements: Mapping[str, Sequence[Judgement]]) -> list[str]:
    """A line for each judgement, which begins with the names of the hosts to which it applies.

    Args:
        judgements: the judgements of each host, by its name.
    """
    hosts: dict[str, list[str]] = {}
    for name, its in judgements.items():
        for judgement in its:
            hosts.setdefault(str(judgement), []).append(name)
    return [f"{', '.join(names)}: {line}" for line, names in hosts.items()]


def judged_others(others_pct: float, by: Mapping[str, float]) -> list[Judgement]:
    """The judgement of other processes that use the CPU now; none if they use little.

    Args:
        others_pct: the CPU of all cores that they use, in %.
        by: the part of each in %, by name.
    """
    if others_pct <= OTHERS_PCT:
        return []
    names = ", ".join(f"{name} {pct:.0f} %" for name, pct in by.items() if pct >= 1)
    text = f"other processes use {others_pct:.0f} % of the CPU now ({names}), so figures vary"
    return [Judgement("others", text, "end them, or measure when they do not run")]


def _limits(machine: MachineRecord) -> Iterator[Judgement]:
    if machine.quota_cpus:
        yield Judgement(
            "quota_cpus",
            f"control groups limit this process and its children to the time of {machine.quota_cpus:g} CPUs: a process "
            "that has used it up waits up to 100 ms, which shows as latency",
            "raise the quota (cpu.max of the control group; limits of a container), or use CPUs of its own (a cpuset)",
        )
    if machine.cpus and machine.usable and len(machine.usable) < len(machine.cpus):
        yield Judgement(
            "cpuset",
            f"this process may use CPUs {format_cpus(machine.usable)} of {format_cpus(machine.cpus)}: other containers "
            "may use the same ones",
            "compare only runs with the same number of CPUs",
        )


def _frequency(machine: MachineRecord) -> Iterator[Judgement]:
    if machine.governor and set(machine.governor.split(", ")) - set(_STEADY_GOVERNORS):
        preference = f" with preference {machine.preference}" if machine.preference else ""
        yield Judgement(
            "governor",
            f"the governor {machine.governor} ({machine.driver or 'unknown driver'}){preference} lowers the frequency "
            "of cores with little load: latencies at low rates rise, and vary",
            "cpupower frequency-set --governor performance",
        )
    if machine.boost:
        no_turbo = machine.driver is not None and machine.driver.startswith("intel")
        file, value = ("intel_pstate/no_turbo", 1) if no_turbo else ("cpufreq/boost", 0)
        yield Judgement(
            "boost",
            "cores may run above their nominal frequency while few are busy and cool: the highest rates depend on "
            "temperature and on other cores",
            f"echo {value} > /sys/devices/system/cpu/{file}, if runs of hours or days apart are compared",
        )


def _layout(machine: MachineRecord) -> Iterator[Judgement]:
    if machine.has_smt:
        yield Judgement(
            "cores",
            "two CPUs share each core (SMT): two busy threads on one core are slower than on two cores",
            'pin = "apart" gives each role whole cores (docs/machine.md), or echo off > '
            "/sys/devices/system/cpu/smt/control",
        )
    if machine.nodes is not None and len(machine.nodes) > 1:
        yield Judgement(
            "nodes",
            f"memory belongs to {len(machine.nodes)} NUMA nodes: processes on different nodes reach each other's "
            "memory more slowly",
            'pin = "apart" uses one node if the roles fit into it (docs/machine.md)',
        )
    if machine.isolated:
        yield Judgement(
            "isolated",
            f"the kernel runs only pinned processes on CPUs {format_cpus(machine.isolated)}",
            f'pin a role to them: pin = "{format_cpus(machine.isolated)}" (docs/machine.md)',
        )


def _memory(machine: MachineRecord) -> Iterator[Judgement]:
    if machine.swap_used_bytes:
        used_gb = machine.swap_used_bytes / 1e9
        yield Judgement(
            "swap_used_bytes",
            f"{used_gb:.2f} GB of swap space is in use: a process that needs such a page waits for the disk",
            "end what uses the memory, then swapoff --all && swapon --all",
        )
    if machine.transparent_huge_pages == "always":
        yield Judgement(
            "transparent_huge_pages",
            "the kernel makes huge pages for every process, and may stop a process to compact memory",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )


def _virtual(machine: MachineRecord) -> Iterator[Judgement]:
    if machine.hypervisor:
        yield Judgement(
            "hypervisor",
            f"this is a virtual machine (hypervisor: {machine.hypervisor}): other guests use the same CPU, caches and "
            "network, and frequency and temperature are not known here",
            "look at host_steal_pct of the rows, and repeat rows at other times; or use a machine that is not virtual",
        )


def _network(machine: MachineRecord, buffers: Mapping[str, int]) -> Iterator[Judgement]:
    largest = [("rmem_max", "receive", machine.rmem_max), ("wmem_max", "send", machine.wmem_max)]
    for fact, way, most in largest:
        if most is not None and (size := buffers.get(fact, 0)) > most:
            yield Judgement(
                fact,
                f"clients request a {way} buffer of {size:,} bytes for their sockets, and the kernel gives at most "
                f"{most:,} (net.core.{fact})",
                f"sysctl -w net.core.{fact}={size}",
            )
    limits = [("net.ipv4.tcp_rmem", machine.tcp_rmem_max), ("net.ipv4.tcp_wmem", machine.tcp_wmem_max)]
    for key, most in limits:
        if most is not None and most < _LEAST_TCP_BYTES:
            yield Judgement(
                key.removeprefix("net.ipv4.") + "_max",
                f"a TCP connection has buffers of at most {most:,} bytes ({key}), so a far reader limits its rate",
                f'sysctl -w {key}="4096 131072 6291456"',
            )
