"""Commands that take a scenario as an argument have the flags of its system, or of the published experiment it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from hydra.errors import ConfigError, UsageError
from hydra.options import (
    CLUSTER,
    COMPARISON,
    OUTPUT,
    RUN,
    SEARCH,
    SYSTEM,
    ExperimentCommand,
    Keyed,
    LateCommand,
    ScenarioCommand,
    duration_flag,
    experiment_flags,
    flags,
    group_of,
    grouped,
    sweep_flags,
    system_flags,
)
from hydra.options.command import SCENARIO, first_of
from hydra.options.plugin_commands import commands, params_of
from hydra.options.scenarios import flags_of_experiments
from hydra.options.shared import kind_flags

_FLAGS: Final = "hydra.flags"
"""Where a context keeps the flags of its scenario."""
_OF_RUNS: Final = (RUN, OUTPUT, CLUSTER, COMPARISON)
"""Groups of flags that say nothing of the scenario."""
_ARGUMENT: Final = "scenario"


class OfScenario(LateCommand):
    """A command with an argument ``scenario``: it has the flags of the scenario's system.

    They are known once the scenario is: ``hydra run mine.toml --help`` shows them.

    Args:
        steady: whether the command makes steps at a given rate of every scenario.
    """

    def __init__(self, *args: Any, steady: bool = False, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._steady = steady

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuses what is no scenario, and flags that the scenario's system does not have."""
        own = self.get_params(ctx)
        word = _scenario_among(args, own) or _default(own)
        asks_only = ctx.resilient_parsing or any(each in ctx.help_option_names for each in args)
        its = None
        try:
            its = _subject(word) if word else None
            if its is not None and self._steady:
                its = its._replace(sweep=())
            ctx.meta[_FLAGS] = _flags_of(its) if its else []
            ctx.meta[SCENARIO] = word
        except ConfigError:
            if not asks_only:
                raise
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            raise (_of_others(f"hydra {ctx.info_name} {word}", its, e.option_name) if its else None) or e from e

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own, and those of the scenario as far as that is known."""
        own = super().get_params(ctx)
        taken = {name for param in own for name in (param.name, *param.opts)}
        theirs = [each for each in ctx.meta.get(_FLAGS, ()) if not taken & {each.name, *each.opts}]
        return [*theirs, *own]


class _Subject(NamedTuple):
    """What decides on the flags of a scenario or an experiment.

    Attributes:
        system: its name.
        experiment: whether it is one.
        sweep: the keys of its table [sweep].
        varied: the settings that it varies.
    """

    system: str
    experiment: bool = False
    sweep: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()


def _subject(scenario: str | Path) -> _Subject:
    """Of a scenario as a command line has it.

    Raises:
        ConfigError: there is no such scenario, or it is no TOML file.
    """
    from hydra.config.file_locations import experiment_named, scenario_path, scenarios
    from hydra.config.toml import read

    experiment = experiment_named(str(scenario))
    if experiment is not None:
        return _Subject(experiment.system, experiment=True)
    data = read(scenario_path(scenario), lambda: f"known scenarios: {', '.join(scenarios())}")
    sweep = data.get("sweep")
    sweep = sweep if isinstance(sweep, dict) else {}
    vary = sweep.get("vary")
    varied = tuple(vary) if isinstance(vary, dict) else ()
    return _Subject(str(data.get("system")), sweep=tuple(sweep), varied=varied)


def _flags_of(its: _Subject) -> list[click.Option]:
    """The flags of a scenario: those of its fields, and those that commands of its system have beside them."""
    from hydra.config import plugins
    from hydra.sweep import kind_with

    if its.system not in plugins.systems():
        return []
    kind = kind_with(its.sweep)
    if its.experiment:
        own = flags(experiment_flags, flags_of_experiments(its.system, ""))
        theirs = system_flags(its.system, experiment=True)
    else:
        own = flags(sweep_flags, duration_flag, kind_flags(kind.key))
        theirs = system_flags(its.system, varied=dict.fromkeys(its.varied, ""))
    made = params_of(LateCommand("", flags=flags(own, grouped(SYSTEM, theirs))))
    beside = [
        param
        for command in _commands_of(its)
        for param in params_of(command)
        if isinstance(param, Keyed)
        and param.key.removeprefix("settings.") not in kind.decided
        and (kind.decided or group_of(param) != SEARCH)
    ]
    found = first_of([*made, *beside])
    return [each for each in found if isinstance(each, click.Option) and group_of(each) not in _OF_RUNS]


def _commands() -> Iterator[ScenarioCommand | ExperimentCommand]:
    for load in commands({}).values():
        command = load()
        if isinstance(command, ScenarioCommand | ExperimentCommand):
            yield command


def _commands_of(its: _Subject) -> Iterator[ScenarioCommand | ExperimentCommand]:
    """Those that run scenarios, or experiments, of its system."""
    for each in _commands():
        if isinstance(each, ScenarioCommand) != its.experiment and _system_of(each) == its.system:
            yield each


def _system_of(command: ScenarioCommand | ExperimentCommand) -> str:
    return command.system if isinstance(command, ExperimentCommand) else _subject(command.scenario).system


def _scenario_among(args: Sequence[str], own: Sequence[click.Parameter]) -> str:
    """The word of a command line that is the scenario; "": there is none.

    Which flags take a value is known of the command's own ones only: the first word that can be a scenario is it.
    """
    from hydra.config.file_locations import is_scenario

    flags = {opt: param for param in own for opt in param.opts if isinstance(param, click.Option)}
    words: list[str] = []
    it = iter(args)
    for word in it:
        if word == "--":
            words += it
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            flag = flags.get(name)
            if flag is not None and not flag.is_flag and not equals:
                next(it, None)
        else:
            words.append(word)
    return next((word for word in words if is_scenario(word)), words[0] if words else "")


def _default(own: Sequence[click.Parameter]) -> str:
    return next((str(param.default) for param in own if param.name == _ARGUMENT and isinstance(param.default, str)), "")


def _of_others(where: str, its: _Subject, flag: str) -> UsageError | None:
    """Why a flag is refused that other commands have; None: none has it.

    Args:
        where: the command with its scenario.
        its: the scenario.
        flag: as its user wrote it.
    """
    owners = [each for each in _commands() if any(flag in param.opts for param in params_of(each))]
    if not owners:
        return None
    runs = [each for each in owners if isinstance(each, ScenarioCommand) != its.experiment]
    names = [f"hydra {each.name}" for each in runs if _system_of(each) == its.system]
    scenario = where.rpartition(" ")[2]
    if names:
        what = f"{flag} is a flag of {' and '.join(names)}, and not of {where}"
    elif runs:
        systems = sorted({_system_of(each) for each in runs})
        what = f"{flag} is for system {' or '.join(systems)}, and {scenario} is of {its.system}"
    elif its.experiment:
        what = f"{flag} is for scenarios, and {scenario} is a published experiment"
    else:
        what = f"{flag} is for published experiments, and {scenario} is none"
    return UsageError(what, f"leave out {flag}")


def values_of(context: click.Context) -> dict[str, Any]:
    """The flags of the command that runs by name, without the scenario."""
    return {name: value for name, value in context.params.items() if name != _ARGUMENT}
