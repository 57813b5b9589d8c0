"""Flags of settings; each takes its name, type and text from the setting's field (``hydra.model.Setting``).

The decorators read the fields when a command is used, and not when it is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click

from hydra.options.flag_types import (
    BYTE_COUNT,
    BYTE_COUNTS,
    COUNTS,
    NUMBER,
    PERCENT,
    RATE,
    WHOLE_NUMBER,
    WORD,
    ChoiceList,
    Duration,
    FilePath,
    FiniteFloatRange,
    WholeNumberRange,
)
from hydra.options.help import CLIENTS, RUN, flags, grouped
from hydra.options.late_commands import keyed

if TYPE_CHECKING:
    from dataclasses import Field

    from hydra.model import Setting
    from hydra.system import SystemSpec

_F = TypeVar("_F", bound=Callable[..., Any])
_Flag = Callable[[Any], Any]

_BY_UNIT: Final = {
    "s": Duration("s"),
    "ms": Duration("ms"),
    "%": FiniteFloatRange(min=0),
    "fraction": PERCENT,
    "path": FilePath(path_type=str),
}
"""The types of flags whose settings have a unit, by unit."""
_NONE: Final[Mapping[str, str]] = {}


def setting_flag(key: str, *names: str, of: type | None = None, **attributes: Any) -> Callable[[_F], _F]:
    """The flag of one setting.

    Args:
        key: the setting's dotted key.
        names: names of the flag, if they differ from the field's.
        of: the dataclass of the setting's table; None: the one that all systems share.
        attributes: ``spec``, the system, for what the setting needs; and attributes for ``click.option`` that differ
            from the field's.
    """

    def decorate(command: _F) -> _F:
        from hydra.config.fields import shared_table

        table, _, name = key.rpartition(".")
        found = next(each for each in _settings(table, of or shared_table(table)) if each.name == name)
        decorated: _F = _flag(found, *names, **attributes)(command)
        return decorated

    return decorate


def system_flags(
    system: str, *first: str, varied: Mapping[str, str] = _NONE, experiment: bool = False
) -> Callable[[_F], _F]:
    """The flags of a system: of its implementations, its tables and settings, and its native clients.

    Args:
        system: the system's name.
        first: fields whose flags are shown first.
        varied: help texts of settings that a scenario varies, whose flags take several values; "": the field's text.
        experiment: whether the flags are for a published experiment, which sets its own settings and takes several
            implementations.
    """

    def decorate(command: _F) -> _F:
        decorated: _F = flags(*_of_system(system, first, varied, experiment))(command)
        return decorated

    return decorate


def _of_system(system: str, first: tuple[str, ...], varied: Mapping[str, str], experiment: bool) -> Iterator[_Flag]:
    from hydra.config import plugins
    from hydra.config.fields import own_tables

    spec = plugins.system(system)
    yield (_implementations if experiment else implementation_flag)(list(spec.identity.implementations))
    if not experiment and any(each.program == "native" for each in spec.identity.implementations.values()):
        yield flags(*(grouped(CLIENTS, setting_flag(key, spec=spec)) for key in _NATIVE))
    if spec.settings.presets:
        yield preset_flag
    tables = spec.settings.tables if experiment else own_tables(spec)
    found = [each for table, noun in tables.items() for each in _settings(table, noun) if each.about.help]
    address, names = spec.servers.address_key.rpartition(".")[2] if spec.servers else "", list(tables)

    def place(each: _Found) -> tuple[int, bool]:
        # The address stands at the begin of its table, whose class may have fields of a base.
        listed = each.name in first
        return first.index(each.name) if listed else len(first) + names.index(each.table), each.name != address

    for each in sorted(found, key=place):
        if each.table == "settings" and each.name in varied and each.hint is int:
            about = varied[each.name] or each.about.help
            its = each._replace(table="sweep.vary")
            yield _flag(
                its,
                spec=spec,
                type=BYTE_COUNTS if _of_bytes(each) else COUNTS,
                metavar=None,
                help=about,
                show_default=False,
            )
        else:
            flag = _flag(each, spec=spec)
            yield grouped(CLIENTS, flag) if each.table == "native" else flag


class _Found(NamedTuple):
    """A setting: its table, name, metadata, type and default."""

    table: str
    name: str
    about: Setting
    hint: Any
    default: object
    of: Field[Any]


@cache
def _settings(table: str, noun: type | None) -> Sequence[_Found]:
    """All settings of a table; [] if it has no dataclass."""
    from dataclasses import fields

    from hydra.model import setting_of

    if noun is None:
        return []
    hints = get_type_hints(noun)
    return [_Found(table, each.name, setting_of(each), hints[each.name], each.default, each) for each in fields(noun)]


def _flag(found: _Found, *names: str, spec: SystemSpec | None = None, **attributes: Any) -> _Flag:
    from hydra.config.needs import as_flags, needs_of
    from hydra.model import flag_names

    kind: dict[str, Any] = {"is_flag": True, "default": None} if found.hint is bool else {"type": _kind(found)}
    needs = [text for need in needs_of(spec, found.table, found.of) if "--" in (text := as_flags(spec, need))]
    own = {**kind, "help": found.about.help, "metavar": found.about.metavar or None, "needs": needs, **attributes}
    if isinstance(own.get("type"), Duration):
        own["help"] = own["type"].with_unit(str(own["help"]))
    return keyed(*(names or flag_names(found.of)), key=f"{found.table}.{found.name}".lstrip("."), **own)


def _kind(found: _Found) -> Any:
    """The click type of the flag's value."""
    from hydra.model import Rate

    if found.about.unit:
        return _BY_UNIT[found.about.unit]
    if found.hint in (Rate, Rate | None):
        return RATE
    hint = get_args(found.hint)[0] if NoneType in get_args(found.hint) else found.hint
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return click.Choice(words) if isinstance(words[0], str) else WholeNumberRange(min(words), max(words))
    if get_origin(hint) is tuple:
        return COUNTS
    if hint is int and _of_bytes(found):
        return BYTE_COUNT
    return {int: WHOLE_NUMBER, float: NUMBER, str: WORD}[hint]


def _of_bytes(found: _Found) -> bool:
    from hydra.config.validation import is_of_bytes

    return is_of_bytes(found.of)


# --- of clients -------------------------------------------------------------------------------------------------------


def implementation_flag(names: list[str] | None = None) -> Callable[[_F], _F]:
    """``--implementation``: one of the names, or any name if the system is not known before."""
    return grouped(CLIENTS, setting_flag("client", type=click.Choice(names) if names else WORD))


def _implementations(names: list[str]) -> Callable[[_F], _F]:
    """``--implementation`` of an experiment: one name or several."""
    about = (
        "Implementation of the clients; several, separated by commas, are measured one after the other in one table."
    )
    return grouped(CLIENTS, setting_flag("client", type=ChoiceList(names), help=about))


_NATIVE: Final = ("native.clients_per_process", "native.pacing")
packing_flag = grouped(CLIENTS, setting_flag(_NATIVE[0]))
"""A flag that only native clients support, in any system."""

preset_flag = grouped(RUN, setting_flag("preset"))
