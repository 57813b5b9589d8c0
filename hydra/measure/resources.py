"""The load of hosts and of their busiest threads in a window, from counters that were read there. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hydra.measure.rates import SECOND_NS
from hydra.measure.stage_load import TcpWaits
from hydra.model import BusyThread, HostCounters, HostSample, InterfaceCounts, ThreadSample
from hydra.wire.messages import MAX_THREADS

BUSIEST: Final = 10
"""The most threads that are listed for an agent."""
_MEGABIT_BYTES: Final = 1_000_000 / 8


@dataclass(frozen=True, slots=True)
class InterfaceUse:
    """The traffic of a network interface (bytes/s) and its dropped packets, in and out.

    ``share`` is the used share of its speed in the busier direction; None: its speed is not known.
    """

    received_bytes_s: float
    sent_bytes_s: float
    drops: int
    share: float | None


@dataclass(frozen=True, slots=True)
class HostSummary:
    """A host over a step.

    Attributes:
        cores_pct: the time that each core was busy or stolen, in %.
        cpu_mean_pct: the same of all cores together, in %.
        steal_pct: the time of all cores that the hypervisor gave to other guests, in %.
        pressure: the share of the time in which some task waited for ``cpu``, ``memory`` or ``io``, without those that
            the kernel does not report.
        memory_used_max_bytes, memory_available_min_bytes: the extremes of all samples.
        interfaces: the use of each interface by name, without loopback.
        segments_retransmitted: retransmitted TCP segments as a share of all sent segments; None: none were sent.
        context_switches_s: context switches of all cores per second.
    """

    cores_pct: tuple[float, ...]
    cpu_mean_pct: float
    steal_pct: float
    pressure: Mapping[str, float]
    memory_used_max_bytes: int
    memory_available_min_bytes: int
    interfaces: Mapping[str, InterfaceUse]
    segments_retransmitted: float | None
    context_switches_s: float

    @property
    def cpu_busiest_core_pct(self) -> float:
        """The time that the busiest core was busy or stolen, in %."""
        return max(self.cores_pct, default=0.0)

    @property
    def network_share(self) -> float | None:
        """The used share of the speed of the busiest interface; None: no interface's speed is known."""
        return largest(use.share for use in self.interfaces.values())

    @property
    def drops(self) -> int:
        """The number of packets that all interfaces dropped."""
        return sum(use.drops for use in self.interfaces.values())


def largest(values: Iterable[float | None]) -> float | None:
    """The largest of the known values; None: none is known."""
    return max((value for value in values if value is not None), default=None)


def summarise(samples: Iterable[HostSample], window_ns: tuple[int, int]) -> HostSummary | None:
    """The load between the first and the last sample inside the window; None with fewer than two samples."""
    inside = sorted((s for s in samples if _within(s, window_ns)), key=lambda s: s.time_ns)
    if len(inside) < 2 or inside[-1].time_ns <= inside[0].time_ns:
        return None
    first, last = inside[0].counters, inside[-1].counters
    elapsed_ns = inside[-1].time_ns - inside[0].time_ns
    seconds = elapsed_ns / SECOND_NS
    # A core that is not in both samples has no difference.
    cores = list(zip(first.cores, last.cores, strict=False))
    steal = [_grown(a.steal_s, b.steal_s) for a, b in cores]
    busy = [_grown(a.busy_s, b.busy_s) + stolen for (a, b), stolen in zip(cores, steal, strict=True)]
    total = [_grown(a.total_s, b.total_s) for a, b in cores]
    return HostSummary(
        cores_pct=tuple(_pct(part, whole) for part, whole in zip(busy, total, strict=True)),
        cpu_mean_pct=_pct(sum(busy), sum(total)),
        steal_pct=_pct(sum(steal), sum(total)),
        pressure={
            of: min(_grown(first.pressure_us[of], us) * 1000 / elapsed_ns, 1.0)
            for of, us in last.pressure_us.items()
            if of in first.pressure_us
        },
        memory_used_max_bytes=max(s.counters.memory_total - s.counters.memory_available for s in inside),
        memory_available_min_bytes=min(s.counters.memory_available for s in inside),
        interfaces={
            name: _used(first.interfaces[name], counts, seconds)
            for name, counts in last.interfaces.items()
            if name in first.interfaces
        },
        segments_retransmitted=_retransmitted(first, last),
        context_switches_s=_grown(first.context_switches, last.context_switches) / seconds,
    )


def cpu_between(before: HostSample, last: HostSample) -> float | None:
    """The CPU use of all cores of a host between two samples, in %; None if no time has passed."""
    found = summarise((before, last), (before.time_ns, last.time_ns))
    return None if found is None else found.cpu_mean_pct


