"""The command ``hydra fetch``, which fetches the directory of a run from the cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hydra.options.flag_types import PATH, WORD
from hydra.options.help import MACHINE, RUN, grouped
from hydra.options.late_commands import Command
from hydra.options.shared_flags import config_flag, own_cluster_flag


@click.command(
    cls=Command,
    section=MACHINE,
    examples=(
        "hydra fetch zmqrate-20260102-030405 --master kubernetes",
        "hydra fetch zmqrate-20260102-030405 --master k8s://lab --namespace hydra --follow",
    ),
)
@click.argument("run", type=WORD)
@config_flag
@own_cluster_flag
@grouped(
    RUN,
    click.option("--out", type=PATH, help="Run directory to make (default: runs/RUN)."),
    click.option("--follow", is_flag=True, help="Show the log of RUN until RUN ends, then fetch RUN."),
)
def fetch(run: str, config: Path | None, master: str, out: Path | None, follow: bool, **flags: Any) -> None:
    """Fetch a run with --in-cluster from its cluster.

    If RUN has not ended, its results so far are copied. If RUN has ended, it is copied whole and then removed from the
    cluster.
    """
    from hydra.config.cluster import load_engine
    from hydra.errors import UsageError
    from hydra.kubernetes.spec import SPEC

    name = Path(run).name
    if not name:
        raise UsageError(f"{run!r} names no run", f"hydra ps --master {master} lists them")
    if not (SPEC.handles(master) or master == SPEC.name):
        raise UsageError(f"--master {master} is no Kubernetes cluster, where commands run", f"write {SPEC.masters}")
    settings = load_engine(SPEC.name, config, {"namespace": flags.get("namespace")})

    from hydra.kubernetes.in_cluster.fetch import fetch_run, follow_run

    folder = out or Path("runs") / name
    if follow:
        sys.exit(follow_run(master, settings, name, folder))
    click.echo(fetch_run(master, settings, name, folder))
