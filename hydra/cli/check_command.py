"""``hydra check``: whether a scenario fits this machine or a cluster, and what on this machine changes its figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from hydra.cli.chosen_clients import with_default_client
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import scenario_path
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE
from hydra.events.value_formatting import counted
from hydra.model import Agent, ClusterSpec
from hydra.options.engine_choice import choose

if TYPE_CHECKING:
    from hydra.cli.machine_check import CheckedMachine

Json = Mapping[str, object]


def check_scenario(
    scenario: str, replaced: Mapping[str, object], flags: Mapping[str, Any], *, named: bool, as_json: bool
) -> int:
    """Prints what a scenario needs and what is missing, and returns the exit code.

    If the groups run on this machine, the scenario is compared with the machine's limits, and the machine is judged
    (:mod:`hydra.cli.machine_check`). Otherwise the current agents of the cluster are checked by placement, and their
    hosts are judged if the engine can read their files. This machine, which has at most the controller, is not judged.

    Args:
        scenario: the scenario's name or path.
        replaced: values that the command replaces in the scenario, by dotted key.
        flags: ``master``, ``config`` and the flags of the engines.
        named: whether the user named the scenario.
        as_json: whether JSON is printed in place of text.

    Raises:
        ConfigError: the cluster file, or the scenario, cannot be used.
        UsageError, ClusterError: the master is not valid, or does not answer; or a pin is not possible.
    """
    resolved, cluster = resolve(scenario, replaced), load_cluster(flags["config"])
    engine = choose(flags["master"], flags["config"], flags)
    resolved, _, note = with_default_client(scenario, resolved, replaced, engine)
    loaded = resolved.scenario
    agents = engine.agents(cluster.agents)
    # The imports below are slow: errors that were found so far do not wait for them.
    from hydra.cli.machine_check import MachineCheck, checked_hosts
    from hydra.config.machine_judgement import lines_by_host
    from hydra.config.shortages import checked_line
    from hydra.report.table import fitted, terminal_width
    from hydra.run.launcher import system_for
    from hydra.run.own_machine import pinned_scenario
    from hydra.run.placement_preview import without_unknown

    resolved, left_out = without_unknown(resolved, agents)
    is_local = engine.spec.is_local
    machine_check = MachineCheck() if is_local else None
    system_for(resolved, is_local=is_local).program("subscriber")
    if machine_check is not None:
        pinned_scenario(resolved, machine_check.record)
    found = _here(resolved, cluster) if is_local else _elsewhere(resolved, cluster, agents)
    path = scenario_path(scenario)
    if not as_json:
        width = terminal_width()
        tables = "\n\n".join(found.tables(width))
        click.echo(f"{fitted(checked_line(loaded, scenario, path, named=named), width)}\n\n{tables}")
        for line in found.lines:
            click.echo(fitted(line, width))
    notes = []
    # An engine's check may take long or fail; the other results are printed before it.
    of_engine = engine.spec.checks.advice(engine.master, engine.settings)
    for line in chain(filter(None, [note, str(left_out or "")]), _of_restarts(resolved), of_engine):
        notes.append(line)
        if not as_json:
            click.echo(fitted(line, width))
    machine = machine_check.end() if machine_check else None
    hosts = checked_hosts(engine)
    buffers = resolved.system.resources.socket_buffers(loaded)
    if as_json:
        about = {"scenario": scenario, "file": str(path), "system": loaded.system, "client": loaded.client}
        report = {"fits": found.fits, "rows": found.rows, "agents": found.agents, "notes": notes}
        of_machine = {} if machine is None else {"machine": machine.as_json(buffers)}
        of_hosts = {"machines": {name: host.as_json(buffers) for name, host in hosts.items()}} if hosts else {}
        click.echo(json.dumps({**about, **report, **of_machine, **of_hosts}, indent=2))
    else:
        for line in _of_machine(machine, buffers, width) if machine else ():
            click.echo(line)
        for line in lines_by_host({name: host.judgements(buffers) for name, host in hosts.items()}):
            click.echo(fitted(line, width))
    return EXIT_GOOD if found.fits else EXIT_INCOMPLETE


def _of_machine(machine: CheckedMachine, buffers: Mapping[str, int], width: int | None) -> Iterator[str]:
    """The facts of this machine as a table, and a line for each judgement."""
    from hydra.report.table import fitted, tabled

    facts = [{"machine": name.replace("_", " "), "here": text} for name, text in machine.facts.items()]
    yield f"\n{tabled(facts, width, as_text=True)}\n"
    yield from (fitted(str(judgement), width) for judgement in machine.judgements(buffers))


def _of_restarts(resolved: ResolvedScenario) -> Iterator[str]:
    """A hint if the clients of a server that an event restarts would return too late."""
    from hydra.system.restart_refusals import late_return

    servers = resolved.system.servers
    if servers is not None and (hint := late_return(resolved.scenario, servers.footprint.times.back_s)):
        yield hint


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of the check for a scenario's rows.

    Attributes:
        fits: whether all rows fit.
        tables: makes the printed tables for a terminal's width.
        lines: why some rows do not fit.
        rows: an object for each row, for JSON.
        agents: an object for each agent, for JSON; None if this machine was checked.
    """

    fits: bool
    tables: Callable[[int | None], Sequence[str]]
    lines: Sequence[str]
    rows: Sequence[Json]
    agents: Sequence[Json] | None


