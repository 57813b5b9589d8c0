"""``hydra run`` and ``hydra slo``: commands that measure any scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hydra.options.help import flags
from hydra.options.late_commands import overrides
from hydra.options.plugin_commands import refuse_comparing
from hydra.options.scenario_commands import MEASURE, RunCommands, ScenarioCommand, values_of
from hydra.options.setting_flags import implementation_flag, preset_flag
from hydra.options.shared_flags import comparing_flags, run_flags, slo_flags

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_F = TypeVar("_F", bound=Callable[..., Any])
USUAL: Final = "zmqrate"
"""The default scenario of commands that take one."""


def scenario_argument(**attributes: Any) -> Callable[[_F], _F]:
    """The argument that names a scenario; a shell completes the names of Hydra's scenarios and experiments."""

    def complete(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from hydra.config.file_locations import experiments, scenarios

        names = [name for name in (*scenarios(), *experiments()) if name.startswith(incomplete)]
        # If no name matches, the word is completed as a file.
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]

    return click.argument("scenario", shell_complete=complete, **attributes)


def _scenario(scenario: str | Path, replaced: Mapping[str, object], values: Mapping[str, Any]) -> None:
    from hydra.cli.scenario_execution import run_scenario

    run_scenario(scenario, replaced, values)


def _experiment(system: str, name: str, replaced: Mapping[str, object], values: Mapping[str, Any]) -> None:
    from hydra.experiments.experiment import find

    if name or values["resume"] is None:
        find(system, name)

    from hydra.cli.experiment_execution import run_experiment

    run_experiment(system, name, replaced, values)


def _experiments(system: str, as_json: bool) -> None:
    from hydra.cli.experiment_listing import list_experiments

    list_experiments(system, as_json)


def _presets(system: str, as_json: bool) -> None:
    from hydra.cli.experiment_listing import list_presets

    list_presets(system, as_json)


def _begun(folder: Path) -> str:
    from hydra.cli.scenario_execution import begun

    return begun(folder)


RUNS: Final = RunCommands(_scenario, _experiment, _experiments, _presets, _begun)
"""The functions that commands of systems call to run scenarios and experiments."""


@click.command(
    "run",
    cls=ScenarioCommand,
    flags=flags(preset_flag, comparing_flags, run_flags, scenario_argument(required=True)),
    section=MEASURE,
    examples=(
        "hydra run ./mine.toml --subscribers 10,50 --out runs/mine",
        "hydra run ./mine.toml --set sweep.duration_s=2.0 --json",
        "hydra run ./mine.toml --help",
    ),
)
@click.pass_context
def run_(context: click.Context, /, scenario: str, **_: Any) -> None:
    """Run a scenario or a published experiment.

    SCENARIO is a name from conf/scenarios, a TOML file, or the name of an experiment. hydra run SCENARIO --help shows
    the flags of the scenario's system, or of the experiment, too. With --resume DIR, SCENARIO is that of the run in
    DIR unless you name one.
    """
    from hydra.config.file_locations import experiment_named

    runs: RunCommands = context.obj
    replaced, values = overrides(), values_of(context)
    if experiment_named(scenario) is not None:
        refuse_comparing(scenario, values)
        runs.experiment("", scenario, replaced, values)
    else:
        runs.scenario(scenario, replaced, values)


@click.command(
    cls=ScenarioCommand,
    flags=flags(slo_flags, preset_flag, implementation_flag(), run_flags, scenario_argument(required=True)),
    steady=True,
    section=MEASURE,
    examples=("hydra slo ./mine.toml --subscribers 10 --rate 500 --duration 10min --p99 20ms --loss 0",),
)
@click.pass_context
def slo(context: click.Context, /, scenario: str, **_: Any) -> None:
    """Answer whether a workload holds.

    The answer is yes (exit code 0), no or unknown (3), with the margin of each objective.

    hydra slo SCENARIO --help shows the flags of the scenario's system, too.
    """
    from hydra.cli.slo_command import run_slo

    run_slo(scenario, overrides(), values_of(context))
