"""Tables with further data of each step: servers, hosts, threads and clocks. Each table is collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from hydra.events.value_formatting import UNKNOWN, describe
from hydra.jupyter.blocks import figure, html, scrolling
from hydra.jupyter.run_data import RunData
from hydra.measure.column import Column
from hydra.measure.resources import HostSummary
from hydra.report.table import plain

_OF_BYTES: Final = "_bytes"
_MOST_LINES: Final = 400
"""The maximum number of lines of a table, because a long search would make a page of megabytes."""
_NAMED: Final = 3
"""The maximum number of agents of a host that are named."""


def details(run: RunData) -> Iterator[str]:
    """The tables; "" for a table without data."""
    yield _servers(run)
    yield _hosts(run)
    yield _threads(run)
    yield _clocks(run)


def _servers(run: RunData) -> str:
    """The table of the servers' figures in each step, collapsed; "" if there are none."""
    if not run.servers:
        return ""
    names = list(dict.fromkeys(n for figures in run.servers.values() for its in figures.values() for n in its))
    lines = (
        (epoch, server, *(_server_figure(name, its.get(name)) for name in names))
        for epoch, figures in run.servers.items()
        for server, its in figures.items()
    )
    return _by_step(run, "Each server in each step", ("Server", *map(_unit_named, names)), lines)


def _hosts(run: RunData) -> str:
    """The table of the hosts' figures in each step, collapsed; "" if there are none."""
    if not run.hosts:
        return ""
    lines = (
        (epoch, host, _named(agent for agent, its in run.host_of[epoch].items() if its == host), *_host(summary))
        for epoch, of_hosts in run.hosts.items()
        for host, summary in of_hosts.items()
    )
    return _by_step(run, "Each host in each step", ("Host", "Agents", *_OF_HOST), lines)


_OF_HOST: Final = (
    *("CPU, %", "busiest core, %", "CPU steal, %", "waiting for CPU, %", "for memory, %", "for I/O, %"),
    *("memory used at most, GiB", "left at least, GiB", "busiest interface", "in, MiB/s", "out, MiB/s"),
    *("busiest link, % of its speed", "dropped packets", "retransmitted TCP segments, %"),
)


def _host(s: HostSummary) -> Iterator[str]:
    """The figures of ``_OF_HOST``; the busiest interface is the one with most bytes, even if its speed is unknown."""
    yield from (f"{pct:.1f}" for pct in (s.cpu_mean_pct, s.cpu_busiest_core_pct, s.steal_pct))
    yield from (_percent(s.pressure.get(of)) for of in ("cpu", "memory", "io"))
    yield from (f"{size / 2**30:,.2f}" for size in (s.memory_used_max_bytes, s.memory_available_min_bytes))
    if s.interfaces:
        name, use = max(s.interfaces.items(), key=lambda item: item[1].received_bytes_s + item[1].sent_bytes_s)
        yield from (name, f"{use.received_bytes_s / 2**20:,.2f}", f"{use.sent_bytes_s / 2**20:,.2f}")
    else:
        yield from (UNKNOWN,) * 3
    yield from (_percent(s.network_share), f"{s.drops:,}", _percent(s.segments_retransmitted, 3))


def _percent(share: float | None, digits: int = 1) -> str:
    return UNKNOWN if share is None else f"{100 * share:.{digits}f}"


def _named(agents: Iterable[str]) -> str:
    every = list(agents)
    others = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return (", ".join(every[:_NAMED]) or UNKNOWN) + others


def _threads(run: RunData) -> str:
    """The table of the busiest threads of publishers and servers in each step, collapsed; "" if there are none."""
    if not run.threads:
        return ""
    lines = (
        (epoch, agent, thread.name, str(thread.pid), f"{thread.cpu_pct:.1f}")
        for epoch, of_agents in run.threads.items()
        for agent, threads in of_agents.items()
        for thread in threads
    )
    heads = ("Agent", "Thread", "of process", "CPU, % of a core")
    return _by_step(run, "Busiest threads of publishers and servers in each step", heads, lines)


def _clocks(run: RunData) -> str:
    """The table of the clocks of agents on other hosts than the controller's, collapsed; "" if there are none."""
    if not run.clocks:
        return ""
    heads = ("Agent", "offset, s", "rate, ppm", "bound, µs", "shortest round trip, µs", "jumps")
    lines = (
        (
            *(epoch, agent, f"{clock.offset_ns / 1e9:,.6f}", f"{clock.rate_ppb / 1e3:+,.3f}"),
            *(f"{clock.error_ns / 1e3:,.1f}", f"{clock.rtt_min_ns / 1e3:,.1f}", f"{clock.jumps:,}"),
        )
        for epoch, of_agents in run.clocks.items()
        for agent, clock in of_agents.items()
        if not clock.same_host
    )
    return _by_step(run, "Clock of each agent in each step, relative to the controller's clock", heads, lines)


def _by_step(run: RunData, title: str, heads: Iterable[str], lines: Iterable[Sequence[Any]]) -> str:
    """A collapsed table; each line begins with the epoch of a step, followed by texts."""
    plans = {result.epoch: describe(result.plan, run.scenario.sweep.varied) for result in run.results}
    lines = list(lines)
    shown = plain(("Step", *heads), ((plans[epoch], *texts) for epoch, *texts in lines[:_MOST_LINES]))
    text = scrolling(html(shown, "rows every"))
    if len(lines) > _MOST_LINES:
        text += f'<p class="below">The first {_MOST_LINES} of {len(lines):,} lines; run.db has all of them.</p>'
    return f"<details><summary>{escape(title)}</summary>{text}</details>"


def _unit_named(name: str) -> str:
    """A figure's heading: ``in, MiB/s`` for ``in_bytes_per_s``, ``cpu, % of the time`` for ``cpu_seconds_per_s``."""
    what, rate, _ = name.partition("_per_s")
    per = "/s" if rate else ""
    if what.endswith("_seconds") and rate:
        return f"{what.removesuffix('_seconds')}, % of the time"
    if what.endswith(_OF_BYTES):
        return f"{what.removesuffix(_OF_BYTES).replace('_', ' ')}, MiB{per}"
    return f"{what.replace('_', ' ')}{per}"


def _server_figure(name: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    what = name.removesuffix("_per_s")
    unit = 2**20 if what.endswith(_OF_BYTES) else 0.01 if what.endswith("_seconds") else 1
    return figure(Column(name), value / unit)
