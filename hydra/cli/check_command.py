"""``hydra check``: whether a scenario fits this machine, or a cluster elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from hydra.config.cluster import load_cluster
from hydra.config.file_locations import scenario_path
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE
from hydra.model import Agent, ClusterSpec
from hydra.options.engine_choice import choose

Json = Mapping[str, object]


def check_scenario(
    scenario: str, replaced: Mapping[str, object], flags: Mapping[str, Any], *, named: bool, as_json: bool
) -> int:
    """Prints what a scenario needs and what is missing; the exit code.

    Where groups run on this machine, it is this machine's limits. Elsewhere it is what placement says of the cluster's
    agents as they are now; nothing is said of this machine then, which has the controller only, or nothing at all.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: ``master``, ``config`` and those of the engines.
        named: whether somebody named the scenario.
        as_json: whether JSON is printed in place of text.

    Raises:
        ConfigError: the cluster file, or the scenario, cannot be used.
        UsageError, ClusterError: the master is none, or does not answer.
    """
    resolved, cluster = resolve(scenario, replaced), load_cluster(flags["config"])
    loaded = resolved.scenario
    engine = choose(flags["master"], flags["config"], flags)
    agents = engine.agents(cluster.agents)
    # What is refused so far is refused within the time that these take to import.
    from hydra.config.shortages import checked_line
    from hydra.report.table import fitted, terminal_width
    from hydra.run.launcher import system_for

    is_local = engine.spec.is_local
    system_for(resolved, is_local=is_local).program("subscriber")
    found = _here(resolved, cluster) if is_local else _elsewhere(resolved, cluster, agents)
    path = scenario_path(scenario)
    if not as_json:
        width = terminal_width()
        tables = "\n\n".join(found.tables(width))
        click.echo(f"{fitted(checked_line(loaded, scenario, path, named=named), width)}\n\n{tables}")
        for line in found.lines:
            click.echo(fitted(line, width))
    notes = []
    # An engine may take its time, or fail: what is known is shown by then.
    for line in engine.spec.check(engine.master, engine.settings) if engine.spec.check else ():
        notes.append(line)
        if not as_json:
            click.echo(fitted(line, width))
    if as_json:
        about = {"scenario": scenario, "file": str(path), "system": loaded.system, "client": loaded.client}
        told = {"fits": found.fits, "rows": found.rows, "agents": found.agents, "notes": notes}
        click.echo(json.dumps({**about, **told}, indent=2))
    return EXIT_GOOD if found.fits else EXIT_INCOMPLETE


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of a scenario's rows.

    Attributes:
        fits: whether all of them do.
        tables: for people, by the width of their terminal.
        lines: why some rows do not fit.
        rows: an object for each row, for JSON.
        agents: likewise for each agent; None: it is this machine that was looked at.
    """

    fits: bool
    tables: Callable[[int | None], Sequence[str]]
    lines: Sequence[str]
    rows: Sequence[Json]
    agents: Sequence[Json] | None


def _here(resolved: ResolvedScenario, cluster: ClusterSpec) -> _Found:
    """Whether every row fits this machine, and each shortage."""
    from hydra.client.linux_process import raise_open_files
    from hydra.config.machine_limits import read_limits
    from hydra.config.shortages import check_all, needs_line
    from hydra.report.table import tabled

    raise_open_files()
    rows = check_all(resolved, cluster, read_limits())
    objects: list[Json] = [
        {
            "clients": row.clients,
            "publishers": row.publishers,
            "fits": row.fits,
            "processes": row.needs.processes,
            "threads": row.needs.threads,
            "open_files": row.needs.files,
            "local_ports": row.needs.ports,
            "memory_bytes": row.needs.memory_bytes,
            "disk_bytes": row.needs.disk_bytes,
            "missing": [
                _missing(f"{s.what}: {s.has}, needs {s.needed}", s.remedy, grave=s.grave) for s in row.shortages
            ],
        }
        for row in rows
    ]
    return _Found(
        fits=all(row.fits for row in rows),
        tables=lambda width: [tabled([needs_line(row) for row in rows], width, floats=".1f")],
        # The largest row asks for the most: its lines mend the others too.
        lines=[str(shortage) for shortage in rows[-1].shortages],
        rows=objects,
        agents=None,
    )


def _elsewhere(resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent]) -> _Found:
    """Whether every row can be placed on a cluster's agents, and why some cannot."""
    from hydra.cli.cluster_operations import agent_rows, alike, left_out_line
    from hydra.report.table import fitted, tabled
    from hydra.run.placement_preview import placed_line, rows_on

    rows, there = rows_on(resolved, cluster, agents), agent_rows(agents, resolved)
    left_out = alike(agents, resolved.scenario)
    shown, told = agent_rows(agents, resolved, left_out), [left_out_line(left_out)] if left_out else []
    refused = [f"{row.clients} clients: {row.refusal}" for row in rows if row.refusal is not None]
    objects: list[Json] = [
        {
            "clients": row.clients,
            "publishers": row.publishers,
            "fits": row.fits,
            "groups": row.groups,
            "on_agents": row.on_agents,
            "cpus": row.cpus,
            "memory_mb": row.memory_mb,
            "missing": [_missing(row.refusal.what, row.refusal.remedy, grave=True)] if row.refusal else [],
        }
        for row in rows
    ]
    return _Found(
        fits=not refused,
        tables=lambda width: [
            tabled(shown, width),
            *(fitted(line, width) for line in told),
            tabled([placed_line(row) for row in rows], width, floats=".1f"),
        ],
        # Those between meet what the smallest and the largest meet.
        lines=[*refused[:1], *refused[1:][-1:]],
        rows=objects,
        agents=there,
    )


def _missing(text: str, remedy: str, *, grave: bool) -> Json:
    return {"text": text, "remedy": remedy, "grave": grave}
