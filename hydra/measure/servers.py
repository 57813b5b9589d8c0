"""What servers counted in a window. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

COUNTER: Final = "_total"
"""Suffix of a counter, which only grows; any other figure is a gauge."""
RATE: Final = "_per_s"
"""Suffix of a counter's growth a second."""

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
