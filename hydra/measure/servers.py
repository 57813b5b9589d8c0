"""What servers counted in a window. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from hydra.model import Figure

COUNTER: Final = "_total"
"""Suffix of a counter, which only grows; any other figure is a gauge."""
RATE: Final = "_per_s"
"""Suffix of a counter's growth a second."""
CPU: Final = "cpu_seconds" + RATE
"""The CPU time of a server's process."""

ServerFigures = Mapping[str, Mapping[str, float]]
"""Figures by their name, by the server's name."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """What the servers told at one moment (ns, any clock that both samples share)."""

    time_ns: int
    figures: ServerFigures = field(default_factory=dict)


def between(first: ServerSample, last: ServerSample) -> dict[str, dict[str, float]]:
    """The rates of the counters (``x_total`` becomes ``x_per_s``) and the means of the gauges, by server.

    Left out are servers that one sample lacks, and counters that began anew in between.
    """
    seconds = (last.time_ns - first.time_ns) / 1e9
    found: dict[str, dict[str, float]] = {}
    for server, figures in last.figures.items():
        before = first.figures.get(server)
        if before is None or seconds <= 0:
            continue
        its = found[server] = {}
        for name, value in figures.items():
            earlier = before.get(name)
            if earlier is None:
                continue
            if not name.endswith(COUNTER):
                its[name] = (earlier + value) / 2
            elif value >= earlier:
                its[name.removesuffix(COUNTER) + RATE] = (value - earlier) / seconds
    return found


MEGABYTE: Final = 2**20
_IN: Final = ("in_bytes_per_s", "replication_in_bytes_per_s")
_OUT: Final = ("out_bytes_per_s", "replication_out_bytes_per_s")


def columns(servers: ServerFigures) -> dict[str, Figure]:
    """The columns of a row, each the mean over the servers that tell it; no columns where nobody tells anything."""
    if not servers:
        return {}
    return {
        "server_cpu_pct": _mean(servers, (CPU,), 100.0),
        "server_in_mb_s": _mean(servers, _IN, 1 / MEGABYTE),
        "server_out_mb_s": _mean(servers, _OUT, 1 / MEGABYTE),
        "server_messages_s": _mean(servers, ("messages_per_s",), 1.0),
    }


def _mean(servers: ServerFigures, names: tuple[str, ...], unit: float) -> float | None:
    told = [
        sum(its[name] for name in names if name in its)
        for its in servers.values()
        if any(name in its for name in names)
    ]
    return fmean(told) * unit if told else None


_IDLE: Final = "request_idle_seconds_per_s"


def idle(servers: ServerFigures) -> float | None:
    """The part of the time in which the busiest server's threads for requests had nothing to do; None: nobody tells."""
    told = [its[_IDLE] for its in servers.values() if _IDLE in its]
    return min(told, default=None)
