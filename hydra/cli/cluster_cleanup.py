"""``hydra ps`` and ``hydra kill``: what runs have left on a cluster, and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hydra.config.plugins import engines
from hydra.errors import UsageError
from hydra.options.engine_choice import Chosen, choose


def list_leftovers(config: Path | None, master: str, flags: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints a row for each run that a cluster still knows.

    Args:
        config: the cluster file; None is ``conf/hydra.toml``.
        master: as ``--master`` has it.
        flags: those of the engines.
        as_json: whether JSON is printed in place of a table.

    Raises:
        UsageError, ClusterError: the master is none, does not answer, or runs leave nothing there.
    """
    engine = choose(master, config, flags)
    leftovers = engine.spec.leftovers
    if leftovers is None:
        raise _nothing_left("ps", engine)
    # What is refused so far is refused within the time that these take to import.
    from hydra.report.terminal_layout import tabled, terminal_width

    rows = leftovers(engine.master, engine.settings)
    parts = ", ".join(flag.opts[0] for flag in engine.spec.cluster_flags)
    elsewhere = f"; {parts} names another part of it" if parts else ""
    none = f"the cluster of --master {master} knows no run of Hydra's{elsewhere}"
    text = tabled(rows, terminal_width()) if rows else none
    click.echo(json.dumps(rows, indent=2) if as_json else text)


def end_leftovers(run: str, config: Path | None, master: str, flags: Mapping[str, Any]) -> None:
    """Ends what is left of a run on a cluster, and says what that was; the rest as for :func:`list_leftovers`.

    Raises:
        UsageError: the cluster knows no such run.
    """
    engine = choose(master, config, flags)
    if engine.spec.end_run is None:
        raise _nothing_left("kill", engine)
    for what in engine.spec.end_run(engine.master, engine.settings, run):
        click.echo(f"ended {what}")


def _nothing_left(command: str, engine: Chosen) -> UsageError:
    others = ", or ".join(spec.masters for spec in engines().values() if spec.leftovers is not None)
    return UsageError(
        f"runs on --master {engine.master} leave nothing behind, and hydra {command} is for what they have left",
        f"name {others}; hydra runs lists the runs whose folders are on this machine",
    )
