"""The steps of every command that runs a scenario."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from hydra.cli.chosen_clients import with_default_client
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import is_scenario
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import RunDirectoryError, UsageError
from hydra.model import Scenario
from hydra.options.engine_choice import choose
from hydra.options.shared_flags import shown
from hydra.store.run_folders import database, is_experiment, resumed_folder, target_folder


def run_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> NoReturn:
    """Runs a scenario, prints its table and exits with the run's code.

    Args:
        scenario: the scenario's name or path.
        replaced: values that the command replaces in the scenario, by dotted key.
        flags: the flags of ``options.run_flags`` and of the engines.
    """
    resumed = resumed_folder(flags)
    if _is_interleaved(flags, resumed):
        from hydra.cli.compared_sides import ComparedSide, sides_of_setting
        from hydra.cli.interleaved_runs import run_interleaved

        context, compared = click.get_current_context(), flags["compared"]
        sides = {"": ComparedSide(str(scenario))}
        if compared is not None:
            sides = sides_of_setting(compared, scenario, replaced, context)
        run_interleaved(sides, replaced, flags, resumed)
    measure_named("run", scenario, replaced, flags)


def measure_named(
    kind: Literal["run", "slo"],
    scenario: str | Path,
    replaced: Mapping[str, object],
    flags: Mapping[str, Any],
    check: Callable[[Scenario], None] = lambda _: None,
) -> NoReturn:
    """Carries out a command that measures one scenario, the named one or that of the run that is resumed.

    Args:
        kind: the kind of the command.
        scenario: as for :func:`run_scenario`.
        replaced: likewise.
        flags: likewise.
        check: raises UsageError for a scenario that the command cannot measure.
    """
    resolved, note, resumed = named_scenario(scenario, replaced, flags), "", resumed_folder(flags) is not None
    check(resolved.scenario)
    engine = choose(flags["master"], flags["config"], flags)
    if not resumed:
        resolved, replaced, note = with_default_client(scenario, resolved, replaced, engine)
    # The imports below are slow: errors that were found so far do not wait for them.
    from hydra.cli.measurement import ScenarioRun, carry_out
    from hydra.config.resolved_scenario import ResolvedCommand

    measure = ScenarioRun
    if kind == "slo":
        from hydra.cli.slo_step import SloStep

        measure = SloStep
    measured = measure(ResolvedCommand(kind, {"": resolved}, replaced, shown(flags)))
    out = target_folder(resolved.scenario.name, flags)
    carry_out(measured, engine, load_cluster(flags["config"]), out, resumed=resumed, note=note)


def begun(folder: Path) -> str:
    """The scenario or experiment of the run in a folder, as the command line that began the run has it.

    Raises:
        RunDirectoryError: the folder holds no run, or a run of a file that is not where it was.
    """
    from hydra.report import experiment_folder
    from hydra.store import interleaved_record
    from hydra.store.database import RunStore

    if is_experiment(folder):
        return experiment_folder.read_record(folder).experiment
    if interleaved_record.is_interleaved(folder):
        record = interleaved_record.read_record(folder)
        name, command = record.scenario, record.command_line
    else:
        database(folder)
        with RunStore.open(folder) as store:
            name, command = str(store.meta("scenario")["name"]), str(store.meta("command_line", ""))
    words = shlex.split(command)[1:]
    found = next((word for word in words if word.endswith(".toml") and is_scenario(word)), "")
    if not found and not is_scenario(name):
        raise RunDirectoryError(
            f"{folder} is a run of {name}, whose file is not found here",
            f"name the file: hydra run FILE.toml --resume {shlex.quote(str(folder))}",
        )
    return found or name


def named_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> ResolvedScenario:
    """The scenario that the command names, or that of the run it resumes."""
    resumed = resumed_folder(flags)
    if resumed is None:
        return resolve(scenario, replaced)
    database(resumed)  # an error in it is reported before slow imports

    from hydra.run.run_metadata import scenario_of

    return scenario_of(resumed, scenario, replaced)


def _is_interleaved(flags: Mapping[str, Any], resumed: Path | None) -> bool:
    """Whether the user compares several runs, or resumes such a comparison.

    Raises:
        UsageError: ``--interleave`` is given for one run only, or one run of a comparison is resumed alone.
    """
    if flags["compared"] is not None:
        return True
    if resumed:
        from hydra.store.interleaved_record import is_interleaved, took_turns

        if is_interleaved(resumed):
            return True
        if took_turns([resumed]):
            # New repeats of this run alone would have no pairs in the other runs.
            raise UsageError(
                f"{resumed} is one part of a comparison, and cannot continue alone",
                f"continue the whole comparison: --resume {shlex.quote(str(resumed.resolve().parent))}",
            )
    if flags["interleave"] is not None:
        raise UsageError("--interleave is for compared runs", "name them with --compare")
    return False
