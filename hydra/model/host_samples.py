"""Samples of a host during a step: its counters, and the busiest threads of the measured processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class CoreTimes(NamedTuple):
    """Seconds of a core since boot: busy, stolen by the hypervisor for other guests, and in total."""

    busy_s: float
    steal_s: float
    total_s: float


class InterfaceCounts(NamedTuple):
    """Counts of a network interface since it came up; its speed in Mbit/s, None if unknown."""

    rx_bytes: int
    tx_bytes: int
    rx_drops: int
    tx_drops: int
    speed_mbit: int | None


class TcpCounts(NamedTuple):
    """TCP segments that a network namespace has sent, and retransmitted, since boot."""

    segments_out: int
    segments_retransmitted: int


@dataclass(frozen=True, slots=True)
class HostCounters:
    """The counters of a host since boot.

    Attributes:
        cores: the times of each core, in order.
        pressure_us: the time in µs that some task waited for "cpu", "memory" or "io" (the kernel's pressure stall
            information), if the kernel reports it.
        memory_total, memory_available: memory in bytes.
        interfaces: counts by name of the interfaces of the sampler's network namespace, except loopback.
        tcp: counts of the sampler's network namespace.
        context_switches: number of context switches of all cores.
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
    """A thread that was among the busiest since the previous sample.

    Attributes:
        pid: the id of its process.
        name: the name of the thread.
        cpu_pct: the share of the time that it ran, in % of a core.
        wait_pct: the share of the time that it was ready but waited for a core, or for its cgroup's CPU quota. In the
            rest of the time it slept.
        tid: the id of the thread, which is the process id for the first thread.
    """

    pid: int
    name: str
    cpu_pct: float
    wait_pct: float = 0.0
    tid: int = 0


@dataclass(frozen=True, slots=True)
class TcpConnections:
    """The TCP connections of a group's processes that sent data since the previous sample.

    Attributes:
        sending: number of these connections.
        reader_limited: number of them that waited for the other end to read for at least half of the time, because its
            receive window was closed.
        network_limited: number of them that had data in flight for at least half of the time, have more data that may
            not be sent yet, and did not wait for a reader: the network is full (congestion window, or a queue before
                the link).
        unsent_bytes: bytes that wait in all connections now.
        unread_bytes: bytes that have arrived and were not read yet.
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
    """What a group's processes did since the previous sample; ``time_ns`` is on the step's clock.

    ``threads`` are the busiest threads. ``role`` is "publisher", "subscriber" or "server".
    ``connections`` is None if they could not be read.
    """

    time_ns: int
    group: str
    threads: list[BusyThread] = field(default_factory=list)
    role: str = ""
    connections: TcpConnections | None = None
