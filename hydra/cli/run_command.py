"""What every command does that runs a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from hydra.config.cluster import load_cluster
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import UsageError
from hydra.options import shown
from hydra.options.engine_choice import choose
from hydra.store.run_folders import database, resumed_folder, target_folder


def run_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> NoReturn:
    """Runs a scenario, prints its table and exits with the run's code.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: those of ``options.run_flags`` and of the engines.
    """
    resumed = resumed_folder(flags)
    if _is_interleaved(flags, resumed):
        from hydra.cli.interleaved_runs import run_interleaved

        run_interleaved(scenario, replaced, flags, resumed)
    resolved = asked_scenario(scenario, replaced, flags)
    engine = choose(flags["master"], flags["config"], flags)
    # What is refused so far is refused within the time that these take to import.
    from hydra.cli.measurement import ScenarioRun, carry_out
    from hydra.run.remote_command import ResolvedCommand

    run = ScenarioRun(ResolvedCommand("run", {"": resolved}, replaced, shown(flags)))
    out = target_folder(resolved.scenario.name, flags)
    carry_out(run, engine, load_cluster(flags["config"]), out, resumed=resumed is not None)


def asked_scenario(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> ResolvedScenario:
    """The scenario that a command names, or that of the run which it resumes."""
    resumed = resumed_folder(flags)
    if resumed is None:
        return resolve(scenario, replaced)
    database(resumed)  # before what takes long to import

    from hydra.run.run_metadata import scenario_of

    return scenario_of(resumed, scenario, replaced)


def _is_interleaved(flags: Mapping[str, Any], resumed: Path | None) -> bool:
    """Whether several implementations are asked for, or were.

    Raises:
        UsageError: it is said how they take turns, and there is one only; or one of them is resumed by itself.
    """
    if flags["compared"] is not None:
        return True
    if resumed:
        from hydra.store.interleaved_record import is_interleaved, took_turns

        if is_interleaved(resumed):
            return True
        if took_turns([resumed]):
            # Its repeats would not be the pairs of the others' any more.
            raise UsageError(
                f"{resumed} is one part of a comparison, and cannot continue alone",
                f"continue the whole comparison: --resume {resumed.resolve().parent}",
            )
    if flags["interleave"] is not None:
        raise UsageError("--interleave is for compared runs", "name them with --compare-implementations")
    return False
