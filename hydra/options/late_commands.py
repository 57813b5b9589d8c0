"""Commands whose flags are made late, and flags that replace keys of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from hydra.errors import RefusedKeyError
from hydra.options.flag_types import PERCENT
from hydra.options.help import GroupedHelpCommand, flags

_F = TypeVar("_F", bound=Callable[..., Any])

SCENARIO: Final = "hydra.scenario"
"""Where a context keeps the scenario that its command line names."""


class Command(GroupedHelpCommand):
    """A command; what is wrong with the value of one of its flags is said of the flag, wherever it is found out."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs it."""
        try:
            return super().invoke(ctx)
        except RefusedKeyError as e:
            flag = flag_behind(self.get_params(ctx), ctx.params, e)
            if not flag:
                raise
            raise e.said_of(flag) from e


class CommandGroup(GroupedHelpCommand, click.Group):
    """A command that has commands of its own."""


class LateCommand(Command):
    """A command whose flags are made when it is used, and not when it is listed.

    Args:
        flags: adds them.
    """

    def __init__(self, *args: Any, flags: Callable[[click.Command], object], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._flags: Callable[[click.Command], object] | None = flags

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All of them, made by now."""
        if self._flags is not None:
            make, self._flags = self._flags, None
            make(self)
            # Decorators add the last one first. Of two flags of one name the first is meant.
            self.params = first_of(reversed(self.params))
        return super().get_params(ctx)


def first_of(params: Iterable[click.Parameter]) -> list[click.Parameter]:
    """The parameters without those of which another before them has a flag."""
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
    """Makes a :class:`LateCommand` of a function, whose docstring is the command's help.

    Args:
        name: the command's.
        options: its arguments and flags.
        examples: whole command lines.
        section: where a list of commands shows it.
    """
    return click.command(name, cls=LateCommand, flags=flags(*options), examples=examples, section=section)


class DerivedOption(click.Option):
    """An option of which its command makes the value of a scenario's key.

    Args:
        key: the dotted key, or a table of which it makes a part.
    """

    def __init__(self, *args: Any, key: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.key = key

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value, within the bounds of its key.

        Raises:
            click.BadParameter: it is out of them.
        """
        value = super().type_cast_value(ctx, value)
        if value is None:
            return None
        from hydra.config.fields import field_of, out_of_bounds, shared_table

        of = field_of(self.key, shared_table(self.key.rpartition(".")[0]))
        for _, what in out_of_bounds(tuple(value) if isinstance(value, list) else value, self.key, of=of):
            raise click.BadParameter(what, ctx, self)
        return value


class ScenarioKeyOption(DerivedOption):
    """An option whose value replaces the value of a scenario's key.

    Args:
        parse: what makes the key's value of the option's when the command runs; flags may each give a part of a table.
    """

    def __init__(self, *args: Any, parse: Callable[[Any], object] | None = None, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._parse = parse

    def value_in(self, context: click.Context) -> object:
        """What was given; None: nothing was."""
        value = context.params[str(self.name)]
        return self._parse(value) if self._parse is not None and value else value

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """With the default of the scenario that the command runs, where it is known."""
        record = super().get_help_record(ctx)
        scenario = getattr(ctx.command, "scenario", None) or ctx.meta.get(SCENARIO)
        if record is None or scenario is None or self.show_default is False:
            return record
        from hydra.config.fields import default_of

        default = _written(default_of(scenario, self.key), self.type)
        return (record[0], f"{record[1]}  [default: {default}]") if default else record


def keyed(*names: str, key: str, **attributes: Any) -> Callable[[_F], _F]:
    """A flag that replaces the value of a scenario's key; the rest is as for ``click.option``."""
    return click.option(*names, cls=ScenarioKeyOption, key=key, **attributes)


def overrides(more: Mapping[str, object] | None = None) -> dict[str, object]:
    """Dotted keys and values from the flags that were given to the command that runs, and from ``--set``, which wins.

    Args:
        more: what the command makes of flags that have no key.

    Raises:
        ConfigError: a ``--set`` is no KEY=VALUE.
    """
    from hydra.config.toml import parse_set

    context = click.get_current_context()
    options = [param for param in context.command.get_params(context) if isinstance(param, ScenarioKeyOption)]
    result: dict[str, Any] = {}
    for option in options:
        value = option.value_in(context)
        if isinstance(value, dict):
            value |= result.get(option.key, {})  # of what two flags say, the first is meant
        if value is not None and value != ():
            result[option.key] = value
    result |= more or {}
    for text in context.params.get("sets", ()):
        key, value = parse_set(text)
        # Last, for it may be a part of what another flag has set.
        result.pop(key, None)
        result[key] = value
    return result


def flag_behind(params: Sequence[click.Parameter], given: Mapping[str, Any], error: RefusedKeyError) -> str:
    """The flag that has replaced a refused key, as its user wrote it; "": none has.

    Where a whole table is refused, it is the first flag but for which it would not have been.

    Args:
        params: those of the command.
        given: their values by name.
        error: the refusal.
    """
    flags = [(f"--set {key}", key) for text in given.get("sets", ()) if (key := text.partition("=")[0].strip())]
    flags += [
        (param.opts[0], param.key)
        for param in params
        if isinstance(param, DerivedOption) and given.get(str(param.name)) not in (None, ())
    ]
    for flag, key in flags:
        if any(each == key or each.startswith(f"{key}.") for each in error.keys):
            return flag
    return next((flag for flag, key in flags if key in error.causes), "")


def _written(value: object, kind: click.ParamType[Any]) -> str:
    """A value as a command line has it; "" for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        number = value * 100 if kind is PERCENT else value
        return f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}"
    if isinstance(value, list | tuple):
        return ",".join(_written(each, kind) for each in value)
    return value if isinstance(value, str) else ""
