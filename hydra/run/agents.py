"""``hydra agents``: where groups could run, who says so, and what this machine really has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hydra.config.cluster import load_cluster, read_cluster
from hydra.config.scenario import load_scenario
from hydra.run.engines import choose

if TYPE_CHECKING:
    from hydra.limits.machine import Has
    from hydra.model import Agent, Scenario


def list_agents(
    config: Path | None, master: str, flags: Mapping[str, Any], scenario: str | None, *, as_json: bool
) -> None:
    """Prints the agents of a cluster; of the embedded one also what the machine has beside what is declared.

    Args:
        config: the cluster file; None is ``conf/hydra.toml``.
        master: as ``--master`` has it.
        flags: those of the engines.
        scenario: whose roles are looked at; None: nobody asked.
        as_json: whether JSON is printed in place of a table.

    Raises:
        ConfigError: the cluster file, or the scenario, cannot be used.
        UsageError, ClusterError: the master is none, or does not answer.
    """
    required = load_scenario(scenario) if scenario else None
    declared, engine = load_cluster(config).agents, choose(master, config, flags)
    file = str(read_cluster(config)[0]) if engine.spec.is_local else None
    # What is refused so far is refused within the time that these take to import.
    from hydra.limits.machine import has
    from hydra.results.fitted import fitted, tabled, terminal_width

    rows = agent_rows(engine.agents(declared), required)
    if as_json:
        click.echo(json.dumps([{**row, "declared_in": file} for row in rows], indent=2))
        return
    width = terminal_width()
    click.echo(tabled(rows, width))
    if file:
        click.echo(f"\n{fitted(_declared(file, has(Path.cwd())), width)}")


def agent_rows(agents: Iterable[Agent], scenario: Scenario | None) -> list[dict[str, str]]:
    """A row for each agent, for a table.

    Args:
        agents: with what is free on each.
        scenario: whose roles are looked at; None: nobody asked.
    """
    from hydra.cluster.resources import format_resources
    from hydra.run.placing import roles_on

    return [
        {
            "agent": a.id,
            "hostname": a.hostname,
            "attributes": ";".join(f"{k}:{v}" for k, v in a.attributes.items()),
            "resources": format_resources(a.resources),
            **({"could run": ", ".join(roles_on(a, scenario))} if scenario else {}),
        }
        for a in agents
    ]


def _declared(file: str, machine: Has) -> str:
    """What the resources of agents mean that are this machine."""
    return (
        f"These resources are declared in {file}: they steer which group goes where. All these agents are this "
        f"machine, which has {machine}. hydra check tells whether a scenario fits."
    )
