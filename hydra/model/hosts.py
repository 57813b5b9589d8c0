"""What a host did while a step was measured: its counters, and the busiest threads of what was measured on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class CoreTimes(NamedTuple):
    """Seconds that a core has spent since boot: at work, given to others by the hypervisor, and in all."""

    busy_s: float
    steal_s: float
    total_s: float


class InterfaceCounts(NamedTuple):
    """What a network interface has carried and dropped since it came up; its speed in Mbit/s where it is known."""

    rx_bytes: int
    tx_bytes: int
    rx_drops: int
    tx_drops: int
    speed_mbit: int | None


class TcpCounts(NamedTuple):
    """TCP segments that a network namespace has sent since boot, and those that it has sent once more as lost."""

    segments_out: int
    segments_retransmitted: int


@dataclass(frozen=True, slots=True)
class HostCounters:
    """The counters of a host as they stand; they begin at boot.

    Attributes:
        cores: of each core, in order.
        pressure_us: for how many µs some task waited for "cpu", "memory" or "io" (the kernel's pressure stall
            information); without those that the kernel does not tell.
        memory_total, memory_available: bytes.
        interfaces: by name, those of the sampler's network namespace but loopback.
        tcp: of the sampler's network namespace.
        context_switches: of all cores.
    """

    cores: list[CoreTimes]
    pressure_us: dict[str, int]
    memory_total: int
    memory_available: int
    interfaces: dict[str, InterfaceCounts]
    tcp: TcpCounts
    context_switches: int


@dataclass(frozen=True, slots=True)
class BusyThread:
    """A thread that was among the busiest: its process, its name, and its CPU since the sample before, % of a core."""

    pid: int
    name: str
    cpu_pct: float


@dataclass(frozen=True, slots=True)
class HostSample:
    """The counters of a host at a time of the step's clock (ns)."""

    time_ns: int
    counters: HostCounters


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """The busiest threads of a group's processes since the sample before; `time_ns` is on the step's clock."""

    time_ns: int
    group: str
    threads: list[BusyThread] = field(default_factory=list)
