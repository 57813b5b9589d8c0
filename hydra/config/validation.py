"""Nouns from what a file says, checked strictly; what is wrong with it as one line that names key and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields, make_dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from hydra.errors import Key, RefusedError, RefusedKeyError, shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails


_IN_TOML: Final = {"an object": "a table", "a valid array": "a list"}
_REMEDIES: Final = {
    "dict_type": 'write { name = "value" }',
    "tuple_type": "write [ ] around it",
    "string_type": "write it in quotes",
}
"""By the kind of pydantic's refusal."""

Tables = Mapping[Key, type]
"""The dataclass that each table of a file is."""


class UnknownKeyError(RefusedError):
    """A key that is not known, with where it belongs or what it probably is.

    Args:
        key: its path.
        known: the keys of its table.
        tables: which dataclass each table of the file is.
    """

    def __init__(self, key: Key, known: Sequence[str], tables: Tables | None = None) -> None:
        name = str(key[-1])
        homes = [".".join(map(str, home)) for home, noun in (tables or {}).items() if name in field_names(noun)]
        close = get_close_matches(name, known, n=1)
        self.belongs_elsewhere = bool(homes)
        if homes:
            # The very name in another table is nearer than a name that is like it in this one.
            remedy = f"it belongs into [{homes[0]}]" if homes[0] else "it belongs to the top of the file"
        elif close:
            remedy = f"did you mean {close[0]}?"
        else:
            remedy = f"known here: {', '.join(known)}"
        super().__init__(key, "unknown key", remedy)


@contextmanager
def refusals_in(
    label: object, written: Callable[[str], str] = str, worded: Callable[[str], str] = str
) -> Iterator[None]:
    """Makes every refusal an error of a file.

    Args:
        label: what to call the file.
        written: the dotted key as its user wrote it.
        worded: a text with the names of keys as their user wrote them.

    Raises:
        RefusedKeyError: something was refused.
    """
    try:
        yield
    except RefusedError as e:
        keys = (e.dotted, written(e.dotted))
        raise RefusedKeyError(str(label), keys, worded(e.what), worded(e.remedy)) from e


def first_refusal(errors: Sequence[ErrorDetails], data: Mapping[str, object], tables: Tables) -> RefusedError:
    """The first refusal of pydantic's; an unknown key goes before a missing one, which it probably is misspelt.

    Args:
        errors: of one validation, whose locations begin with the place in a tuple of one.
        data: what was validated.
        tables: which dataclass each table of the data is.
    """
    first = min(errors, key=lambda e: {"unexpected_keyword_argument": 0, "missing": 2}.get(e["type"], 1))
    key = tuple(first["loc"][1:])
    match first["type"]:
        case "unexpected_keyword_argument":
            return UnknownKeyError(key, field_names(tables.get(key[:-1])), tables)
        case "missing":
            return RefusedError(key, "is missing", "add it")
        case "value_error":
            return RefusedError(key, first["msg"].removeprefix("Value error, "))
        case "dataclass_type":
            return RefusedError(key, "must be a table", f"write [{'.'.join(map(str, key))}] and its keys below")
        case _:
            # Members of a union report one by one, each with its own name at the end of the location.
            key = _existing(key, data)
            wants = [e["msg"] for e in errors if _existing(tuple(e["loc"][1:]), data) == key]
            text = " or ".join(dict.fromkeys(_wanted(w) for w in wants))
            is_plain = len(wants) == 1 and not (
                first["type"] == "string_type" and isinstance(first["input"], dict | list)
            )
            remedy = _REMEDIES.get(first["type"], "") if is_plain else ""
            if _may_be_secret(key, tables):
                return RefusedError(key, f"must be {text}", remedy)
            return RefusedError(key, f"must be {text}, not {shown(first['input'])}", remedy)


def _wanted(message: str) -> str:
    """What a message of pydantic's asks for, by TOML's names: it has validated JSON."""
    wanted = message.removeprefix("Input should be ")
    return _IN_TOML.get(wanted, wanted)


