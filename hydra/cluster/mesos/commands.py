"""The commands that Mesos adds to ``hydra``: ``ps``, ``kill`` and ``artifact``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from hydra.errors import UsageError
from hydra.options import (
    CLUSTER,
    SYSTEM,
    WORD,
    Command,
    config_flag,
    grouped,
    implementation_flag,
    json_flag,
    late_command,
    overrides,
)
from hydra.plugins import engines, system, systems

_F = TypeVar("_F", bound=Callable[..., Any])

SECTION: Final = "Mesos"
"""Of these commands in a list."""

_master = grouped(
    CLUSTER,
    click.option("--master", type=WORD, required=True, help="The address of a Mesos master: HOST:5050 or zk://…."),
)


@click.command(cls=Command, section=SECTION, examples=("hydra ps --master 10.0.0.5:5050",))
@config_flag
@_master
@json_flag
def ps(config: Path | None, master: str, as_json: bool) -> None:
    """List the runs that a Mesos master still knows, and their tasks."""
    import json

    from hydra.cluster.mesos.leftovers import leftovers
    from hydra.config.engines import load_engine
    from hydra.results.fitted import tabled, terminal_width

    _refuse_other_engine("ps", master)
    rows = leftovers(load_engine("mesos", config), master)
    text = tabled(rows, terminal_width()) if rows else f"the master at {master} knows no run of Hydra's"
    click.echo(json.dumps(rows, indent=2) if as_json else text)


@click.command(cls=Command, section=SECTION, examples=("hydra kill zmqrate-20260102-030405 --master 10.0.0.5:5050",))
@click.argument("run", type=WORD)
@config_flag
@_master
def kill(run: str, config: Path | None, master: str) -> None:
    """End what is left of RUN on a Mesos cluster: its framework and all its tasks."""
    from hydra.cluster.mesos.leftovers import end_run
    from hydra.config.engines import load_engine

    _refuse_other_engine("kill", master)
    for framework in end_run(load_engine("mesos", config), master, run):
        click.echo(f"ended {framework}")


def _refuse_other_engine(command: str, master: str) -> None:
    """Refuses a ``--master`` that is another engine's, and no address."""
    name = master.partition("://")[0]
    if name in engines() and name != "mesos":
        raise UsageError(
            f"--master {master} is no Mesos master, and hydra {command} is for what runs have left on one",
            "name its address: HOST:5050 or zk://…; runs of this machine leave nothing behind (hydra runs lists them)",
        )


def _elsewhere_flags(command: _F) -> _F:
    """The flags of all systems that name servers of the user's own."""
    theirs: list[Callable[[_F], _F]] = [flag for spec in systems().values() for flag in spec.elsewhere]
    return grouped(SYSTEM, *theirs)(command)


@late_command(
    "artifact",
    click.argument("scenario", default="zmqrate"),
    implementation_flag(),
    _elsewhere_flags,
    section=SECTION,
    examples=("hydra artifact zmqrate", "hydra artifact zmqrate --implementation native"),
)
def artifact(scenario: str, **_: Any) -> None:
    """Make the archive that agents need for SCENARIO, for serving it yourself (--artifact)."""
    from hydra.config.scenario import load_scenario

    loaded = load_scenario(scenario, overrides())

    from hydra.cluster.artifacts.archive import build
    from hydra.system import programs

    spec = system(loaded.system)
    made = build(programs(spec.make(loaded, spec.servers_of(loaded) > 0, False)))
    click.echo(f"{made.path}\nsha256 {made.sha256}")
