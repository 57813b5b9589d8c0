"""Commands that run a scenario or an experiment: what they are made of, and what is done for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from hydra.options.command import LateCommand, overrides
from hydra.options.help_sections import EXPERIMENT, SYSTEM, flags, grouped, put
from hydra.options.shared import (
    comparing_flags,
    experiment_flags,
    list_flag,
    name_argument,
    presets_flag,
    run_flags,
    sweep_flags,
)

_F = TypeVar("_F", bound=Callable[..., Any])

Replaced = Callable[..., Mapping[str, object] | None]
"""What a command makes of those of its flags that have no key: values by dotted key; it takes all flags by name."""

MEASURE: Final = "Measure"
"""The section of these commands in a list."""


class Runs(NamedTuple):
    """What commands of systems, which know nothing of runs, have done for them: the object of a command's context.

    Attributes:
        scenario: runs a scenario with these overrides and the values of ``run_flags``.
        experiment: runs the experiment of this name ("": the one that is resumed) of this system, likewise; the values
            are those of ``experiment_flags`` as well.
        experiments: prints the experiments of this system, as JSON or as a table.
        presets: prints the presets of this system, likewise.
    """

    scenario: Callable[[str | Path, Mapping[str, object], Mapping[str, Any]], None]
    experiment: Callable[[str, str, Mapping[str, object], Mapping[str, Any]], None]
    experiments: Callable[[str, bool], None]
    presets: Callable[[str, bool], None]


class ScenarioCommand(LateCommand):
    """A command that runs one scenario.

    Attributes:
        scenario: its name or path.
        replaced: what the command makes of flags without a key.
    """

    def __init__(self, *args: Any, scenario: str | Path, replaced: Replaced, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.scenario, self.replaced = scenario, replaced


class ExperimentCommand(LateCommand):
    """A command that runs published experiments.

    Attributes:
        system: whose.
        one: the only one; "": all of the system's.
        replaced: as of :class:`ScenarioCommand`.
    """

    def __init__(self, *args: Any, system: str, one: str, replaced: Replaced, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.system, self.one, self.replaced = system, one, replaced


def scenario_command(
    name: str, scenario: str | Path, *options: Callable[[_F], _F], examples: Sequence[str] = ()
) -> Callable[[Replaced], click.Command]:
    """Makes a command that runs a scenario of a function, whose docstring is the command's help.

    The function gets the flags that were given, and returns what it makes of those without a key.

    Args:
        name: the command's.
        scenario: a scenario's name or path.
        options: flags of its own, beside those of every scenario; those without a group are shown as the system's.
        examples: whole command lines.
    """

    def decorate(function: Replaced) -> click.Command:
        def callback(**values: Any) -> None:
            runs: Runs = click.get_current_context().obj
            runs.scenario(scenario, overrides(function(**values)), values)

        callback.__doc__ = function.__doc__
        return click.command(
            name,
            cls=ScenarioCommand,
            scenario=scenario,
            replaced=function,
            flags=flags(sweep_flags, grouped(SYSTEM, *options), comparing_flags, run_flags),
            examples=examples,
            section=MEASURE,
        )(callback)

    return decorate


def experiment_command(
    name: str, system: str, *options: Callable[[_F], _F], one: str = "", examples: Sequence[str] = ()
) -> Callable[[Replaced], click.Command]:
    """Makes a command that runs published experiments of a function; see :func:`scenario_command`.

    The flags that these experiments have of their own are its flags.

    Args:
        name: the command's.
        system: whose experiments (``SystemSpec.experiments``).
        options: flags of its own.
        one: the experiment that it runs; "": the one that the user names.
        examples: whole command lines.
    """

    def decorate(function: Replaced) -> click.Command:
        def callback(experiment: str = one, listed: str = "", **values: Any) -> None:
            runs: Runs = click.get_current_context().obj
            if listed:
                (runs.presets if listed == "presets" else runs.experiments)(system, values["as_json"])
            else:
                runs.experiment(system, experiment or "", overrides(function(**values)), values)

        callback.__doc__ = function.__doc__
        named = [] if one else [name_argument, list_flag, presets_flag]
        own = flags_of_experiments(system, one)
        return click.command(
            name,
            cls=ExperimentCommand,
            system=system,
            one=one,
            replaced=function,
            flags=flags(*named, experiment_flags, own, grouped(SYSTEM, *options), run_flags),
            examples=examples,
            section=MEASURE,
        )(callback)

    return decorate


def flags_of_experiments(system: str, one: str) -> Callable[[_F], _F]:
    """The own flags of a system's experiments, or of one of them, each once by its name."""

    def decorate(command: _F) -> _F:
        from hydra.config.file_locations import experiments

        known = [each for each in experiments(system).values() if one in ("", each.name)]
        options = {option.name: option for each in known for option in each.options}
        for option in options.values():
            put(option, EXPERIMENT)
        command.params += reversed(options.values())  # type: ignore[attr-defined]  # of a LateCommand
        return command

    return decorate
