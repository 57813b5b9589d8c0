"""``hydra slo``: will this workload hold? One step, and whether it kept what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from hydra.cli.run_command import asked_scenario
from hydra.config.cluster import load_cluster
from hydra.errors import UsageError
from hydra.model import Scenario
from hydra.options import shown
from hydra.options.engine_choice import choose
from hydra.store.run_folders import target_folder
from hydra.sweep import KINDS

ONE_STEP: Final[Mapping[str, object]] = {
    "table": "fixed",
    **{f"sweep.{kind.key}": None for kind in reversed(KINDS)},
    "sweep.repeat": 1,
}
"""What makes one step of any scenario."""


def run_slo(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> NoReturn:
    """Runs one step, prints the answer and exits with 0 for yes, 3 for no or unknown, 1 if there is none.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: those of ``options.run_flags`` and of the engines.
    """
    if replaced.get("sweep.repeat", 1) != 1:
        raise UsageError("hydra slo runs one step without repeats", "leave out --repeat")
    replaced = {**_as_recorded(replaced), **replaced, **ONE_STEP}
    resolved = asked_scenario(scenario, replaced, flags)
    check(resolved.scenario)
    engine = choose(flags["master"], flags["config"], flags)
    from hydra.cli.measurement import SloStep, carry_out
    from hydra.run.remote_command import ResolvedCommand

    step = SloStep(ResolvedCommand("slo", {"": resolved}, replaced, shown(flags)))
    out = target_folder(resolved.scenario.name, flags)
    carry_out(step, engine, load_cluster(flags["config"]), out, resumed=flags["resume"] is not None)


def _as_recorded(replaced: Mapping[str, object]) -> dict[str, object]:
    """A recorded load keeps its rates, unless the command names one: the scenario's own was made for another load."""
    return {"settings.rate": "max"} if replaced.get("load.shape") == "recorded" else {}


def check(scenario: Scenario) -> None:
    """Refuses what is no question, or what no step could answer.

    Raises:
        UsageError: the text says why.
    """
    if not scenario.slo.objectives():
        raise UsageError("no objective is set", "give --p99, --loss or another objective, or a table [slo]")
    if len(scenario.sizes) != 1:
        counts = ", ".join(str(clients) for _, clients in scenario.sizes)
        raise UsageError(f"the scenario has several client counts: {counts}", "name one with --clients")
    if "recovery_s" in scenario.slo.objectives() and not scenario.events:
        raise UsageError("recovery_s is set, but the scenario has no event", "add [[events]]")
    if why := unanswerable(scenario):
        raise UsageError(why, "raise --duration")


def unanswerable(scenario: Scenario) -> str:
    """Why the scenario's step has too few messages to show what is asked for, or ""."""
    from hydra.measure.slo import impossible
    from hydra.model import StepPlan
    from hydra.sweep.step_workload import loaded

    ((publishers, clients),) = scenario.sizes
    try:
        plan = loaded(StepPlan(clients, scenario.settings, scenario.sweep.duration_s), scenario)
    except ValueError as e:
        return str(e)
    rate = plan.settings.rate
    if rate == "max":
        return "rate 'max' has no due times, so that no message is late"
    # Copies of a message are late together: it is messages that count, whoever receives them.
    return impossible(scenario.slo, float(rate) * plan.duration_s * publishers)
