"""Builds model classes from the content of a file, with strict checks; an error is one line with key and remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from hydra.amounts import AMOUNTS, BYTES, UNITS, amount, duration, unit_of, whole_number
from hydra.errors import UNKNOWN_KEY, Key, RefusedError, RefusedKeyError, shown
from hydra.model import FieldError, NoOptions, NoSystemSettings, Rate, SystemPart, setting_of
from hydra.model.base import types_of

_NUMBERS: Final = {int, float, *get_args(Rate)}


def with_numbers(table: Mapping[str, object], noun: type) -> dict[str, object]:
    """A table whose texts that are numbers with a unit are numbers; what is no number stays, and is rejected later.

    Args:
        table: the values of the table by key.
        noun: the dataclass with its fields.
    """
    hints = types_of(noun)
    found = dict(table)
    for each in fields(noun):
        value = found.get(each.name)
        if isinstance(value, str):
            found[each.name] = number_in(each, hints[each.name], value)
        elif isinstance(value, list):
            found[each.name] = [
                number_in(each, hints[each.name], one) if isinstance(one, str) else one for one in value
            ]
    return found


def is_of_bytes(of: Field[Any]) -> bool:
    """Whether a field is a number of bytes."""
    return setting_of(of).metavar == "BYTES" or of.name.endswith("_bytes")


def number_in(of: Field[Any], hint: Any, text: str) -> int | float | str:
    """The number with a unit that a text in a file is, for a field; the text itself if it is none.

    A number without a unit is written without quotes, so the text of one is returned, too.

    Args:
        of: the field.
        hint: the type of the field, or of its elements.
        text: the text.
    """
    kinds = set(get_args(hint) if get_origin(hint) is not None else (hint,)) - {NoneType, Ellipsis}
    time = next((unit for unit in ("ms", "s") if of.name.endswith(f"_{unit}")), "")
    units: Mapping[str, Any] = UNITS if time else BYTES if is_of_bytes(of) else AMOUNTS
    if not kinds & _NUMBERS or str in kinds or not unit_of(text.strip(), units):
        return text
    try:
        if time:
            seconds = duration(text, time)
            return int(seconds) if int in kinds and seconds.is_integer() else seconds
        return whole_number(text, units) if int in kinds else float(amount(text, units))
    except ValueError:
        return text


Tables = Mapping[Key, Sequence[str]]
"""The keys of each table of a file, by the table's path."""
OWN: Final = "system"
"""The field of a model class that holds the system's own part of its table."""
_WANTED: Final[Mapping[Any, str]] = {
    int: "a valid integer",
    float: "a valid number",
    str: "a valid string",
    bool: "a valid boolean",
}
_PARTS: Final = (NoSystemSettings, NoOptions)
_IN_QUOTES: Final = "write the value in quotes"

T = TypeVar("T")


class UnknownKeyError(RefusedError):
    """An unknown key, with the table it belongs to or the key that was probably meant.

    Args:
        key: the key's path.
        known: the known keys of its table.
        tables: the keys of each table of the file.
    """

    def __init__(self, key: Key, known: Sequence[str], tables: Tables | None = None) -> None:
        name = str(key[-1])
        homes = [".".join(map(str, home)) for home, keys in (tables or {}).items() if name in keys]
        close = get_close_matches(name, known, n=1)
        self.belongs_elsewhere = bool(homes)
        if homes:
            # The same name in another table is a better suggestion than a similar name in this one.
            remedy = f"this key belongs into [{homes[0]}]" if homes[0] else "this key belongs to the top of the file"
        elif close:
            remedy = f"did you mean {close[0]}?"
        else:
            remedy = f"known here: {', '.join(known)}"
        super().__init__(key, UNKNOWN_KEY, remedy)


@contextmanager
def refusals_in(label: object) -> Iterator[None]:
    """Turns every rejected key into an error about a file.

    Args:
        label: the name of the file in errors.

    Raises:
        RefusedKeyError: a key was rejected.
    """
    try:
        yield
    except RefusedError as e:
        raise RefusedKeyError(str(label), e.dotted, e.what, e.remedy) from e


def known_keys(key: Key, table: Mapping[str, object], known: Sequence[str]) -> None:
    """Rejects the first unknown key of a table."""
    for name in table:
        if name not in known:
            raise UnknownKeyError((*key, name), known)


def table_of(key: Key, value: object) -> dict[str, Any]:
    """The value; rejects it if it is not a table."""
    if not isinstance(value, dict):
        raise RefusedError(key, "must be a table")
    return value


def field_names(*nouns: type) -> tuple[str, ...]:
    """The names of the fields of dataclasses that a table has as keys."""
    return tuple(f.name for noun in nouns for f in fields(noun) if f.default_factory not in _PARTS)