def known_keys(key: Key, table: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuses the first key of a table that is not known there."""
    for name in table:
        if name not in known:
            raise UnknownKeyError((*key, name), known)


def table_of(key: Key, value: object) -> dict[str, Any]:
    """The value, which must be a table."""
    if not isinstance(value, dict):
        raise RefusedError(key, "must be a table")
    return value


def field_names(noun: type | None) -> tuple[str, ...]:
    """Of a dataclass; none of None."""
    return tuple(f.name for f in fields(noun)) if noun is not None else ()


def free_text(noun: type) -> list[str]:
    """The fields of a dataclass that are tables of texts whose keys are not Hydra's."""
    return [name for name, hint in get_type_hints(noun).items() if hint == Mapping[str, str]]


def _may_be_secret(key: Key, tables: Tables) -> bool:
    """Whether a key is of a field that is never shown, or stands in free text."""
    for end, name in enumerate(key):
        noun = tables.get(key[:end])
        if noun and (name in free_text(noun) or any(f.name == name and not f.repr for f in fields(noun))):
            return True
    return False


def _existing(key: Key, data: object) -> Key:
    found: list[str | int] = []
    for part in key:
        match data:
            case Mapping() if part in data:
                data = data[part]
            case list() | tuple() if isinstance(part, int) and part < len(data):
                data = data[part]
            case _:
                break
        found.append(part)
    return tuple(found)


T = TypeVar("T")

OWN: Final = "system"
"""The field of a noun that holds what is its system's own."""


@cache
def _adapter(noun: Hashable) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # what is refused before does not wait for it

    strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    # A stdlib dataclass takes no configuration of its own, but inherits that of what it stands in: hence the tuple.
    return TypeAdapter(cast("Any", tuple[noun]), config=strict)  # type: ignore[valid-type]


def build(noun: type[T], data: Mapping[str, object], tables: Tables | None = None) -> T:
    """The noun built from the data, with every check of its own.

    Args:
        noun: a dataclass.
        data: as TOML has it, by the noun's field names.
        tables: which dataclass each table of the data is, to find the right place of a misplaced key.

    Raises:
        RefusedError: something in it cannot be.
    """
    places: Tables = {(): noun} if tables is None else tables
    _refuse_unknown((), data, places)
    from pydantic import ValidationError

    # By way of JSON: strict validation takes an object for a dataclass and an array for a tuple only from there.
    text = json.dumps([data], default=str)
    try:
        return cast("T", _adapter(cast("Hashable", noun)).validate_json(text)[0])
    except ValidationError as error:
        raise first_refusal(error.errors(), data, places) from error


def _refuse_unknown(key: Key, table: Mapping[str, object], tables: Tables) -> None:
    """Refuses keys that are not known: most mistakes are of this kind, and found without importing pydantic."""
    known = field_names(tables[key])
    for name in table:
        if name not in known:
            raise UnknownKeyError((*key, name), known, tables)
    for name, value in table.items():
        if (*key, name) in tables and isinstance(value, dict):
            _refuse_unknown((*key, name), value, tables)


@cache
def as_written(noun: type, own: type | None) -> type:
    """The noun as a file has it: the fields of a system's own type stand in it, in place of its ``system``.

    It refuses what either of the two refuses. :func:`of_written` makes the noun of it.
    """

    def check(self: Any) -> None:
        of_written(self, noun, own)

    specs = [spec for kind in (noun, own) if kind for spec in specs_of(kind) if not (kind is noun and spec[0] == OWN)]
    return make_dataclass(noun.__name__, specs, namespace={"__post_init__": check}, frozen=True, kw_only=True)


def of_written(written: Any, noun: type[T], own: type | None) -> T:
    """The noun with its system's own fields in ``system``, complete."""
    shared = {name: getattr(written, name) for name in field_names(noun) if name != OWN}
    its = own(**{name: getattr(written, name) for name in field_names(own)}) if own else None
    return noun(**shared, **{OWN: {name: getattr(its, name) for name in field_names(own)}})


def specs_of(noun: type) -> list[tuple[str, Any, Any]]:
    """The fields of a dataclass as ``make_dataclass`` takes them."""
    hints = get_type_hints(noun)
    return [(f.name, hints[f.name], _default(f)) for f in fields(noun)]


def _default(of: Field[Any]) -> Any:
    if of.default is not MISSING:
        return field(default=of.default, metadata=of.metadata)
    factory = of.default_factory
    return field(default_factory=factory) if factory is not MISSING else field(metadata=of.metadata)


def check_value(noun: type, others: Mapping[str, object], name: str, value: object) -> None:
    """Refuses a value that one of the noun's fields cannot have beside the others.

    Raises:
        RefusedError: with the empty key.
    """
    try:
        build(noun, {**others, name: value})
    except RefusedError as e:
        raise RefusedError((), e.what) from e
