"""``hydra slo``: will this workload hold? One step, and whether it kept what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from hydra.cli.run_command import asked_scenario
from hydra.config.cluster import load_cluster
from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from hydra.model import Scenario
from hydra.options.engine_choice import choose
from hydra.store.target_folder import target_folder

ONE_STEP: Final[Mapping[str, object]] = {
    "table": "fixed",
    "sweep.search": None,
    "sweep.vary": None,
    "sweep.points": None,
    "sweep.repeat": 1,
}
"""What makes one step of any scenario."""


def run_slo(scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> None:
    """Runs one step, prints the answer and exits with 0 for yes, 3 for no or unknown, 1 if there is none.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: those of ``options.run_flags`` and of the engines.
    """
    if replaced.get("sweep.repeat", 1) != 1:
        raise UsageError("hydra slo answers by one step, and is not repeated", "leave out --repeat")
    replaced = {**_as_recorded(replaced), **replaced, **ONE_STEP}
    resolved = asked_scenario(scenario, replaced, flags)
    loaded = resolved.scenario
    check(loaded)
    engine = choose(flags["master"], flags["config"], flags)
    from hydra.cli.fail_if import failed_if
    from hydra.report.conditions import columns, met, parse
    from hydra.report.row_warnings import warnings_of
    from hydra.report.slo_text import document, json_text
    from hydra.report.terminal_layout import fitted, terminal_width
    from hydra.run import launcher
    from hydra.run.remote_command import run_elsewhere
    from hydra.store.database import RunStore
    from hydra.store.files import write_whole
    from hydra.store.slo_results import answer_of

    conditions = [parse(text, columns(loaded)) for text in flags["fail_if"]]
    out = target_folder(loaded.name, flags)
    run_elsewhere(engine, resolved, out, resumed=flags["resume"] is not None)
    if hint := too_short(loaded):
        click.echo(hint, err=True)
    request = launcher.RunRequest.of_flags(engine, load_cluster(flags["config"]), out, replaced, flags)
    request.exports.open(flags)
    end = launcher.launch(resolved, request)
    rows, last = end.rows, end.results[-1] if end.results else None
    answer = None
    if last and last.status == "ok":
        with RunStore.open(out) as store:
            answer = answer_of(store, last.epoch)
    if answer is None:
        why = f": {last.reason}" if last else ""
        click.echo(f"no answer: the step could not be measured{why}", err=True)
        sys.exit(EXIT_INTERRUPTED if end.code == EXIT_INTERRUPTED else EXIT_FAILED)
    warnings = warnings_of(rows[-1], loaded)
    as_text, as_json = document(loaded, answer, warnings), json_text(answer, warnings)
    for name, text in (("slo.md", fitted(as_text)), ("slo.json", as_json)):
        write_whole(out / name, text, f"everything measured is in {out / 'run.db'}")
    click.echo(as_json if flags["as_json"] else fitted(as_text, terminal_width()))
    code = EXIT_GOOD if answer.holds else EXIT_INCOMPLETE
    sys.exit(failed_if(met(conditions, rows), code))


def _as_recorded(replaced: Mapping[str, object]) -> dict[str, object]:
    """A recorded load keeps its rates, unless the command names one: the scenario's own was made for another load."""
    return {"settings.rate": "max"} if replaced.get("load.shape") == "recorded" else {}


def check(scenario: Scenario) -> None:
    """Refuses what is no question, or what no step could answer.

    Raises:
        UsageError: the text says why.
    """
    if not scenario.slo.objectives():
        raise UsageError("nothing is asked for", "give --p99, --loss or another objective, or a table [slo]")
    if len(scenario.sizes) != 1:
        counts = ", ".join(str(clients) for _, clients in scenario.sizes)
        raise UsageError(f"the scenario has several client counts: {counts}", "name one with --clients")
    if "recovery_s" in scenario.slo.objectives() and not scenario.events:
        raise UsageError("recovery_s is asked for, and no event happens", "add [[events]]")
    if why := unanswerable(scenario):
        raise UsageError(why, "raise --duration")


def unanswerable(scenario: Scenario) -> str:
    """Why the scenario's step has too few messages to show what is asked for, or ""."""
    from hydra.measure.slo import impossible
    from hydra.model import StepPlan
    from hydra.sweep.workload import loaded

    ((publishers, clients),) = scenario.sizes
    try:
        plan = loaded(StepPlan(clients, scenario.settings, scenario.sweep.duration_s), scenario)
    except ValueError as e:
        return str(e)
    rate = plan.settings.rate
    if rate == "max":
        return "rate 'max' has no due times: nobody could tell what was late"
    # Copies of a message are late together: it is messages that count, whoever receives them.
    return impossible(scenario.slo, float(rate) * plan.duration_s * publishers)


def too_short(scenario: Scenario) -> str:
    """What has to be known of a step that ends before it could say yes, or ""."""
    from hydra.measure.slo import shortest_s

    least_s, duration_s = shortest_s(scenario.slo), scenario.sweep.duration_s
    if duration_s >= least_s:
        return ""
    stalls = f"where a stall may cost {scenario.slo.stall_s:g} s of traffic (--stall), it takes at least {least_s} s"
    return f"{duration_s:g} s can say no or unknown, but not yes: {stalls} (--duration)"
