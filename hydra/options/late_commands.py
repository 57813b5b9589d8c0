"""Commands whose flags are made late, and flags that replace keys of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from hydra.errors import ConfigError, RefusedKeyError, UsageError
from hydra.options.flag_types import PERCENT
from hydra.options.help import GroupedHelpCommand, flags

_F = TypeVar("_F", bound=Callable[..., Any])

SCENARIO: Final = "hydra.scenario"
"""The key under which a context stores the scenario that its command line names."""


class Command(GroupedHelpCommand):
    """A command whose errors about a key name the flag that set the key.

    Args:
        flags: a function that adds the flags when the command is used, and not when it is listed; None: it has them.
    """

    def __init__(self, *args: Any, flags: Callable[[click.Command], object] | None = None, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._flags = flags

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The arguments and flags; the first call makes them."""
        if self._flags is not None:
            make, self._flags = self._flags, None
            make(self)
            # Decorators add the last flag first. If two flags have one name, the first is kept.
            self.params = first_of(reversed(self.params))
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except RefusedKeyError as e:
            params = self.get_params(ctx)
            flag = flag_behind(params, ctx.params, e)
            if not flag:
                raise
            raise e.naming(flag, flags_by_name(params)) from e


class CommandPlaces(MutableMapping[str, click.Command]):
    """Commands by name, each imported when it is looked up.

    Args:
        places: ``module:attribute`` of each command by its name.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places: dict[str, str | click.Command] = {**places}

    def __getitem__(self, name: str) -> click.Command:
        found = self._places[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self._places[name] = getattr(import_module(module), attribute)
        return found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class CommandGroup(GroupedHelpCommand, click.Group):
    """A command that has commands of its own."""


def first_of(params: Iterable[click.Parameter]) -> list[click.Parameter]:
    """The parameters, without those that share a flag with an earlier one."""
    found: list[click.Parameter] = []
    taken: set[str] = set()
    for param in params:
        if not taken & {*param.opts}:
            found.append(param)
            taken |= {*param.opts}
    return found


def late_command(
    name: str, *options: Callable[[_F], _F], examples: Sequence[str] = (), section: str = ""
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command from a function, whose docstring becomes the command's help.

    Args:
        name: the command's name.
        options: the arguments and flags.
        examples: complete command lines.
        section: the section of a list of commands that shows this command.
    """
    return click.command(name, cls=Command, flags=flags(*options), examples=examples, section=section)


def old_name(command: click.Command, name: str) -> click.Command:
    """A command by another name that it had, which no list shows."""
    other = copy(command)
    other.name, other.hidden = name, True
    other.params = [*command.params]
    return other


