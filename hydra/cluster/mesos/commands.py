"""The commands that Mesos adds to ``hydra``: ``ps``, ``kill`` and ``artifact``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hydra.options import PATH, WORD, flags, implementation_flag, late_command, overrides
from hydra.plugins import system, systems

_F = TypeVar("_F", bound=Callable[..., Any])

_config = click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
_master = click.option("--master", type=WORD, required=True, help="The address of a Mesos master.")


@click.command()
@_config
@_master
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ps(config: Path | None, master: str, as_json: bool) -> None:
    """List the runs that a Mesos master still knows, and their tasks."""
    import json

    from hydra.cluster.mesos.leftovers import leftovers
    from hydra.config.engines import load_engine
    from hydra.results.fitted import tabled, terminal_width

    rows = leftovers(load_engine("mesos", config), master)
    click.echo(json.dumps(rows, indent=2) if as_json else tabled(rows, terminal_width()))


@click.command()
@click.argument("run", type=WORD)
@_config
@_master
def kill(run: str, config: Path | None, master: str) -> None:
    """End what is left of RUN on a Mesos cluster: its framework and all its tasks."""
    from hydra.cluster.mesos.leftovers import end_run
    from hydra.config.engines import load_engine

    for framework in end_run(load_engine("mesos", config), master, run):
        click.echo(f"ended {framework}")


def _elsewhere_flags(command: _F) -> _F:
    """The flags of all systems that name servers of the user's own."""
    theirs: list[Callable[[_F], _F]] = [flag for spec in systems().values() for flag in spec.elsewhere]
    return flags(*theirs)(command)


@late_command("artifact", click.argument("scenario", default="zmqrate"), implementation_flag(), _elsewhere_flags)
def artifact(scenario: str, **_: Any) -> None:
    """Make the archive that agents need for SCENARIO, for serving it yourself (--artifact)."""
    from hydra.config.scenario import load_scenario

    loaded = load_scenario(scenario, overrides())

    from hydra.cluster.artifacts.archive import build
    from hydra.system import programs

    spec = system(loaded.system)
    made = build(programs(spec.make(loaded, spec.servers_of(loaded) > 0, False)))
    click.echo(f"{made.path}\nsha256 {made.sha256}")
