"""Commands that query a cluster or prepare files for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hydra.cli.measurement_commands import USUAL, scenario_argument
from hydra.config.plugins import systems
from hydra.options.flag_types import WORD
from hydra.options.help import MACHINE, OUTPUT, SYSTEM, grouped
from hydra.options.late_commands import Command, late_command, overrides
from hydra.options.setting_flags import implementation_flag, setting_flag
from hydra.options.shared_flags import cluster_flag, config_flag, json_flag, master_flag

_F = TypeVar("_F", bound=Callable[..., Any])


@click.command(
    cls=Command,
    section=MACHINE,
    examples=("hydra agents", "hydra agents --for zmqrate", "hydra agents --config ./cluster.toml --json"),
)
@config_flag
@master_flag
@grouped(
    OUTPUT,
    click.option(
        "--for", "scenario", type=WORD, metavar="SCENARIO", help="Show which roles of SCENARIO could run on each agent."
    ),
    click.option(
        "--all", "whole", is_flag=True, help="Show also the cluster's own attributes that are equal on all agents."
    ),
    json_flag,
)
def agents(
    config: Path | None, master: str | None, scenario: str | None, as_json: bool, whole: bool, **flags: Any
) -> None:
    """List a cluster's agents and their free resources."""
    from hydra.cli.agents_and_leftovers import list_agents

    list_agents(config, master, flags, scenario, as_json=as_json, whole=whole)


@click.command(
    cls=Command, section=MACHINE, examples=("hydra ps --master k8s://lab", "hydra ps --master 10.0.0.5:5050")
)
@config_flag
@cluster_flag
@json_flag
def ps(config: Path | None, master: str | None, as_json: bool, **flags: Any) -> None:
    """List the runs that have something on a cluster."""
    from hydra.cli.agents_and_leftovers import list_leftovers

    list_leftovers(config, master, flags, as_json=as_json)


@click.command(cls=Command, section=MACHINE, examples=("hydra kill zmqrate-20260102-030405 --master k8s://lab",))
@click.argument("run", type=WORD)
@config_flag
@cluster_flag
def kill(run: str, config: Path | None, master: str | None, **flags: Any) -> None:
    """End and delete what RUN has left on a cluster."""
    from hydra.cli.agents_and_leftovers import end_leftovers

    end_leftovers(run, config, master, flags)


def _elsewhere_flags(command: _F) -> _F:
    """The flags of all systems that name servers of the user's own."""
    keys = [(spec.servers.address_key, spec.settings.tables) for spec in systems().values() if spec.servers]
    flags = (setting_flag(key, of=tables[key.rpartition(".")[0]]) for key, tables in keys)
    return grouped(SYSTEM, *flags)(command)


@late_command(
    "artifact",
    scenario_argument(default=USUAL),
    implementation_flag(),
    _elsewhere_flags,
    section=MACHINE,
    examples=("hydra artifact zmqrate", "hydra artifact zmqrate --implementation native"),
)
def artifact(scenario: str, **_: Any) -> None:
    """Make the archive of programs for agents.

    The archive has what agents need for SCENARIO. Use it if you serve the archive yourself (--artifact).
    """
    from hydra.config.scenario import resolve

    resolved = resolve(scenario, overrides())

    from hydra.engine.artifacts.archive import build
    from hydra.system import programs

    made = build(programs(resolved.system.identity.make(resolved.scenario, resolved.servers > 0, False)))
    click.echo(f"{made.path}\nsha256 {made.sha256}")
