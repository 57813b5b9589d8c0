"""Executes a command that was resolved on another machine: ``python3 -m hydra.cli.resolved_command ORDER OUT``."""

from __future__ import annotations

from pathlib import Path

import click

from hydra.cli.main import main
from hydra.options.flag_types import PATH
from hydra.options.late_commands import Command


@click.command(cls=Command)
@click.argument("order", type=PATH)
@click.argument("out", type=PATH)
def run_resolved(order: Path, out: Path) -> None:
    """Execute the command in the file ORDER and write its results into the directory OUT."""
    from hydra.cli.experiment_execution import ExperimentRun
    from hydra.cli.interleaved_runs import InterleavedRuns
    from hydra.cli.measurement import Measurement, ScenarioRun, carry_out
    from hydra.cli.slo_step import SloStep
    from hydra.run.remote_command import received

    kinds: dict[str, type[Measurement]] = {
        "run": ScenarioRun,
        "slo": SloStep,
        "comparison": InterleavedRuns,
        "experiment": ExperimentRun,
    }
    command, engine, cluster = received(order.read_bytes())
    carry_out(kinds[command.kind](command), engine, cluster, out)


if __name__ == "__main__":
    main(run_resolved)