class DerivedOption(click.Option):
    """An option from which its command computes the value of a scenario's key.

    Args:
        key: the dotted key, or a table of which the option sets a part.
    """

    def __init__(self, *args: Any, key: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.key = key

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value, checked against the bounds of its key.

        Raises:
            click.BadParameter: the value is out of bounds.
        """
        value = super().type_cast_value(ctx, value)
        if value is None:
            return None
        from hydra.config.fields import field_of, shared_table
        from hydra.model import out_of_bounds

        of = field_of(self.key, shared_table(self.key.rpartition(".")[0]))
        if of is not None and (what := out_of_bounds(of, value)):
            raise click.BadParameter(what, ctx, self)
        return value


class ScenarioKeyOption(DerivedOption):
    """An option whose value replaces the value of a scenario's key.

    Args:
        parse: converts the option's value to the key's value when the command runs; None: they are equal.
        needs: the other flags, each with its value, that it needs to have an effect.
    """

    def __init__(
        self, *args: Any, parse: Callable[[Any], object] | None = None, needs: Sequence[str] = (), **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self._parse = parse
        self.needs = needs

    def value_in(self, context: click.Context) -> object:
        """The value for the key; None if the user did not give the option."""
        value = context.params[str(self.name)]
        return self._parse(value) if self._parse is not None and value else value

    def value_of(self, text: str, context: click.Context) -> object:
        """The value for the key, of a text that could stand behind the option.

        Raises:
            click.BadParameter: the option does not take the text.
        """
        value = self.type_cast_value(context, (text,) if self.multiple else text)
        return self._parse(value) if self._parse is not None else value

    def needs_of(self, params: Iterable[click.Parameter]) -> str:
        """What it needs, as text, of the flags that its command has; "" if it needs none of them."""
        flags = {opt for param in params for opt in param.opts}
        return " and ".join(text for text in self.needs if flags & {*text.split()})

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help, with what the setting needs, and the default of the command's scenario if the scenario is known."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        needs = self.needs_of(ctx.command.get_params(ctx))
        facts = [f"needs: {needs}"] if needs else []
        scenario = getattr(ctx.command, "scenario", None) or ctx.meta.get(SCENARIO)
        if scenario is not None and self.show_default is not False:
            from hydra.config.fields import default_of

            default = _written(default_of(scenario, self.key), self.type)
            if self.key == "client" and default != "native" and _prefers_native(scenario, self.type):
                default = f"native if present, else {default}"
            facts += [f"default: {default}"] if default else []
        return (record[0], f"{record[1]}  [{'; '.join(facts)}]") if facts else record


class SeveralKeysOption(click.Option):
    """An option that sets several keys of a scenario; a flag or ``--set`` of one of these keys has precedence.

    Args:
        read: returns the values by dotted key, for the option's value.
    """

    def __init__(self, *args: Any, read: Callable[[Any], Mapping[str, object]], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.read = read


def keyed(*names: str, key: str, **attributes: Any) -> Callable[[_F], _F]:
    """A flag that replaces the value of a scenario's key; the other arguments are those of ``click.option``."""
    return click.option(*names, cls=ScenarioKeyOption, key=key, **attributes)


def overrides(more: Mapping[str, object] | None = None) -> dict[str, object]:
    """Dotted keys and values from the flags of the running command, ``--set`` among them.

    Args:
        more: keys that the command sets from flags without a key.

    Raises:
        ConfigError: a ``--set`` is not KEY=VALUE.
        UsageError: two flags set one key.
    """
    from hydra.config.layers import parse_set

    context = click.get_current_context()
    params = context.command.get_params(context)
    stored: dict[str, object] = {}
    for param in params:
        if isinstance(param, SeveralKeysOption) and (named := context.params[str(param.name)]) is not None:
            stored |= param.read(named)
    options = _given(params, context.params)
    result: dict[str, Any] = {}
    flags: dict[str, str] = {}
    for option in options:
        value = option.value_in(context) if isinstance(option, ScenarioKeyOption) else None
        if isinstance(value, dict):
            value |= result.get(option.key, {})  # if two flags set one part, the first is kept
        elif option.key in result:
            raise _both(flags[option.key], option.opts[0], option.key)
        flags.setdefault(option.key, option.opts[0])
        if value is not None and value != ():
            result[option.key] = value
    typed = [each for each in params if context.get_parameter_source(str(each.name)) is ParameterSource.COMMANDLINE]
    keyless = [each.opts[0] for each in (*options, *typed) if not isinstance(each, ScenarioKeyOption)]
    for key, value in (more or {}).items():
        flags.setdefault(key, keyless[0] if keyless else key)
        result[key] = value
    own: dict[str, object] = {}
    for text in context.params.get("sets", ()):
        key, value = parse_set(text)
        for taken, flag in flags.items():
            if _overlaps(key, taken, result.get(taken)):
                raise _both(flag, f"--set {key}", taken)
        own.pop(key, None)  # moved to the end, because it may be a part of a table that another --set has replaced
        own[key] = value
    return {**stored, **result, **own}


def _overlaps(key: str, taken: str, value: object) -> bool:
    """Whether a dotted key replaces what a flag has set.

    Args:
        key: the key.
        taken: the key that the flag has set.
        value: the value of the flag; the parts of a table have names with dots.
    """
    if f"{taken}.".startswith(f"{key}."):
        return True
    part = key.removeprefix(f"{taken}.")
    return part != key and (not isinstance(value, dict) or part in value)


def _both(one: str, other: str, key: str) -> UsageError:
    return UsageError(f"{one} and {other} both set {key}", "leave out one of them")


def _given(params: Iterable[click.Parameter], values: Mapping[str, Any]) -> list[DerivedOption]:
    """The options that the user gave and that set a key.

    Args:
        params: the parameters of a command.
        values: the parameters' values by name.
    """
    return [
        param for param in params if isinstance(param, DerivedOption) and values.get(str(param.name)) not in (None, ())
    ]


def flags_by_name(params: Iterable[click.Parameter]) -> dict[str, str]:
    """The flag of each key by the key's last part; only of names that no other word of a text is like."""
    keyed_ = [param for param in params if isinstance(param, ScenarioKeyOption)]
    return {name: param.opts[0] for param in reversed(keyed_) if "_" in (name := param.key.rpartition(".")[2])}


def flag_behind(params: Sequence[click.Parameter], given: Mapping[str, Any], error: RefusedKeyError) -> str:
    """The flag that set a rejected key, as the user wrote it; "" if no flag did.

    If a whole table is rejected, the result is the first flag without which it would have been accepted.

    Args:
        params: the parameters of the command.
        given: the parameters' values by name.
        error: the error about the key.
    """
    flags = [(f"--set {key}", key) for text in given.get("sets", ()) if (key := text.partition("=")[0].strip())]
    flags += [(option.opts[0], option.key) for option in _given(params, given)]
    for flag, key in flags:
        if error.key == key or error.key.startswith(f"{key}."):
            return flag
    return next((flag for flag, key in flags if key in error.causes), "")


def _prefers_native(scenario: str | Path, kind: click.ParamType[Any]) -> bool:
    """Whether a command has native clients without a flag, if their program is there: those of shipped scenarios do."""
    if not isinstance(kind, click.Choice) or "native" not in kind.choices:
        return False
    from hydra.config.file_locations import is_shipped, scenario_path

    try:
        return is_shipped(scenario_path(scenario))
    except ConfigError:  # an experiment
        return False


def _written(value: object, kind: click.ParamType[Any]) -> str:
    """A value as a user writes it on a command line; "" for None and tables."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        number = value * 100 if kind is PERCENT else value
        return f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}"
    if isinstance(value, list | tuple):
        return ",".join(_written(each, kind) for each in value)
    return value if isinstance(value, str) else ""
