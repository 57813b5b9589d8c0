"""What this host's counters say: totals that the kernel keeps anyway, never a scan over its processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import psutil

from hydra.model import CoreTimes, HostCounters, InterfaceCounts, TcpCounts

_PROC: Final = Path("/proc")
_LOOPBACK: Final = "lo"
_HELD_FOR_LOST: Final = ("TCPFastRetrans", "TCPSlowStartRetrans")
"""Of RetransSegs, without tail loss probes: of these, processes that have to wait for a core send hundreds a second."""
_SOME: Final = re.compile(r"^some .*\btotal=(\d+)$", re.MULTILINE)


class HostSampler:
    """Reads the counters of this host, and of this process's network namespace, whenever it is asked.

    Args:
        proc: where the kernel tells what psutil does not.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        # Asking a driver takes longer than all else: only when an interface has come or gone.
        self._speeds: dict[str, int | None] = {}

    def read(self) -> HostCounters:
        """The counters as they stand."""
        memory = psutil.virtual_memory()
        return HostCounters(
            cores=_cores(),
            pressure_us=self._pressure_us(),
            memory_total=memory.total,
            memory_available=memory.available,
            interfaces=self._interfaces(),
            tcp=self._tcp(),
            context_switches=psutil.cpu_stats().ctx_switches,
        )

    def _pressure_us(self) -> dict[str, int]:
        found = {}
        for what in ("cpu", "io", "memory"):
            try:
                some = _SOME.search((self._proc / "pressure" / what).read_text())
            except OSError:
                # The kernel was built without it, or it is switched off.
                continue
            if some is not None:
                found[what] = int(some[1])
        return found

    def _interfaces(self) -> dict[str, InterfaceCounts]:
        counts = psutil.net_io_counters(pernic=True, nowrap=False)
        names = sorted(counts.keys() - {_LOOPBACK})
        if names != list(self._speeds):
            stats = psutil.net_if_stats()
            self._speeds = {name: (stats[name].speed or None) if name in stats else None for name in names}
        return {
            name: InterfaceCounts(c.bytes_recv, c.bytes_sent, c.dropin, c.dropout, self._speeds[name])
            for name in names
            for c in (counts[name],)
        }

    def _tcp(self) -> TcpCounts:
        sent = self._counts("snmp", "Tcp:")
        again = self._counts("netstat", "TcpExt:")
        return TcpCounts(sent.get("OutSegs", 0), sum(again.get(name, 0) for name in _HELD_FOR_LOST))

    def _counts(self, file: str, of: str) -> dict[str, int]:
        """Two lines of the file begin with ``of``: the names of its columns, and their values."""
        try:
            lines = (self._proc / "self" / "net" / file).read_text().splitlines()
        except OSError:
            return {}
        rows = [line.split()[1:] for line in lines if line.startswith(of)]
        return {name: int(value) for name, value in zip(*rows, strict=False)} if len(rows) == 2 else {}


def _cores() -> list[CoreTimes]:
    cores = []
    for t in psutil.cpu_times(percpu=True):
        # Guests' time is part of the users' already.
        total = sum(t) - t.guest - t.guest_nice
        cores.append(CoreTimes(*(round(s, 3) for s in (total - t.idle - t.iowait - t.steal, t.steal, total))))
    return cores
