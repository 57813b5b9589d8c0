"""Commands that take a scenario as an argument have the flags of the command that is made for scenarios like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from hydra.errors import ConfigError, UsageError
from hydra.options import CLUSTER, COMPARISON, OUTPUT, RUN, ExperimentCommand, LateCommand, ScenarioCommand, group_of
from hydra.options.command import SCENARIO
from hydra.options.plugin_commands import commands

Like = ScenarioCommand | ExperimentCommand

_LIKE: Final = "hydra.like"
"""Where a context keeps the command whose flags the scenario has."""
_OF_RUNS: Final = (RUN, OUTPUT, CLUSTER, COMPARISON)
"""Groups of flags that say nothing of the scenario."""
_ARGUMENT: Final = "scenario"


class OfScenario(LateCommand):
    """A command with an argument ``scenario``: it has the flags of the command for scenarios of its system and table.

    They are known once the scenario is: ``hydra run mine.toml --help`` shows them.

    Args:
        table: the table that the command makes of every scenario; "": it leaves the scenario's.
    """

    def __init__(self, *args: Any, table: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._table = table

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuses what is no scenario, and flags that the scenario's system does not have."""
        own = self.get_params(ctx)
        word = _scenario_among(args, own) or _default(own)
        asks_only = ctx.resilient_parsing or any(each in ctx.help_option_names for each in args)
        try:
            ctx.meta[_LIKE] = command_like(word, self._table) if word else None
            ctx.meta[SCENARIO] = word
        except ConfigError:
            if not asks_only:
                raise
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            raise _of_others(word, e.option_name, like_of(ctx)) or e from e

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own, and those of the scenario as far as that is known."""
        own = super().get_params(ctx)
        like = like_of(ctx)
        if like is None:
            return own
        names = {param.name for param in own}
        taken = {opt for param in own for opt in param.opts}
        theirs = [
            param
            for param in like.get_params(ctx)
            if isinstance(param, click.Option) and group_of(param) not in _OF_RUNS and param.name != "listed"
            if param.name not in names and not taken & {*param.opts}
        ]
        return [*theirs, *own]


def like_of(context: click.Context) -> Like | None:
    """The command whose flags the scenario of this one has; None: it is not known."""
    like: Like | None = context.meta.get(_LIKE)
    return like


def replaced_by(context: click.Context) -> Mapping[str, object] | None:
    """What the flags without a key replace in the scenario."""
    like = like_of(context)
    return like.replaced(**context.params) if like is not None else None


def command_like(scenario: str, table: str = "") -> Like | None:
    """The command whose flags a scenario has: the one for its system and its table, or for a published experiment.

    Args:
        scenario: as a command line has it.
        table: what its table is made; "": it stays as it is.

    Raises:
        ConfigError: there is no such scenario, or it is no TOML file.
    """
    from hydra.config.file_locations import experiment_named

    experiment = experiment_named(scenario)
    if experiment is not None:
        own = (c for c in _commands() if isinstance(c, ExperimentCommand) and c.system == experiment.system)
        return next((c for c in own if c.one in ("", scenario)), None)
    its = _subject(scenario)  # refused before all commands are imported
    if table:
        its, scenario = _Subject(its.system, table, searches=False), ""
    known = [(_distance(c, scenario, its), c) for c in _commands() if isinstance(c, ScenarioCommand)]
    near = [(distance, c) for distance, c in known if distance is not None]
    return min(near, key=itemgetter(0))[1] if near else None


class _Subject(NamedTuple):
    """What decides on the flags of a scenario."""

    system: str
    table: str
    searches: bool


def _distance(command: ScenarioCommand, scenario: str, its: _Subject) -> int | None:
    """How far a command is from a scenario; None: it is of another system."""
    other = _subject(command.scenario)
    if other.system != its.system:
        return None
    if str(command.scenario) == scenario:
        return 0
    return 1 if other.table == its.table else 2 if other.searches == its.searches else 3


def _subject(scenario: str | Path) -> _Subject:
    from hydra.config.file_locations import scenario_path, scenarios
    from hydra.config.plugins import table_kind
    from hydra.config.toml import read

    data = read(scenario_path(scenario), lambda: f"known scenarios: {', '.join(scenarios())}")
    sweep = data.get("sweep")
    return _Subject(
        str(data.get("system")), table_kind(str(data.get("table"))), isinstance(sweep, dict) and "search" in sweep
    )


def _commands() -> Iterator[Like]:
    for load in commands({}).values():
        command = load()
        if isinstance(command, ScenarioCommand | ExperimentCommand):
            yield command


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


def _of_others(scenario: str, flag: str, like: Like | None) -> UsageError | None:
    """Why a flag is refused that other commands have; None: none has it."""
    if like is None:
        return None
    owners = [each for each in _commands() if any(flag in param.opts for param in _params(each))]
    if not owners:
        return None
    remedy = f"leave out {flag}"
    if any(flag in param.opts for param in _params(like)):
        return UsageError(f"{flag} is a flag of hydra {like.name}, and not of this command", remedy)
    if all(isinstance(each, ExperimentCommand) for each in owners):
        return UsageError(f"{flag} is for published experiments, and {scenario} is none", remedy)
    if isinstance(like, ExperimentCommand):
        return UsageError(f"{flag} is for scenarios, and {scenario} is a published experiment", remedy)
    its = _subject(like.scenario).system
    of_systems = [(_subject(each.scenario).system, each) for each in owners if isinstance(each, ScenarioCommand)]
    names = [f"hydra {each.name}" for system, each in of_systems if system == its]
    if names:
        what = f"{flag} is a flag of {' and '.join(names)}, and {scenario} has those of hydra {like.name}"
    else:
        systems = sorted({system for system, _ in of_systems})
        what = f"{flag} is for system {' or '.join(systems)}, and {scenario} is of {its}"
    return UsageError(what, remedy)


def _params(command: click.Command) -> list[click.Parameter]:
    return command.get_params(click.Context(command, resilient_parsing=True))


def values_of(context: click.Context) -> dict[str, Any]:
    """The flags of the command that runs by name, without the scenario."""
    return {name: value for name, value in context.params.items() if name != _ARGUMENT}
