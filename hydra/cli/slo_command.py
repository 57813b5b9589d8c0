"""``hydra slo``: measures one step, and reports whether it met the objectives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from hydra.cli.scenario_execution import measure_named
from hydra.errors import UsageError
from hydra.model import Scenario
from hydra.sweep import KEYS

ONE_STEP: Final[Mapping[str, object]] = {
    "table": "fixed",
    **{f"sweep.{key}": None for key in reversed(KEYS)},
    "sweep.repeat": 1,
}
"""Replaced keys that reduce any scenario to one step."""


def run_slo(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> NoReturn:
    """Runs one step, prints the answer and exits with 0 for yes, 3 for no or unknown, 1 if there is none.

    Args:
        scenario: the scenario's name or path.
        replaced: values that the command replaces in the scenario, by dotted key.
        flags: the flags of ``options.run_flags`` and of the engines.
    """
    if replaced.get("sweep.repeat", 1) != 1:
        raise UsageError("hydra slo runs one step without repeats", "leave out --repeat")
    # A recorded load keeps its recorded rates: the scenario's rate is for another load.
    rate = {"settings.rate": "max"} if replaced.get("load.shape") == "recorded" else {}
    replaced = {**rate, **replaced, **ONE_STEP}
    measure_named("slo", scenario, replaced, flags, check)


def check(scenario: Scenario) -> None:
    """Rejects a scenario that asks nothing, or that one step cannot answer.

    Raises:
        UsageError: the scenario is rejected; the text gives the reason.
    """
    if not scenario.slo.objectives():
        raise UsageError("no objective is set", "give --p99, --loss or another objective, or a table [slo]")
    if len(scenario.sizes) != 1:
        counts = ", ".join(str(clients) for _, clients in scenario.sizes)
        raise UsageError(f"the scenario has several subscriber counts: {counts}", "name one with --subscribers")
    if "recovery_s" in scenario.slo.objectives() and not scenario.events:
        raise UsageError("recovery_s is set, but the scenario has no event", "add [[events]]")
    _refuse_unanswerable(scenario)


def _refuse_unanswerable(scenario: Scenario) -> None:
    """Refuses a step whose messages have no due times, or which has too few to show what is asked for.

    Raises:
        UsageError: it is such a step.
    """
    from hydra.measure.slo import impossible
    from hydra.model import StepPlan
    from hydra.sweep.step_workload import loaded

    ((publishers, clients),) = scenario.sizes
    try:
        plan = loaded(StepPlan(clients, scenario.settings, scenario.sweep.duration_s), scenario)
    except ValueError as e:
        raise UsageError(str(e), "raise --duration") from e
    rate = plan.settings.rate
    if rate == "max":
        raise UsageError("with rate 'max' messages have no due times, so no message can be late", "give --rate")
    # All copies of a message are late together, so messages are counted and not their copies.
    if why := impossible(scenario.slo, float(rate) * plan.duration_s * publishers):
        raise UsageError(why, "raise --duration")
