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
    """A thread that was among the busiest since the sample before.

    Attributes:
        pid: its process.
        name: its own.
        cpu_pct: the part of the time that it ran, % of a core.
        wait_pct: the part in which it could have run and had to wait: for a core, or until its cgroup's quota of CPU
            let it on. What is left of 100 it slept.
        tid: its number, that of its process for the first thread; 0: not known (runs of earlier versions).
    """

    pid: int
    name: str
    cpu_pct: float
    wait_pct: float = 0.0
    tid: int = 0


@dataclass(frozen=True, slots=True)
class TcpConnections:
    """The TCP connections of a group's processes that carried something out since the sample before.

    Attributes:
        sending: how many did.
        reader_limited: of those, how many waited for the other end to read for at least half of the time: its receive
            window was shut.
        network_limited: how many had data in flight for at least half of the time, have more that may not be sent yet,
            and did not wait for a reader: the way is full (congestion window, or a queue in front of the link).
        unsent_bytes: what waits in all of them now.
        unread_bytes: what has come in and was not read yet.
    """

    sending: int
    reader_limited: int
    network_limited: int
    unsent_bytes: int
    unread_bytes: int


@dataclass(frozen=True, slots=True)
class HostSample:
    """The counters of a host at a time of the step's clock (ns)."""

    time_ns: int
    counters: HostCounters


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """What a group's processes did since the sample before; ``time_ns`` is on the step's clock.

    ``threads`` are the busiest ones, ``role`` is "publisher", "subscriber" or "server" ("": not known, of earlier
    versions), ``connections`` None where nobody could look.
    """

    time_ns: int
    group: str
    threads: list[BusyThread] = field(default_factory=list)
    role: str = ""
    connections: TcpConnections | None = None
