"""What every command does that runs a scenario."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from hydra.config.cluster import load_cluster
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_INCOMPLETE, UsageError
from hydra.run.engines import choose


def run_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> None:
    """Runs a scenario, prints its table and exits with the run's code.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: those of ``options.run_flags`` and of the engines.
    """
    resumed = resumed_folder(flags)
    if resumed:
        from hydra.run.resume import scenario_of

        loaded = scenario_of(resumed, scenario, replaced)
    else:
        loaded = load_scenario(scenario, replaced)
    engine = choose(flags["master"], flags["config"], flags)
    # What is refused so far is refused within the time that these take to import.
    from hydra.results.conditions import columns, met, parse
    from hydra.results.registered import sweep_of
    from hydra.results.store import CLIENTS_KEY
    from hydra.results.tables import json_text, markdown
    from hydra.run import launcher

    conditions = [parse(text, columns(loaded)) for text in flags["fail_if"]]
    order = launcher.Order(
        engine=engine,
        out=resumed or flags["out"] or fresh_folder(loaded.name),
        command_line=["hydra", *sys.argv[1:]],
        overrides=replaced,
        resume=resumed is not None,
        quiet=flags["quiet"],
    )
    code, store = launcher.launch(loaded, load_cluster(flags["config"]), order)
    with store:
        rows, clients = sweep_of(loaded).rows(store.results()), store.meta(CLIENTS_KEY, [])
    click.echo(json_text(loaded, rows) if flags["as_json"] else markdown(loaded, rows, clients))
    for line in met(conditions, rows):
        click.echo(f"--fail-if: {line}", err=True)
        code = code or EXIT_INCOMPLETE
    sys.exit(code)


def resumed_folder(flags: Mapping[str, Any]) -> Path | None:
    """The folder that ``--resume`` names.

    Raises:
        UsageError: ``--out`` names another one.
    """
    resumed: Path | None = flags["resume"]
    if resumed is not None and flags["out"] is not None:
        raise UsageError("--resume and --out name two run directories", "leave out --out")
    return resumed


def fresh_folder(name: str) -> Path:
    """Where a run of this name goes unless the user says so."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"  # local time
