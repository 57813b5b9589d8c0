"""A machine: the facts on which figures depend, and what happened on it during a step apart from the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