def _here(resolved: ResolvedScenario, cluster: ClusterSpec) -> _Found:
    """Checks every row against the limits of this machine."""
    from hydra.client.linux_process import raise_open_files
    from hydra.config.read_ahead import ahead_limit, kept_limit
    from hydra.config.shortages import check_all, needs_line, read_limits
    from hydra.report.table import tabled

    raise_open_files()
    machine = read_limits()
    limit = ahead_limit(resolved, cluster, machine)
    rows = check_all(kept_limit(resolved, limit.override) if limit else resolved, cluster, machine)
    lines = [] if limit is None else [str(limit)]
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
                _missing(f"{s.what}: {s.has}, needs {s.needed}", s.remedy, severe=s.severe) for s in row.shortages
            ],
        }
        for row in rows
    ]
    return _Found(
        fits=all(row.fits for row in rows),
        tables=lambda width: [tabled([needs_line(row) for row in rows], width, floats=".1f")],
        # The largest row needs most: what removes its shortages removes those of the other rows, too.
        lines=[*lines, *(str(shortage) for shortage in rows[-1].shortages)],
        rows=objects,
        agents=None,
    )


def _elsewhere(resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent]) -> _Found:
    """Checks whether every row can be placed on a cluster's agents, and why some cannot."""
    from hydra.cli.agents_and_leftovers import agent_rows, alike, left_out_line
    from hydra.report.table import fitted, tabled
    from hydra.run.placement_preview import placed_line, rows_on

    rows, listed = rows_on(resolved, cluster, agents), agent_rows(agents, resolved)
    left_out = alike(agents, resolved.scenario)
    shown, lines = agent_rows(agents, resolved, left_out), [left_out_line(left_out)] if left_out else []
    refused = [f"{counted(row.clients, 'subscriber')}: {row.refusal}" for row in rows if row.refusal is not None]
    objects: list[Json] = [
        {
            "clients": row.clients,
            "publishers": row.publishers,
            "fits": row.fits,
            "groups": row.groups,
            "on_agents": row.on_agents,
            "cpus": row.cpus,
            "memory_mb": row.memory_mb,
            "missing": [_missing(row.refusal.what, row.refusal.remedy, severe=True)] if row.refusal else [],
        }
        for row in rows
    ]
    return _Found(
        fits=not refused,
        tables=lambda width: [
            tabled(shown, width),
            *(fitted(line, width) for line in lines),
            tabled([placed_line(row) for row in rows], width, floats=".1f"),
        ],
        # The rows between have the same shortages as the smallest and the largest.
        lines=[*refused[:1], *refused[1:][-1:]],
        rows=objects,
        agents=listed,
    )


def _missing(text: str, remedy: str, *, severe: bool) -> Json:
    return {"text": text, "remedy": remedy, "grave": severe}