def busiest(samples: Iterable[ThreadSample], window_ns: tuple[int, int], most: int = BUSIEST) -> list[BusyThread]:
    """The threads of an agent with the highest demand for CPU in the window, highest first, with their means.

    A thread counts as idle in a sample that does not list it.
    """
    found: list[BusyThread] = []
    for of_group in _by_group(samples, window_ns):
        found += _means(of_group)
    return sorted(found, key=lambda thread: -(thread.cpu_pct + thread.wait_pct))[:most]


def used_pct(samples: Iterable[ThreadSample], window_ns: tuple[int, int]) -> float | None:
    """The CPU (% of a core) of all threads of these groups in the window; None if more ran than samples can list."""
    inside = [sample for of_group in _by_group(samples, window_ns) for sample in of_group]
    if any(len(sample.threads) >= MAX_THREADS for sample in inside):
        return None
    return sum(thread.cpu_pct for thread in busiest(inside, window_ns, most=sys.maxsize))


def flow(samples: Iterable[ThreadSample], window_ns: tuple[int, int]) -> TcpWaits | None:
    """What the outgoing connections of these groups waited for in the window; None if no group reported any."""
    spans = [
        (sample.time_ns - before.time_ns, sample.connections)
        for of_group in _by_group(samples, window_ns)
        for before, sample in pairwise(of_group)
        if sample.connections is not None
    ]
    sending = sum(ns * c.sending for ns, c in spans)
    if not sending:
        return None
    elapsed_ns = sum(ns for ns, _ in spans)
    return TcpWaits(
        connections=sending / elapsed_ns,
        reader=sum(ns * c.reader_limited for ns, c in spans) / sending,
        network=sum(ns * c.network_limited for ns, c in spans) / sending,
        unsent_bytes=sum(ns * c.unsent_bytes for ns, c in spans) / elapsed_ns,
    )


def _by_group(samples: Iterable[ThreadSample], window_ns: tuple[int, int]) -> Iterator[list[ThreadSample]]:
    """The samples of each group inside the window, oldest first."""
    groups: dict[str, list[ThreadSample]] = {}
    for sample in samples:
        if _within(sample, window_ns):
            groups.setdefault(sample.group, []).append(sample)
    for of_group in groups.values():
        yield sorted(of_group, key=lambda s: s.time_ns)


def _means(samples: Sequence[ThreadSample]) -> list[BusyThread]:
    """The mean of each thread of a group; its first sample is about the time before the window and is left out."""
    elapsed_ns = samples[-1].time_ns - samples[0].time_ns
    used: dict[tuple[int, int, str], tuple[float, float, float]] = {}
    for before, sample in pairwise(samples):
        for thread in sample.threads:
            key, part = (thread.pid, thread.tid, thread.name), (sample.time_ns - before.time_ns) / elapsed_ns
            ran, waited, stopped = used.get(key, (0.0, 0.0, 0.0))
            used[key] = (
                ran + thread.cpu_pct * part,
                waited + thread.wait_pct * part,
                stopped + thread.quota_pct * part,
            )
    return [
        BusyThread(pid, name, ran, waited, tid, stopped)
        for (pid, tid, name), (ran, waited, stopped) in used.items()
        if ran > 0
    ]


def _within(sample: HostSample | ThreadSample, window_ns: tuple[int, int]) -> bool:
    return window_ns[0] <= sample.time_ns <= window_ns[1]


def _used(first: InterfaceCounts, last: InterfaceCounts, seconds: float) -> InterfaceUse:
    received, sent = (
        _grown(a, b) / seconds for a, b in ((first.rx_bytes, last.rx_bytes), (first.tx_bytes, last.tx_bytes))
    )
    drops = _grown(first.rx_drops, last.rx_drops) + _grown(first.tx_drops, last.tx_drops)
    share = max(received, sent) / (last.speed_mbit * _MEGABIT_BYTES) if last.speed_mbit else None
    return InterfaceUse(received, sent, int(drops), share)


def _retransmitted(first: HostCounters, last: HostCounters) -> float | None:
    """The retransmitted share of segments; the kernel's count of sent ones excludes them (RFC 1213, tcpOutSegs)."""
    again = _grown(first.tcp.segments_retransmitted, last.tcp.segments_retransmitted)
    total = _grown(first.tcp.segments_out, last.tcp.segments_out) + again
    return again / total if total else None


def _grown(before: float, after: float) -> float:
    """The growth of a counter; 0 if it was reset."""
    return max(after - before, 0)


def _pct(part: float, whole: float) -> float:
    return min(100 * part / whole, 100.0) if whole > 0 else 0.0
