"""What every command does that runs a published experiment."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hydra.cli.experiment_alternatives import with_alternatives
from hydra.cli.experiment_lookup import find
from hydra.cli.experiment_runner import Asked, run
from hydra.cli.fail_if import failed_if
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import experiments
from hydra.errors import RunDirectoryError, UsageError
from hydra.options.engine_choice import choose
from hydra.report import experiments as folders
from hydra.report.conditions import columns, met, parse
from hydra.report.experiments import Record
from hydra.report.terminal_layout import fitted, terminal_width
from hydra.run.launcher import RunRequest
from hydra.run.remote_command import run_elsewhere
from hydra.run.resume import differences, refuse_hidden
from hydra.store.folders import check_folder, is_experiment
from hydra.store.redaction import Redactor
from hydra.store.run_lock import alone_in
from hydra.store.target_folder import fresh_folder, resumed_folder
from hydra.system import Experiment, Order, Part


def run_experiment(system: str, name: str, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> None:
    """Runs an experiment, prints its tables and exits with its code.

    Args:
        system: whose; "": any system's.
        name: of the experiment; "": the one in the folder that is resumed.
        replaced: keys that the command replaces in every part.
        flags: those of ``options.run_flags``, of ``options.experiment_flags``, of engines and of experiments.
    """
    resumed = resumed_folder(flags)
    before = folders.read(resumed) if resumed else None
    experiment = find(system, name or (before.experiment if before else ""))
    cluster = load_cluster(flags["config"])
    engine = choose(flags["master"], flags["config"], flags)
    # The embedded engine's agents are one machine, whatever they are called.
    hosts = 1 if engine.spec.is_local else len({agent.hostname for agent in engine.agents(cluster.agents)})
    if before:
        replaced = {**before.overrides, **replaced}
        refuse_hidden(replaced)
    experiment, overrides = with_alternatives(experiment, replaced)
    order = _order(experiment, flags, before, hosts)
    folder = resumed or flags["out"] or fresh_folder(experiment.name)
    asked = Asked(experiment, order, RunRequest.of_flags(engine, cluster, folder, overrides, flags))
    # Whatever is wrong with the flags is told before anything starts.
    scenarios = [asked.scenario(part, overrides) for part in _known(experiment, order)]
    known = [*folders.figures_of(experiment.views(order, ())), *(columns(scenarios[0].scenario) if scenarios else ())]
    conditions = [parse(text, list(dict.fromkeys(known))) for text in flags["fail_if"]]
    if not before:
        _check_new(asked.folder)
    run_elsewhere(engine, scenarios[0], asked.folder, resumed=before is not None)
    redactor = Redactor.of_run(scenarios[0], *engine.secrets())
    record = before or Record(
        experiment.name,
        experiment.title,
        experiment.source,
        order.scale,
        dict(order.options),
        {key: redactor.value(value, key) for key, value in replaced.items()},
        shlex.join(redactor.command_line(asked.request.command_line)),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    asked.request.exports.open(flags)
    asked.folder.mkdir(parents=True, exist_ok=True)
    with alone_in(asked.folder):
        folders.write_record(asked.folder, record)
        code, done = run(asked, record)
    record = folders.read(asked.folder)
    views = experiment.views(order, done)
    if flags["as_json"]:
        click.echo(folders.json_text(record, views))
    else:
        click.echo(fitted(folders.document(record, views), terminal_width()))
        click.echo("".join(f"{line}\n" for line in experiment.lines(done)), nl=False)
    goes_on = "" if record.ended == "finished" else f"; the experiment goes on with --resume {asked.folder}"
    asked.say(f"everything is in {asked.folder}{goes_on}")
    rows = [*folders.rows_of(views), *(dict(row) for each in done for row in each.rows)]
    sys.exit(failed_if(met(conditions, rows), code))


def _order(experiment: Experiment, flags: Mapping[str, Any], before: Record | None, hosts: int) -> Order:
    """What is asked for; an experiment goes on as it was begun.

    Raises:
        UsageError: a flag is of another experiment.
        RunDirectoryError: a flag asks for something else than the experiment that is resumed.
    """
    own = {str(option.name) for option in experiment.options}
    for other in experiments().values():
        for option in other.options:
            if str(option.name) not in own and flags.get(str(option.name)) is not None:
                raise UsageError(
                    f"{option.opts[0]} is for {other.name}, not for {experiment.name}", f"leave out {option.opts[0]}"
                )
    options = {name: flags[name] for name in sorted(own) if flags.get(name) is not None}
    scale = flags.get("scale")
    if before is None:
        return Order(scale or experiment.scale, options, hosts)
    given = {"experiment": experiment.name, **({"scale": scale} if scale else {}), **options}
    first = {"experiment": before.experiment, "scale": before.scale, **before.options}
    difference = next(differences({key: first.get(key) for key in given}, given), None)
    if difference is not None:
        raise RunDirectoryError(f"this experiment is another one: {difference}", "resume it as it was started")
    return Order(before.scale, before.options, hosts)


def _known(experiment: Experiment, order: Order) -> Sequence[Part]:
    """The parts that are known before anything is measured: all, or the first one."""
    if experiment.parts:
        return experiment.parts(order)
    first = experiment.next_part(order, ())
    return [first] if first else []


def _check_new(folder: Path) -> None:
    check_folder(folder)
    if is_experiment(folder):
        raise RunDirectoryError(f"{folder} already holds an experiment", "go on with --resume, or choose another --out")
