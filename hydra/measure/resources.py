"""What the host did during a step: totals a few times a second, never a scan over thousands of processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import psutil

from hydra.measure.rates import SECOND_NS


@dataclass(frozen=True, slots=True)
class HostSample:
    """One reading of a host: CPU since the last reading, the rest as it stands or counts up since boot.

    ``time_ns`` is on the step's clock; ``cpu_pct`` is per core.
    """

    time_ns: int
    cpu_pct: tuple[float, ...]
    memory_used_bytes: int
    memory_available_bytes: int
    net_sent_bytes: int
    net_received_bytes: int
    context_switches: int


@dataclass(frozen=True, slots=True)
class HostSummary:
    """A host over a step; rates are per second."""

    cpu_mean_pct: float
    cpu_busiest_core_pct: float
    memory_used_max_bytes: int
    memory_available_min_bytes: int
    net_sent_bytes_s: float
    net_received_bytes_s: float
    context_switches_s: float


class HostSampler:
    """Reads this host's totals whenever the runner asks."""

    def __init__(self) -> None:
        self._cpu = _cpu_times()

    def sample(self, now_ns: int) -> HostSample:
        """The totals now, and the CPU use since the last call."""
        before, self._cpu = self._cpu, _cpu_times()
        memory = psutil.virtual_memory()
        net = psutil.net_io_counters()
        return HostSample(
            time_ns=now_ns,
            cpu_pct=tuple(_busy_pct(b, a) for b, a in zip(before, self._cpu, strict=False)),
            memory_used_bytes=memory.total - memory.available,
            memory_available_bytes=memory.available,
            # A host without any interface has no counters at all.
            net_sent_bytes=net.bytes_sent if net else 0,
            net_received_bytes=net.bytes_recv if net else 0,
            context_switches=psutil.cpu_stats().ctx_switches,
        )


def _cpu_times() -> list[tuple[float, float]]:
    """(busy, total) seconds of every core; guest time is part of user time already."""
    result = []
    for t in psutil.cpu_times(percpu=True):
        total = sum(t) - getattr(t, "guest", 0.0) - getattr(t, "guest_nice", 0.0)
        result.append((total - t.idle - getattr(t, "iowait", 0.0), total))
    return result


def _busy_pct(before: tuple[float, float], after: tuple[float, float]) -> float:
    elapsed = after[1] - before[1]
    return min(max(100 * (after[0] - before[0]) / elapsed, 0.0), 100.0) if elapsed > 0 else 0.0


def summarise(samples: Sequence[HostSample], window_ns: tuple[int, int]) -> HostSummary | None:
    """What the samples inside the window say; None with fewer than two of them.

    The first sample's CPU belongs to the time before the window and is left out.
    """
    inside = [s for s in samples if window_ns[0] <= s.time_ns <= window_ns[1]]
    if len(inside) < 2 or inside[-1].time_ns <= inside[0].time_ns:
        return None
    first, last = inside[0], inside[-1]
    seconds = (last.time_ns - first.time_ns) / SECOND_NS
    cores = list(zip(*(s.cpu_pct for s in inside[1:]), strict=False))
    means = [fmean(core) for core in cores]
    return HostSummary(
        cpu_mean_pct=fmean(means) if means else 0.0,
        cpu_busiest_core_pct=max(means, default=0.0),
        memory_used_max_bytes=max(s.memory_used_bytes for s in inside),
        memory_available_min_bytes=min(s.memory_available_bytes for s in inside),
        net_sent_bytes_s=(last.net_sent_bytes - first.net_sent_bytes) / seconds,
        net_received_bytes_s=(last.net_received_bytes - first.net_received_bytes) / seconds,
        context_switches_s=(last.context_switches - first.context_switches) / seconds,
    )
