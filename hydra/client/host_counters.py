"""What this host's counters say: totals that the kernel keeps anyway, never a scan over its processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
        self._pressure = {what: proc / "pressure" / what for what in ("cpu", "io", "memory")}
        self._snmp, self._netstat = (proc / "self" / "net" / file for file in ("snmp", "netstat"))
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
        for what, path in self._pressure.items():
            try:
                some = _SOME.search(_read(path))
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
        return TcpCounts(_sum(self._snmp, "Tcp:", ("OutSegs",)), _sum(self._netstat, "TcpExt:", _HELD_FOR_LOST))


def _read(path: Path) -> str:
    """The text of a file of the kernel's, which is read several times a second: without what other files need."""
    with path.open("rb", buffering=0) as file:
        return file.read().decode()


def _sum(path: Path, of: str, names: Sequence[str]) -> int:
    """The sum of these columns, 0 where there are none: two lines begin with ``of``, the names and the values."""
    try:
        rows = [line.split() for line in _read(path).splitlines() if line.startswith(of)]
    except OSError:
        return 0
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        return 0
    return sum(int(rows[1][rows[0].index(name)]) for name in names if name in rows[0])


def _cores() -> list[CoreTimes]:
    cores = []
    for t in psutil.cpu_times(percpu=True):
        # Guests' time is part of the users' already.
        total = sum(t) - t.guest - t.guest_nice
        cores.append(CoreTimes(*(round(s, 3) for s in (total - t.idle - t.iowait - t.steal, t.steal, total))))
    return cores
