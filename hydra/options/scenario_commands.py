"""Commands that run a scenario or an experiment; if it is an argument, they have the flags of its system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from hydra.errors import ConfigError, UsageError
from hydra.options.flag_types import ByteCountRange, FiniteFloatRange, WholeNumberRange
from hydra.options.help import EXPERIMENT, OF_RUNS, SEARCH, SYSTEM, flags, group_of, grouped, put
from hydra.options.late_commands import SCENARIO, Command, ScenarioKeyOption, SeveralKeysOption, first_of, overrides
from hydra.options.plugin_commands import commands, params_of
from hydra.options.setting_flags import system_flags
from hydra.options.shared_flags import (
    comparing_flags,
    duration_flag,
    experiment_flags,
    kind_flags,
    list_flag,
    name_argument,
    presets_flag,
    published_flag,
    run_flags,
    sweep_flags,
)

if TYPE_CHECKING:
    from hydra.config.experiment_file import OptionEntry

_F = TypeVar("_F", bound=Callable[..., Any])

Replaced = Callable[..., Mapping[str, object] | None]
"""A function that takes all flags by name, and returns values by dotted key for the flags that have no key."""

MEASURE: Final = "Measure"
"""The section of these commands in the list of commands."""


class RunCommands(NamedTuple):
    """The functions that commands of systems call to run something; a command's context holds them.

    Attributes:
        scenario: runs a scenario with these overrides and the values of ``run_flags``.
        experiment: runs the experiment with this name ("": the one that is resumed) of this system in the same way; the
            values include those of ``experiment_flags``.
        experiments: prints the experiments of this system, as JSON or as a table.
        presets: prints the presets of this system, as JSON or as tables.
        begun: the scenario or experiment of the run in a folder, as a command line has it.
    """

    scenario: Callable[[str | Path, Mapping[str, object], Mapping[str, Any]], None]
    experiment: Callable[[str, str, Mapping[str, object], Mapping[str, Any]], None]
    experiments: Callable[[str, bool], None]
    presets: Callable[[str, bool], None]
    begun: Callable[[Path], str]


_FLAGS: Final = "hydra.flags"
"""The key under which a context stores the flags of its scenario."""
_ARGUMENT: Final = "scenario"


class ScenarioCommand(Command):
    """A command that runs a scenario or published experiments.

    Without a scenario or experiments of its own, an argument names the scenario, and the command has the flags of its
    system, too, once the scenario is known: ``hydra run mine.toml --help`` shows them.

    Arguments:
        scenario: the name or path of the scenario that the command runs.
        experiments: the name of the system whose experiments it runs.
        steady: whether it runs every scenario as steps at a given rate.
    """

    def __init__(
        self, *args: Any, scenario: str | Path = "", experiments: str = "", steady: bool = False, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.scenario, self.experiments, self._steady = scenario, experiments, steady

    @property
    def subject(self) -> _Subject | None:
        """The scenario or the experiments of the command; None: its argument names them."""
        if self.experiments:
            return _Subject(self.experiments, experiment=True)
        return _subject(self.scenario) if self.scenario else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments; the error about an unknown flag names the key or the command that it belongs to.

        Raises:
            ConfigError: the argument names no scenario.
        """
        if self.scenario or self.experiments:
            with _unknown_flags(f"hydra {ctx.info_name}", lambda: self.subject):
                return super().parse_args(ctx, args)
        own = self.get_params(ctx)
        word, args = _named_scenario(ctx, args, own)
        its = None
        try:
            its = _subject(word) if word else None
            if its is not None and self._steady:
                its = its._replace(sweep=(), published=False)
            ctx.meta[_FLAGS] = _flags_of(its) if its else []
            ctx.meta[SCENARIO] = word
        except ConfigError:
            if not _asks_only(ctx, args):
                raise
        with _unknown_flags(f"hydra {ctx.info_name} {word}", lambda: its):
            return super().parse_args(ctx, args)

    def check_first(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Rejects an unknown scenario if it is the first word, without the flags, which take longer to make.

        Raises:
            ConfigError: there is no such scenario.
        """
        from hydra.config.file_locations import is_scenario, scenario_path

        named = not (self.scenario or self.experiments) and args and not args[0].startswith("-")
        if named and not _asks_only(ctx, args) and not is_scenario(args[0]):
            scenario_path(args[0])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, and the flags of the scenario if its argument names it."""
        own = super().get_params(ctx)
        taken = {name for param in own for name in (param.name, *param.opts)}
        added = [each for each in ctx.meta.get(_FLAGS, ()) if not taken & {each.name, *each.opts}]
        return [*added, *own]


def scenario_command(
    name: str, scenario: str | Path, *options: Callable[[_F], _F], examples: Sequence[str] = ()
) -> Callable[[Replaced], click.Command]:
    """Makes a command that runs a scenario from a function, whose docstring becomes the command's help.

    The function gets all flags by name, and returns values by dotted key for the flags that have no key.

    Args:
        name: the command's name.
        scenario: the scenario's name or path.
        options: flags in addition to those of every scenario; flags without a group are shown in the system's group.
        examples: complete command lines.
    """

    def decorate(function: Replaced) -> click.Command:
        def callback(**values: Any) -> None:
            runs: RunCommands = click.get_current_context().obj
            runs.scenario(scenario, overrides(function(**values)), values)

        def published(command: _F) -> _F:
            return published_flag(command) if _subject(scenario).published else command

        callback.__doc__ = function.__doc__
        return click.command(
            name,
            cls=ScenarioCommand,
            scenario=scenario,
            flags=flags(sweep_flags, published, grouped(SYSTEM, *options), comparing_flags, run_flags),
            examples=examples,
            section=MEASURE,
        )(callback)

    return decorate


def experiment_command(
    name: str, system: str, *options: Callable[[_F], _F], one: str = "", examples: Sequence[str] = ()
) -> Callable[[Replaced], click.Command]:
    """Makes a command that runs published experiments from a function; see :func:`scenario_command`.

    The command also has the own flags of these experiments.

    Args:
        name: the command's name.
        system: the name of the experiments' system (``Published.folder``).
        options: additional flags.
        one: the experiment that the command runs; "" for the one that the user names.
        examples: complete command lines.
    """

    def decorate(function: Replaced) -> click.Command:
        def callback(experiment: str = one, listed: str = "", **values: Any) -> None:
            runs: RunCommands = click.get_current_context().obj
            if listed:
                (runs.presets if listed == "presets" else runs.experiments)(system, values["as_json"])
            else:
                runs.experiment(system, experiment or "", overrides(function(**values)), values)

        callback.__doc__ = function.__doc__
        named = [] if one else [name_argument, list_flag, presets_flag]
        own = flags_of_experiments(system, one)
        return click.command(
            name,
            cls=ScenarioCommand,
            experiments=system,
            flags=flags(*named, experiment_flags, own, grouped(SYSTEM, *options), run_flags),
            examples=examples,
            section=MEASURE,
        )(callback)

    return decorate


def flags_of_experiments(system: str, one: str) -> Callable[[_F], _F]:
    """The own flags of a system's experiments, or of one of them; each name occurs once."""

    def decorate(command: _F) -> _F:
        from hydra.config.file_locations import experiments

        known = [each for each in experiments(system).values() if one in ("", each.name)]
        options = {entry.name: _option(entry) for each in known for entry in each.options}
        for option in options.values():
            put(option, EXPERIMENT)
        command.params += reversed(options.values())  # type: ignore[attr-defined]  # of a LateCommand
        return command

    return decorate


def _option(entry: OptionEntry) -> click.Option:
    """The flag of an experiment."""
    kinds: Mapping[str, click.ParamType[Any]] = {
        "count": WholeNumberRange(entry.least, entry.most),
        "number": FiniteFloatRange(entry.least, entry.most),
        "bytes": ByteCountRange(entry.least, entry.most),
    }
    return click.Option([entry.flag], type=kinds[entry.kind], metavar=entry.metavar, help=entry.help)


class _Subject(NamedTuple):
    """The properties of a scenario or an experiment that decide which flags it has.

    Attributes:
        system: name of the system.
        experiment: whether it is an experiment.
        sweep: keys of the scenario's table [sweep].
        varied: names of the settings that the scenario varies.
        published: whether the scenario has the values of a published sweep.
    """

    system: str
    experiment: bool = False
    sweep: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    published: bool = False

    def is_run_by(self, command: ScenarioCommand) -> bool:
        """Whether a command is for this kind of subject, of the same system."""
        return bool(command.experiments) == self.experiment and _system_of(command) == self.system


def _subject(scenario: str | Path) -> _Subject:
    """The properties of the scenario or experiment that a command line names.

    Raises:
        ConfigError: there is no such scenario, or its file is not TOML.
    """
    from hydra.config.file_locations import experiment_named, scenario_path, scenarios
    from hydra.config.layers import read_toml

    experiment = experiment_named(str(scenario))
    if experiment is not None:
        return _Subject(experiment.system, experiment=True)
    data = read_toml(scenario_path(scenario), lambda: f"known scenarios: {', '.join(scenarios())}")
    sweep = data.get("sweep")
    sweep = sweep if isinstance(sweep, dict) else {}
    vary = sweep.get("vary")
    varied = tuple(vary) if isinstance(vary, dict) else ()
    return _Subject(str(data.get("system")), False, tuple(sweep), varied, "published" in data)


def _flags_of(its: _Subject) -> list[click.Option]:
    """The flags of a scenario: those of its fields, and further flags of its system's commands."""
    from hydra.config import plugins
    from hydra.sweep import kind_with

    if its.system not in plugins.systems():
        return []
    kind = kind_with(its.sweep)
    if its.experiment:
        own = flags(experiment_flags, flags_of_experiments(its.system, ""))
        system_part = system_flags(its.system, experiment=True)
    else:
        published = [published_flag] if its.published else []
        own = flags(sweep_flags, *published, duration_flag, kind_flags(kind.key))
        system_part = system_flags(its.system, varied=dict.fromkeys(its.varied, ""))
    made = params_of(Command("", flags=flags(own, grouped(SYSTEM, system_part))))
    others = [
        param
        for command in _commands(its)
        for param in params_of(command)
        if isinstance(param, SeveralKeysOption)
        or (
            isinstance(param, ScenarioKeyOption)
            and param.key != "published"
            and param.key.removeprefix("settings.") not in kind.spec.decided
            and (kind.spec.decided or group_of(param) != SEARCH)
        )
    ]
    found = first_of([*made, *others])
    return [each for each in found if isinstance(each, click.Option) and group_of(each) not in OF_RUNS]


def _commands(its: _Subject | None = None) -> Iterator[ScenarioCommand]:
    """The commands of systems that run scenarios or experiments; with a subject, those of its kind and system."""
    for load in commands({}).values():
        command = load()
        if isinstance(command, ScenarioCommand) and not command.hidden and (its is None or its.is_run_by(command)):
            yield command


def _asks_only(ctx: click.Context, args: Sequence[str]) -> bool:
    """Whether a command line asks for help, or a shell completes it."""
    return ctx.resilient_parsing or any(each in ctx.help_option_names for each in args)


def _system_of(command: ScenarioCommand) -> str:
    return command.experiments or _subject(command.scenario).system


def _named_scenario(ctx: click.Context, args: list[str], own: Sequence[click.Parameter]) -> tuple[str, list[str]]:
    """The word of a command line that names the scenario, or its default, "" if there is none; and the command line.

    With ``--resume`` alone, the scenario is that of the run, which is added to the command line.
    """
    word = _scenario_among(args, own)
    for param in own if not word else ():
        if param.name == _ARGUMENT and isinstance(param.default, str):
            word = param.default
    folders = [each.partition("=")[2] for each in args if each.startswith("--resume=")]
    folders += [value for flag, value in pairwise(args) if flag == "--resume"]
    if not word and folders and folders[-1] and isinstance(ctx.obj, RunCommands):
        word = ctx.obj.begun(Path(folders[-1]))
        args = [*args, word]
    return word, args


def _scenario_among(args: Sequence[str], own: Sequence[click.Parameter]) -> str:
    """The word of a command line that names the scenario; "" if there is none.

    Only of the command's own flags is known whether they take a value, so the first word that can be a scenario counts.
    """
    from hydra.config.file_locations import is_scenario

    flags = {opt: param for param in own for opt in param.opts if isinstance(param, click.Option)}
    words: list[str] = []
    rest = iter(args)
    for word in rest:
        if word == "--":
            words += rest
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            flag = flags.get(name)
            if flag is not None and not flag.is_flag and not equals:
                next(rest, None)
        else:
            words.append(word)
    return next((word for word in words if is_scenario(word)), words[0] if words else "")


@contextmanager
def _unknown_flags(where: str, subject: Callable[[], _Subject | None]) -> Iterator[None]:
    """Turns the error about an unknown flag into one that names what the user may mean, if that is known.

    Args:
        where: the command, with its scenario if that is an argument.
        subject: the properties of the scenario; None: the scenario is unknown.
    """
    try:
        yield
    except click.NoSuchOption as e:
        its = subject()
        if its is None or not e.option_name.startswith("--"):
            raise
        better = (
            _never(its, e.option_name)
            or _key_without_flag(where, its, e.option_name)
            or _of_others(where, its, e.option_name)
        )
        raise (better or e) from e


def _never(its: _Subject, flag: str) -> UsageError | None:
    """The error for a flag that users of this system expect, of something that Hydra cannot do; None for another."""
    from hydra.config import plugins

    if its.system not in plugins.systems():
        return None
    what = plugins.system(its.system).published.cannot.get(flag)
    return UsageError(f"{flag}: {what}", "leave it out") if what else None


def _key_without_flag(where: str, its: _Subject, flag: str) -> UsageError | None:
    """The error for a flag that is the name of a key of the scenario; None if it is none.

    Args:
        where: the command with its scenario, as text.
        its: the properties of the scenario.
        flag: the flag as the user wrote it.
    """
    from hydra.config import plugins
    from hydra.config.fields import key_named
    from hydra.sweep import kind_with

    if its.system not in plugins.systems():
        return None
    name, kind = flag.removeprefix("--").replace("-", "_"), kind_with(its.sweep)
    if name in kind.spec.decided and not its.experiment:
        return None
    tables = () if its.experiment else tuple(f"sweep.{each}" for each in kind.uses)
    key = key_named(name, plugins.system(its.system), tables)
    if not key:
        return None
    use, file = f"--set {key}=VALUE", f"{flag}-file"
    if any(file in param.opts for each in _commands() for param in params_of(each)):
        use = f"{file} FILE, which no other user can read; or {use}"
    return UsageError(f"{flag}: {where} has no such flag, but the scenario has the key {key}", f"use {use}")


def _of_others(where: str, its: _Subject, flag: str) -> UsageError | None:
    """The error for a flag that only other commands have; None if no command has it.

    Args:
        where: the command with its scenario, as text.
        its: the properties of the scenario.
        flag: the flag as the user wrote it.
    """
    from hydra.sweep import kind_with

    owners = [each for each in _commands() if any(flag in param.opts for param in params_of(each))]
    if not owners:
        return None
    runs = [each for each in owners if bool(each.experiments) == its.experiment]
    names = [f"hydra {each.name}" for each in runs if _system_of(each) == its.system]
    scenario = where.rpartition(" ")[2]
    kind, name = kind_with(its.sweep), flag.removeprefix("--")
    if names and name in kind.spec.decided and not its.experiment:
        first = [f"--start-{name} for the first {name}"] if f"sweep.search.start_{name}" in kind.flags else []
        use = [f"give {each}" for each in first] + [f"use {each} {flag}" for each in names]
        return UsageError(f"{flag}: {where} searches for a {name}, so none is given", ", or ".join(use))
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
    """The values of the running command's flags by name, without the scenario."""
    return {name: value for name, value in context.params.items() if name != _ARGUMENT}
