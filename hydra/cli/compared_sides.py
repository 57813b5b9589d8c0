"""The runs that a command compares: from the values of one setting, or from quoted commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource

from hydra.cli.chosen_clients import CLIENT
from hydra.config.fields import words_of
from hydra.config.layers import parse_set
from hydra.errors import UsageError
from hydra.options.help import OF_RUNS, group_of
from hydra.options.late_commands import ScenarioKeyOption
from hydra.options.scenario_commands import RunCommands
from hydra.store.redaction import HIDDEN, Redactor

COMPARE: Final = "--compare"
_UNSAFE: Final = re.compile(r"[^\w.+=-]+")
_MOST_CHARACTERS: Final = 60
"""The longest name of a folder that is made from a value."""
_ROWS: Final = ("sweep.", "name", "system", "table", "events", "preset", "description")
"""Keys that decide which rows are measured, or that are no settings."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A run to compare with others.

    Attributes:
        scenario: the scenario's name or path.
        replaced: the keys that this run replaces, and the others do not, or with another value.
        command: the command that names the run; "": it differs from the others in one setting.
    """

    scenario: str
    replaced: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


def sides_of_setting(
    text: str, scenario: str | Path, replaced: Mapping[str, object], context: click.Context
) -> dict[str, ComparedSide]:
    """The runs of ``--compare SETTING=A,B``, by their folder; a repeated value shows the effect of chance.

    Args:
        text: the setting and its values, or the names of implementations.
        scenario: the scenario of all runs.
        replaced: what the command replaces in all of them.
        context: the context of the command, whose flags name keys and convert values.

    Raises:
        UsageError: there are fewer than two values, one is wrong or secret, or the setting is set for all runs, too.
    """
    word, equals, values = text.partition("=")
    word, values = (word.strip(), values) if equals else (CLIENT, text)
    option = _option(word, context)
    key = _key(word, option)
    if key.startswith(_ROWS):
        raise UsageError(
            f"{COMPARE} {word}: it decides which rows are measured", "compare two commands: hydra compare --run"
        )
    if key in replaced:
        if key == CLIENT:
            raise UsageError(f"--implementation and {COMPARE} both name implementations", "leave out --implementation")
        raise UsageError(f"{COMPARE} {word}: {key} is given for all runs, too", "leave out one of the two")
    name = "" if key == CLIENT else f"{key.rpartition('.')[2]}-"
    found: dict[str, ComparedSide] = {}
    for value in filter(None, (part.strip() for part in values.split(","))):
        # A word that looks like a number, as in acks=1,all, is a word.
        is_word = key == CLIENT or value in words_of(scenario, key)
        own = {key: value if is_word else _value(word, key, value, option, context)}
        _refuse_secret(word, own)
        found[_free(f"{name}{value}", found)] = ComparedSide(str(scenario), {**own, **_not_varied(key)})
    if len(found) < 2:
        raise UsageError(f"{COMPARE} {text} names fewer than two", "name them with commas in between: A,B")
    return found


def _option(word: str, context: click.Context) -> ScenarioKeyOption | None:
    """The flag of the command that a word names; None: there is none."""
    flag = f"--{word.replace('_', '-')}"
    params = context.command.get_params(context)
    return next((param for param in params if isinstance(param, ScenarioKeyOption) and flag in param.opts), None)


def _key(word: str, option: ScenarioKeyOption | None) -> str:
    """The dotted key of a setting by its key, its flag, or its name."""
    if word in ("implementation", CLIENT):
        return CLIENT
    key = option.key if option else word if "." in word else f"settings.{word.replace('-', '_')}"
    return key.replace("sweep.vary.", "settings.")


def _value(word: str, key: str, text: str, option: ScenarioKeyOption | None, context: click.Context) -> object:
    """The value of a key, converted as behind its flag, or as ``--set`` does if no flag is named.

    Raises:
        UsageError: the flag does not take the text.
    """
    if option is None:
        return parse_set(f"{key}={text}")[1]
    try:
        value = option.value_of(text, context)
    except click.BadParameter as e:
        what = f"{COMPARE} {word}: {e.message.removesuffix('.')}"
        raise UsageError(what, f"write each value as behind {option.opts[0]}") from e
    # The flag of a setting that makes the rows takes several values, and a run has one.
    return value[0] if option.key != key and isinstance(value, list) else value


def _refuse_secret(word: str, own: Mapping[str, object]) -> None:
    """Rejects values that are secrets: folders are named after values.

    Raises:
        UsageError: the text names the setting, and not the value.
    """
    hides = Redactor([])
    if any(HIDDEN in str(hides.value(value, key)) for key, value in own.items()):
        raise UsageError(
            f"{COMPARE} {word}: its values are secrets, and folders are named after values",
            "name the runs with hydra compare --run, each with its own secret",
        )


def _not_varied(key: str) -> dict[str, None]:
    """Removes a setting that is compared from those that make the rows."""
    table, _, name = key.rpartition(".")
    return {f"sweep.vary.{name}": None} if table == "settings" else {}


def sides_of_commands(commands: Sequence[str], root: click.Group) -> dict[str, ComparedSide]:
    """The runs of quoted commands, by their folder.

    Args:
        commands: what stands behind each ``--run``.
        root: the command ``hydra``.

    Raises:
        UsageError: one is no command that runs a scenario, or has flags of the whole comparison.
    """
    found: dict[str, ComparedSide] = {}
    for text in commands:
        name, side = _side(text, root)
        found[_free(name, found)] = side
    if len(found) < 2:
        raise UsageError("one --run names one run", "give --run twice, each with a command in quotes")
    return found


def _side(text: str, root: click.Group) -> tuple[str, ComparedSide]:
    """The run of a command, and a name for its folder."""
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise UsageError(f"--run: {e}", "put the command in quotes, and a value with spaces in other quotes") from e
    words = words[1:] if words[:1] == ["hydra"] else words
    taken: list[ComparedSide] = []

    def take(scenario: str | Path, replaced: Mapping[str, object], _: Mapping[str, Any]) -> None:
        taken.append(ComparedSide(str(scenario), dict(replaced), text))

    def refuse(*_: object) -> NoReturn:
        # Not the whole text: a flag may have a secret.
        name = words[0] if words else ""
        raise UsageError(f"--run {name!r} runs no scenario", "name a command such as 'zmq-rate --subscribers 30'")

    context = click.Context(root, info_name="hydra", obj=RunCommands(take, refuse, refuse, refuse, refuse))
    if not words or words[0] not in root.list_commands(context):
        refuse()
    _, command, rest = root.resolve_command(context, words)
    if command is None or not any(param.name == "compared" for param in command.get_params(context)):
        refuse()
    else:
        with command.make_context(words[0], rest, parent=context) as its:
            _refuse_whole(words[0], its)
            command.invoke(its)
    (side,) = taken
    name = Path(side.scenario).stem if words[0] == "run" else words[0]
    return name, side


def _refuse_whole(name: str, context: click.Context) -> None:
    """Refuses the flags of the comparison, which do not describe what is run."""
    for param in context.command.get_params(context):
        given = context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        if given and group_of(param) in OF_RUNS and not isinstance(param, ScenarioKeyOption) and param.name != "sets":
            raise UsageError(
                f"--run {name!r}: {param.opts[0]} is a flag of the whole comparison", "write it after hydra compare"
            )


def _free(name: str, taken: Mapping[str, object]) -> str:
    """The name of a folder that no other run has."""
    safe = _UNSAFE.sub("-", name)[:_MOST_CHARACTERS].lstrip(".") or "run"
    return next(each for each in _numbered(safe) if each not in taken)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
