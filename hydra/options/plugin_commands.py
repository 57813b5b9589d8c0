"""What systems and engines add to the ``hydra`` command: commands, and flags of Hydra's own commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING

import click

from hydra.config import plugins
from hydra.config.plugins import engines
from hydra.errors import ConfigError, UsageError
from hydra.options.help import CLUSTER, put

if TYPE_CHECKING:
    from hydra.engine.specification import EngineSpec


def commands(own: Mapping[str, click.Command]) -> dict[str, Callable[[], click.Command]]:
    """Every command by its name, each as a function that imports it.

    Args:
        own: Hydra's own commands.

    Raises:
        ConfigError: a package adds a name that exists already, or its commands cannot be imported.
    """
    found: dict[str, Callable[[], click.Command]] = {name: partial(own.__getitem__, name) for name in own}
    listed = plugins.commands()
    for name in listed:
        if name in found:
            raise _taken(plugins.entry_points(plugins.COMMANDS)[name], f"command {name}")
        found[name] = partial(listed.__getitem__, name)
    for spec in (engines()[name] for name in plugins.without_commands()):
        for command in spec.commands:
            if str(command.name) in found:
                raise _taken(spec.name, f"command {command.name}")
            found[str(command.name)] = partial(_itself, command)
    return found


def params_of(command: click.Command) -> list[click.Parameter]:
    """The arguments and flags of a command, without a command line."""
    return command.get_params(click.Context(command, resilient_parsing=True))


def _itself(command: click.Command) -> click.Command:
    return command


def add_flags(command: click.Command, context: click.Context) -> None:
    """Adds the flags of the engines to a command; a flag that several engines share is added once.

    The command's own flags decide which flags it gets: a command with ``--master`` queries a cluster, one with
    ``--set``, too, concerns a scenario's groups, and one with ``--resume`` runs them.

    Raises:
        ConfigError: an engine cannot be loaded, or adds a flag that exists already.
    """
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    for option in options:
        if option.name == "master" and not option.help:
            option.help = f"Cluster: {masters()}."
    names = {str(option.name) for option in options}
    if "master" not in names:
        return
    # A command that requires --master is an engine's own.
    of_any = not any(option.name == "master" and option.required for option in options)
    brought = {name: _flags_for(names, spec, of_any=of_any) for name, spec in engines().items()}
    brought_flags = [flag for flags in brought.values() for flag in flags]
    for flag in brought_flags:
        put(flag, CLUSTER)
    for engine, flags in brought.items():
        for flag in flags:
            if any(
                option in brought_flags and (option.name, option.opts) == (flag.name, flag.opts) for option in options
            ):
                continue
            if any(set(flag.opts) & set(option.opts) or flag.name == option.name for option in options):
                raise _taken(engine, f"flag {flag.opts[0]} of hydra {command.name}")
            options.append(flag)
            command.params.append(flag)


def _flags_for(names: Set[str], spec: EngineSpec, *, of_any: bool) -> list[click.Option]:
    """The engine's flags for a command whose own flags have these names, ``master`` among them.

    Args:
        names: the names.
        spec: the engine.
        of_any: whether the command is for any engine.
    """
    groups, whole, flags = "sets" in names, "resume" in names, spec.flags
    shorthand = (flags.shorthand,) if flags.shorthand is not None and of_any else ()
    return [*shorthand, *flags.cluster, *(flags.groups if groups else ()), *(flags.run if whole else ())]


def _taken(who: str, what: str) -> ConfigError:
    return ConfigError(f"{who} adds the {what}, which exists already", "remove its package")


def masters() -> str:
    """The possible values of ``--master``, as text for users."""
    return ", or ".join(spec.masters for spec in engines().values())


def refuse_comparing(experiment: str, flags: Mapping[str, object]) -> None:
    """Rejects the flags that compare runs, because an experiment does not have them.

    Raises:
        UsageError: such a flag was given.
    """
    if flags["compared"] is not None or flags["interleave"] is not None:
        raise UsageError(
            f"{experiment} is an experiment, whose runs are not interleaved",
            "name them with --implementation, and compare the folders of its parts",
        )
