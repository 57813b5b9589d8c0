"""``hydra agents``, ``hydra ps``, ``hydra kill``: lists agents, and lists and deletes what runs left on a cluster."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hydra.config.cluster import load_cluster, read_cluster
from hydra.config.plugins import engines
from hydra.config.scenario import resolve
from hydra.errors import UsageError
from hydra.options.engine_choice import SelectedEngine, choose

if TYPE_CHECKING:
    from hydra.config.resolved_scenario import ResolvedScenario
    from hydra.config.shortages import MachineResources
    from hydra.model import Agent, Scenario


def list_agents(
    config: Path | None,
    master: str | None,
    flags: Mapping[str, Any],
    scenario: str | None,
    *,
    as_json: bool,
    whole: bool,
) -> None:
    """Prints the agents of a cluster; for the local engine, prints the resources of this machine, too.

    Args:
        config: the cluster file; None is ``conf/hydra.toml``.
        master: the value of ``--master``; None: it was not given.
        flags: the flags of the engines.
        scenario: the scenario whose roles are checked for each agent; None: no scenario was named.
        as_json: whether JSON is printed in place of a table.
        whole: whether the table has all attributes, also those that are alike on all agents.

    Raises:
        ConfigError: the cluster file, or the scenario, cannot be used.
        UsageError, ClusterError: the master is not valid, or does not answer.
    """
    required = resolve(scenario) if scenario else None
    declared, engine = load_cluster(config).agents, choose(master, config, flags)
    file = str(read_cluster(config)[0]) if engine.spec.is_local else None
    # The imports below are slow: errors that were found so far do not wait for them.
    from hydra.config.shortages import machine_resources
    from hydra.report.table import fitted, tabled, terminal_width
    from hydra.run.placement_preview import without_unknown

    agents = engine.agents(declared)
    required, unmet = without_unknown(required, agents) if required else (None, None)
    if as_json:
        click.echo(json.dumps([{**row, "declared_in": file} for row in agent_rows(agents, required)], indent=2))
        return
    if not agents:
        click.echo(f"the cluster of --master {engine.master} has no agents")
        return
    width = terminal_width()
    left_out = {} if whole else alike(agents, required.scenario if required else None)
    click.echo(tabled(agent_rows(agents, required, left_out), width))
    if left_out:
        click.echo(f"\n{fitted(left_out_line(left_out), width)}")
    if unmet:
        click.echo(f"\n{fitted(str(unmet), width)}")
    if file:
        click.echo(f"\n{fitted(_declared(file, machine_resources(Path.cwd())), width)}")


def alike(agents: Sequence[Agent], scenario: Scenario | None) -> dict[str, str | None]:
    """The attributes that do not distinguish agents, with the common value; None if each has its agent's name.

    Only the cluster's own attributes are included: their names begin with a domain (``example.com/zone``).
    Attributes that the scenario's constraints name are left out.

    Args:
        agents: the agents of the cluster.
        scenario: the scenario whose constraints are read; None: no scenario was named.
    """
    roles = (scenario.publisher, scenario.subscriber, scenario.server) if scenario else ()
    used = {constraint.field for role in roles for constraint in role.constraints}
    found: dict[str, str | None] = {}
    for name in sorted({name for agent in agents for name in agent.attributes if "/" in name} - used):
        values = [agent.attributes.get(name) for agent in agents]
        first = values[0]
        if all(value in (agent.id, agent.hostname) for value, agent in zip(values, agents, strict=True)):
            found[name] = None
        elif first is not None and all(value == first for value in values):
            found[name] = str(first)
    return found


def agent_rows(
    agents: Iterable[Agent], resolved: ResolvedScenario | None, left_out: Container[str] = ()
) -> list[dict[str, str]]:
    """A table row for each agent.

    Args:
        agents: the agents, with their free resources.
        resolved: the scenario whose roles are checked for each agent; None: no scenario was named.
        left_out: names of attributes that are not shown.
    """
    from hydra.engine.resources import format_resources
    from hydra.run.placement_preview import roles_on

    return [
        {
            "agent": a.id,
            "hostname": a.hostname,
            "attributes": ";".join(f"{k}:{v}" for k, v in a.attributes.items() if k not in left_out),
            "resources": format_resources(a.resources),
            **({"could run": ", ".join(roles_on(a, resolved))} if resolved else {}),
        }
        for a in agents
    ]


def left_out_line(attributes: Mapping[str, str | None]) -> str:
    """The line that lists the attributes left out of the table, and the flag that shows them."""
    same = ", ".join(f"{name}:{value}" for name, value in attributes.items() if value is not None)
    names = ", ".join(name for name, value in attributes.items() if value is None)
    sentences = (
        f"The same on all agents: {same}." if same else "",
        f"Equal to the name of each agent: {names}." if names else "",
    )
    return " ".join((*filter(None, sentences), "hydra agents --all shows these attributes in the table, too."))


def _declared(file: str, machine: MachineResources) -> str:
    """The line that explains the resources of agents that are this machine."""
    return (
        f"These resources are declared in {file}: they decide which agent a group gets. All these agents are this "
        f"machine, which has {machine}. hydra check shows whether a scenario fits."
    )


def list_leftovers(config: Path | None, master: str | None, flags: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints a row for each run that has left something on a cluster.

    Args:
        config: the cluster file; None is ``conf/hydra.toml``.
        master: the value of ``--master``; None: it was not given.
        flags: the flags of the engines.
        as_json: whether JSON is printed in place of a table.

    Raises:
        UsageError, ClusterError: the master is not valid, does not answer, or runs leave nothing there.
    """
    engine = choose(master, config, flags)
    leftovers = engine.spec.leftovers
    if leftovers is None:
        raise _nothing_left("ps", engine)
    # The imports below are slow: errors that were found so far do not wait for them.
    from hydra.report.table import tabled, terminal_width

    rows = leftovers.listed(engine.master, engine.settings)
    parts = ", ".join(flag.opts[0] for flag in engine.spec.flags.cluster)
    elsewhere = f"; {parts} names another part of the cluster" if parts else ""
    none = f"the cluster of --master {engine.master} knows no run of Hydra's{elsewhere}"
    text = tabled(rows, terminal_width()) if rows else none
    click.echo(json.dumps(rows, indent=2) if as_json else text)


def end_leftovers(run: str, config: Path | None, master: str | None, flags: Mapping[str, Any]) -> None:
    """Deletes what a run has left on a cluster, and prints each deleted thing; see :func:`list_leftovers`.

    Raises:
        UsageError: the cluster knows no such run.
    """
    engine = choose(master, config, flags)
    if engine.spec.leftovers is None:
        raise _nothing_left("kill", engine)
    for what in engine.spec.leftovers.end(engine.master, engine.settings, run):
        click.echo(f"ended {what}")


def _nothing_left(command: str, engine: SelectedEngine) -> UsageError:
    others = ", or ".join(spec.masters for spec in engines().values() if spec.leftovers is not None)
    return UsageError(
        f"runs on --master {engine.master} leave nothing behind, so there is nothing for hydra {command}",
        f"name {others}; hydra runs lists the runs whose folders are on this machine",
    )
