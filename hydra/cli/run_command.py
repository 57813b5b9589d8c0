"""What every command does that runs a scenario."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from hydra.config.cluster import load_cluster
from hydra.config.resolved import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import UsageError
from hydra.options.engine_choice import choose
from hydra.store.folders import database
from hydra.store.target_folder import resumed_folder, target_folder


def run_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> None:
    """Runs a scenario, prints its table and exits with the run's code.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: those of ``options.run_flags`` and of the engines.
    """
    resumed = resumed_folder(flags)
    if _is_interleaved(flags, resumed):
        from hydra.cli.interleaved import run_interleaved

        run_interleaved(scenario, replaced, flags, resumed)
    resolved = asked_scenario(scenario, replaced, flags)
    loaded = resolved.scenario
    engine = choose(flags["master"], flags["config"], flags)
    # What is refused so far is refused within the time that these take to import.
    from hydra.cli.fail_if import failed_if
    from hydra.report.conditions import columns, met, parse
    from hydra.report.tables import json_text, markdown, terminal
    from hydra.run import launcher
    from hydra.run.remote_command import run_elsewhere

    conditions = [parse(text, columns(loaded)) for text in flags["fail_if"]]
    out = target_folder(loaded.name, flags)
    run_elsewhere(engine, resolved, out, resumed=resumed is not None)
    request = launcher.RunRequest.of_flags(engine, load_cluster(flags["config"]), out, replaced, flags)
    request.exports.open(flags)
    end = launcher.launch(resolved, request)
    if flags["as_json"]:
        click.echo(json_text(loaded, end.rows, end.events))
    elif sys.stdout.isatty():
        click.echo(terminal(loaded, end.rows, end.clients, get_terminal_size().columns, colours=True))
    else:
        click.echo(markdown(loaded, end.rows, end.clients))
    sys.exit(failed_if(met(conditions, end.rows), end.code))


def asked_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> ResolvedScenario:
    """The scenario that a command names, or that of the run which it resumes."""
    resumed = resumed_folder(flags)
    if resumed is None:
        return resolve(scenario, replaced)
    database(resumed)  # before what takes long to import

    from hydra.run.resume import scenario_of

    return scenario_of(resumed, scenario, replaced)


def _is_interleaved(flags: Mapping[str, Any], resumed: Path | None) -> bool:
    """Whether several implementations are asked for, or were.

    Raises:
        UsageError: it is said how they take turns, and there is one only; or one of them is resumed by itself.
    """
    if flags["compared"] is not None:
        return True
    if resumed:
        from hydra.store.interleaved import is_interleaved, took_turns

        if is_interleaved(resumed):
            return True
        if took_turns([resumed]):
            # Its repeats would not be the pairs of the others' any more.
            raise UsageError(
                f"{resumed} is one part of a comparison, and cannot go on alone",
                f"go on with all of it: --resume {resumed.resolve().parent}",
            )
    if flags["interleave"] is not None:
        raise UsageError("--interleave is of runs that are compared", "name them with --compare-implementations")
    return False
