"""A machine: record, samples of its load, lists of CPUs (``0-3,8``), limits at which no connection can be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CPUS_AT_MOST: Final = 8192
"""The most CPUs that a Linux kernel can have (NR_CPUS)."""


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a list, in ascending order.

    Raises:
        ValueError: the text is no list of CPUs.
    """
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdigit() and int(end) < CPUS_AT_MOST for end in ends):
            raise ValueError(f"{text!r} is no list of CPUs such as 0-3,8")
        if int(ends[0]) > int(ends[1]):
            raise ValueError(f"{text!r} is no list of CPUs: {part.strip()} falls")
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """The list of these CPUs, with runs as ranges."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1][-1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


class LocalLimit(NamedTuple):
    """A limit of a host: what the host had none of, and how to raise the limit."""

    what: str
    remedy: str


_PORTS: Final = LocalLimit("no free local port", 'widen the range: sysctl -w net.ipv4.ip_local_port_range="1024 65535"')
IN_USE: Final = "EADDRINUSE"
"""A client that binds before it connects gets this error if no port is free; for a server it has another meaning."""
LOCAL_LIMITS: Final[Mapping[str, LocalLimit]] = {
    "EADDRNOTAVAIL": _PORTS,
    IN_USE: _PORTS,
    "ENFILE": LocalLimit("too few open files for all processes", "raise the limit of open files (sysctl fs.file-max)"),
    "EMFILE": LocalLimit("too few open files for a process", "raise the limit of open files (ulimit -n)"),
    "ENOBUFS": LocalLimit(
        "no memory for another socket", "raise the limits of sockets (sysctl net.ipv4.tcp_mem), or use fewer clients"
    ),
    "ENOMEM": LocalLimit("no memory left", "use fewer clients, more hosts, or a host with more memory"),
}
"""The limits by the name of the kernel's error: then no server has refused anything.

The text of ENFILE contains that of EMFILE. :mod:`hydra.client.linux_process` recognizes them.
"""


@dataclass(frozen=True, slots=True)
class InterfaceRecord:
    """A network interface: its speed in Mbit/s (None: not known) and its numbers of receive and send queues."""

    speed_mbit: int | None
    receive_queues: int
    send_queues: int


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """The facts about a machine on which figures depend. None: the kernel does not show this fact here.

    Attributes:
        kernel: the release of the kernel.
        cpu_model: the name of the CPU.
        cpus: the CPUs that are online.
        allowed: the CPUs on which the process that read the record may run.
        cpuset: the CPUs of the control group of that process.
        cores: the CPUs of each physical core.
        nodes: the CPUs of each NUMA node.
        isolated: the CPUs that the kernel's command line keeps free of processes that are not pinned to them.
        quota_cpus: the CPU time that the control groups of the process may use, in CPUs; 0: no limit.
        driver: the driver of the CPU's frequency.
        governor: how the driver selects the frequency; several if the cores differ.
        preference: the energy preference of a driver that selects the frequency itself.
        boost: whether cores may run above their nominal frequency.
        frequency_mhz: the lowest and the highest frequency that the governor may select.
        hypervisor: the name of the hypervisor, "" on bare metal; "unknown" for a virtual machine of another one.
        mitigations: the vulnerabilities of the CPU without a mitigation, and the options of the command line for it.
        clock_source: the kernel's clock.
        memory_bytes: the memory.
        swap_used_bytes: the used swap space.
        transparent_huge_pages: ``always``, ``madvise`` or ``never``.
        huge_pages: the number of reserved huge pages.
        rmem_max, wmem_max: the largest buffers of a socket that a program may set, in bytes.
        tcp_rmem_max, tcp_wmem_max: the largest buffers that the kernel gives to a TCP connection, in bytes.
        congestion_control: the congestion control of TCP.
        interfaces: the network interfaces by name, without those of containers and without the loopback.
    """

    kernel: str | None = None
    cpu_model: str | None = None
    cpus: tuple[int, ...] | None = None
    allowed: tuple[int, ...] | None = None
    cpuset: tuple[int, ...] | None = None
    cores: tuple[tuple[int, ...], ...] | None = None
    nodes: tuple[tuple[int, ...], ...] | None = None
    isolated: tuple[int, ...] | None = None
    quota_cpus: float | None = None
    driver: str | None = None
    governor: str | None = None
    preference: str | None = None
    boost: bool | None = None
    frequency_mhz: tuple[int, int] | None = None
    hypervisor: str | None = None
    mitigations: str | None = None
    clock_source: str | None = None
    memory_bytes: int | None = None
    swap_used_bytes: int | None = None
    transparent_huge_pages: str | None = None
    huge_pages: int | None = None
    rmem_max: int | None = None
    wmem_max: int | None = None
    tcp_rmem_max: int | None = None
    tcp_wmem_max: int | None = None
    congestion_control: str | None = None
    interfaces: Mapping[str, InterfaceRecord] = field(default_factory=dict)

    @property
    def has_smt(self) -> bool | None:
        """Whether two CPUs share a physical core."""
        return None if self.cores is None else any(len(core) > 1 for core in self.cores)

    @property
    def usable(self) -> tuple[int, ...] | None:
        """The CPUs to which a process of the same control group may be pinned."""
        if self.cpus is None or self.cpuset is None:
            return self.cpus if self.cpuset is None else self.cpuset
        return tuple(cpu for cpu in self.cpus if cpu in self.cpuset)


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact of a machine's record that changed during a run, with its text before and after."""

    fact: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class MachineActivity:
    """What happened on a host during a step apart from the run.

    Attributes:
        seconds: the length of the observation, which includes the window.
        cpus: the number of CPUs that are online.
        others: CPU seconds of processes outside the run, by their name; None: not known here.
        before_s: the length of the time since the observation of the step before, or since the start of the command.
        before: CPU seconds of processes outside the run in that time, as ``others``.
        frequencies_mhz: the frequency of the fastest core at each reading; empty if the kernel does not show it.
        busiest_core_pct: the use of the busiest core between the reading before and each of these readings, in %; 0 for
            the first one.
        throttled: how often the CPU was slowed down, because it was too hot or the CPU quota was used up; None: not
            known here.
        swapped_bytes: by how much the used swap space grew; 0 if that is not known.
        changed: the facts of the machine's record that changed since the run began.
        pinned: the CPUs on which the groups of each role may run.
    """

    seconds: float
    cpus: int
    others: Mapping[str, float] | None
    before_s: float = 0.0
    before: Mapping[str, float] | None = None
    frequencies_mhz: tuple[float, ...] = ()
    busiest_core_pct: tuple[float, ...] = ()
    throttled: int | None = None
    swapped_bytes: int = 0
    changed: tuple[FactChange, ...] = ()
    pinned: Mapping[str, str] = field(default_factory=dict)


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