def free_text(noun: type) -> list[str]:
    """The fields of a dataclass that are tables of texts whose keys are not Hydra's."""
    return [name for name, hint in types_of(noun).items() if hint == Mapping[str, str]]


def refuse_unknown(key: Key, table: Mapping[str, object], tables: Tables) -> None:
    """Rejects unknown keys of a table and of the tables in it, the most frequent mistake, before anything else."""
    for name in table:
        if name not in tables[key]:
            raise UnknownKeyError((*key, name), tables[key], tables)
    for name, value in table.items():
        if (*key, name) in tables and isinstance(value, dict):
            refuse_unknown((*key, name), value, tables)


def build(
    noun: type[T],
    data: object,
    key: Key = (),
    *,
    own: type[SystemPart] | None = None,
    made: Mapping[str, object] | None = None,
) -> T:
    """Builds a dataclass from a table, with all of its checks.

    Args:
        noun: a dataclass.
        data: TOML values by field name.
        key: the path of the table.
        own: the class of its system's part, whose fields are keys of the table, too; None: there is no such part.
        made: the fields that are objects already.

    Raises:
        RefusedError: a value is invalid.
    """
    if not isinstance(data, Mapping):
        raise RefusedError(key, "must be a table", f"write [{'.'.join(map(str, key))}] and its keys below")
    known_keys(key, data, [name for name in field_names(noun, *([own] if own else [])) if name not in (made or {})])
    values = {**_values(noun, data, key, made or {}), **(made or {})}
    if own is not None:
        values[OWN] = _made(own, _values(own, data, key, {}), key)
    return _made(noun, values, key)


def _values(noun: type, data: Mapping[str, object], key: Key, made: Mapping[str, object]) -> dict[str, object]:
    written, found = with_numbers(data, noun), dict[str, object]()
    for of in fields(noun):
        if of.name in written and of.name not in made:
            hidden = not of.repr or of.name in free_text(noun)
            found[of.name] = _converted(types_of(noun)[of.name], written[of.name], (*key, of.name), hidden=hidden)
    refuse_missing(noun, {**found, **made}, key)
    return found


def refuse_missing(noun: type, table: Mapping[str, object], key: Key = ()) -> None:
    """Rejects a table without a field of a dataclass that has no default."""
    for of in fields(noun):
        if of.name not in table and of.default is MISSING and of.default_factory is MISSING:
            raise RefusedError((*key, of.name), "is missing", "add it")


def refused_fields(error: FieldError, key: Key) -> RefusedError:
    """The rejection of values in the table of this path: the key of one value, or the table of several."""
    concerned = tuple((*key, *name.split(".")) for name in error.fields)
    return RefusedError(concerned[0] if len(concerned) == 1 else key, error.what, others=concerned)


def _made(noun: type[T], values: Mapping[str, object], key: Key) -> T:
    try:
        return noun(**values)
    except FieldError as e:
        raise refused_fields(e, key) from e
    except ValueError as e:
        raise RefusedError(key, str(e)) from e


def _converted(hint: Any, value: object, key: Key, *, hidden: bool) -> object:
    """A TOML value as a value of this type; ``hidden``: errors do not show it."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in (object, Any):
        return value
    if is_dataclass(hint):
        return value if isinstance(value, cast("type", hint)) else build(cast("type", hint), value, key)
    if origin is tuple and parts[1:] == (...,):
        if not isinstance(value, list | tuple):
            raise _refused("a list", value, key, hidden, "write [ ] around the value")
        return tuple(_converted(parts[0], each, (*key, n), hidden=hidden) for n, each in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _refused("a table", value, key, hidden, 'write { name = "value" }')
        return {name: _converted(parts[1], each, (*key, name), hidden=hidden) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused("a finite number", value, key, hidden)
    try:
        return msgspec.convert(value, hint, strict=True)
    except msgspec.ValidationError as e:
        in_quotes = hint is str and not isinstance(value, dict | list)
        raise _refused(_wanted(hint), value, key, hidden, _IN_QUOTES if in_quotes else "") from e


def _refused(wanted: str, value: object, key: Key, hidden: bool, remedy: str = "") -> RefusedError:
    return RefusedError(key, f"must be {wanted}" + ("" if hidden else f", not {shown(value)}"), remedy)


def _wanted(hint: Any) -> str:
    """The values of a type, as text."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        *first, last = map(repr, parts)
        return " or ".join(filter(None, (", ".join(first), last)))
    if origin in (Union, UnionType):
        return " or ".join(_wanted(part) for part in parts if part is not NoneType)
    return _WANTED.get(hint, "a list" if origin is tuple else "a table" if origin is dict else "another value")
