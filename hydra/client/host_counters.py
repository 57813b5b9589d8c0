"""Counters of the present host: totals that the kernel keeps anyway, without a scan over processes."""

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
"""Counters of retransmissions in RetransSegs without tail loss probes, which a lack of CPU causes by the hundred."""
_SOME: Final = re.compile(r"^some .*\btotal=(\d+)$", re.MULTILINE)


class HostSampler:
    """Reads the counters of this host and of this process's network namespace.

    Args:
        proc: the folder of the kernel's files, for counters that psutil does not have.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._pressure = {what: proc / "pressure" / what for what in ("cpu", "io", "memory")}
        self._snmp, self._netstat = (proc / "self" / "net" / file for file in ("snmp", "netstat"))
        # The drivers' speeds take longest to read: only when interfaces have appeared or disappeared.
        self._speeds: dict[str, int | None] = {}

    def read(self) -> HostCounters:
        """The present counters."""
        memory = psutil.virtual_memory()
        return HostCounters(
            cores=_cores(),
            pressure_us=self._pressure_us(),
            memory_total=memory.total,
            memory_available=memory.available,
            interfaces=self._interfaces(),
            tcp=TcpCounts(_sum(self._snmp, "Tcp:", ("OutSegs",)), _sum(self._netstat, "TcpExt:", _HELD_FOR_LOST)),
            context_switches=psutil.cpu_stats().ctx_switches,
        )

    def _pressure_us(self) -> dict[str, int]:
        found = {}
        for what, path in self._pressure.items():
            try:
                some = _SOME.search(_read(path))
            except OSError:
                # The kernel was built without pressure counters, or they are switched off.
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


def _read(path: Path) -> str:
    """The text of a kernel file; it is read several times a second, so without buffering."""
    with path.open("rb", buffering=0) as file:
        return file.read().decode()


def _sum(path: Path, of: str, names: Sequence[str]) -> int:
    """The sum of these columns, 0 if there are none. Two lines begin with ``of``: the names and the values."""
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
        # The users' time includes the guests' time.
        total = sum(t) - t.guest - t.guest_nice
        cores.append(CoreTimes(*(round(s, 3) for s in (total - t.idle - t.iowait - t.steal, t.steal, total))))
    return cores
