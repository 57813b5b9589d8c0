"""What systems and engines contribute to the ``hydra`` command: commands, and flags of those that run anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from hydra.cluster.engine import EngineSpec
from hydra.config.places import experiments
from hydra.errors import ConfigError, UsageError
from hydra.plugins import engines, systems
from hydra.system import SystemSpec


def complete(group: click.Group) -> None:
    """Adds what systems and engines bring to the ``hydra`` command, once.

    That is their commands, and engines' flags where a scenario is run. Engines may have a flag in common.

    Raises:
        ConfigError: one cannot be loaded, or brings a name that is taken.
    """
    specs: list[SystemSpec | EngineSpec] = [*systems().values(), *engines().values()]
    for spec in specs:
        for command in spec.commands:
            if group.commands.setdefault(str(command.name), command) is not command:
                raise _taken(spec, f"command {command.name}")
    for command in group.commands.values():
        options = [param for param in command.params if isinstance(param, click.Option)]
        for option in options:
            if option.name == "master" and not option.help:
                option.help = f"{masters()}."
        if not {"master", "resume"} <= {option.name for option in options}:
            continue  # it runs no scenario
        theirs = [flag for engine in engines().values() for flag in engine.flags]
        for engine in engines().values():
            for flag in engine.flags:
                if any(option in theirs and (option.name, option.opts) == (flag.name, flag.opts) for option in options):
                    continue
                if any(set(flag.opts) & set(option.opts) or flag.name == option.name for option in options):
                    raise _taken(engine, f"flag {flag.opts[0]} of hydra {command.name}")
                options.append(flag)
                command.params.append(flag)


def _taken(spec: SystemSpec | EngineSpec, what: str) -> ConfigError:
    return ConfigError(f"{spec.name} brings the {what}, which is there already", "remove its package")


def masters() -> str:
    """What can be written behind ``--master``, for people."""
    return ", or ".join(spec.masters for spec in engines().values())


def add_flags(command: click.Command) -> None:
    """Adds the flags that experiments have of their own to a command that runs any of them."""
    taken = {param.name for param in command.params}
    for option in _own_options():
        if option.name not in taken:
            command.params.append(option)


def refuse_flags(scenario: str, flags: Mapping[str, Any]) -> None:
    """Refuses flags of experiments where a scenario is run.

    Raises:
        UsageError: one was given.
    """
    given = ["--scale"] if flags["scale"] is not None else []
    given += [option.opts[0] for option in _own_options() if flags.get(str(option.name)) is not None]
    if given:
        raise UsageError(f"{given[0]} is for published experiments, and {scenario} is none", f"leave out {given[0]}")


def _own_options() -> list[click.Option]:
    """Each experiment's, once by its name."""
    return list({option.name: option for each in experiments().values() for option in each.options}.values())
