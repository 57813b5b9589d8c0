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
    """The cumulative counters of a host since boot.

    Attributes:
        cores: of each core of ``/proc/stat`` in order, seconds: all but ``idle``, ``iowait`` and ``steal``; ``steal``;
            all. (``guest`` and ``guest_nice`` are part of ``user`` and ``nice``, and not added.)
        pressure_us: ``total`` of the line ``some`` of ``/proc/pressure/cpu``, ``io`` and ``memory``, µs; without those
            that the kernel does not have.
        memory_total, memory_available: ``MemTotal`` and ``MemAvailable`` of ``/proc/meminfo``, bytes.
        interfaces: by name, without ``lo``, of ``/proc/self/net/dev``: bytes received, bytes sent, packets dropped in
            receiving, packets dropped in sending; the driver's speed in Mbit/s (``SIOCETHTOOL``; sysfs may show another
            network namespace), null if unknown.
        tcp: ``OutSegs`` of ``/proc/self/net/snmp``; ``TCPFastRetrans`` + ``TCPSlowStartRetrans`` of
            ``/proc/self/net/netstat``: segments retransmitted as lost, without tail loss probes; 0 if missing.
        context_switches: ``ctxt`` of ``/proc/stat``.
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

    The shares of that time, in % of a core, are from ``/proc/PID/task/TID/schedstat``, its first two numbers; without
    such a file, the CPU in ``stat`` and 0.

    Attributes:
        pid: of the process.
        name: at most 256 characters.
        cpu_pct: the part of the time in which the thread ran.
        wait_pct: the part of the time in which it was ready and waited for a core or its cgroup's quota. In the rest
            of the time it slept.
        tid: of the thread, which is the process id for the first thread.
        quota_pct: the part of the time in which its cgroup, or one above it, had used up its quota (``cpu.stat``), so
            that its threads could not run; 100 at most, although the kernel adds up the times of all cores.
    """

    pid: int
    name: str
    cpu_pct: float
    wait_pct: float = 0.0
    tid: int = 0
    quota_pct: float = 0.0


@dataclass(frozen=True, slots=True)
class TcpConnections:
    """The TCP connections of a group's processes since the previous sample.

    Attributes:
        sending: how many have sent something or have something unsent.
        reader_limited: of those, whose ``tcpi_rwnd_limited`` grew by half of the time or more: they waited for the
            other end to read.
        network_limited: of the others, those with something unsent whose ``tcpi_busy_time`` without
            ``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` grew by half of the time or more: the network is full
            (congestion window, or a queue before the link).
        unsent_bytes: ``tcpi_notsent_bytes`` of all.
        unread_bytes: bytes received and not read, of all.
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
