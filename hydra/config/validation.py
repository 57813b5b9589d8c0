"""Builds model classes from the content of a file, with strict checks; an error is one line with key and remedy."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields, make_dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from hydra.errors import UNKNOWN_KEY, Key, RefusedError, RefusedKeyError, shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails


_IN_TOML: Final = {"an object": "a table", "a valid array": "a list"}
_REMEDIES: Final = {
    "dict_type": 'write { name = "value" }',
    "tuple_type": "write [ ] around the value",
    "string_type": "write the value in quotes",
}
"""Remedies by the kind of pydantic's error."""

Tables = Mapping[Key, type]
"""The dataclass of each table of a file, by the table's path."""


class UnknownKeyError(RefusedError):
    """An unknown key, with the table it belongs to or the key that was probably meant.

    Args:
        key: the key's path.
        known: the known keys of its table.
        tables: the dataclass of each table of the file.
    """

    def __init__(self, key: Key, known: Sequence[str], tables: Tables | None = None) -> None:
        name = str(key[-1])
        homes = [".".join(map(str, home)) for home, noun in (tables or {}).items() if name in field_names(noun)]
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


def first_refusal(errors: Sequence[ErrorDetails], data: Mapping[str, object], tables: Tables) -> RefusedError:
    """The first of pydantic's errors; an unknown key comes before a missing key, which it probably misspells.

    Args:
        errors: the errors of one validation; their locations begin with the index in a tuple of one element.
        data: the validated data.
        tables: the dataclass of each table of the data.
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
            # Each member of a union reports an error, with its own name at the end of the location.
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
    """What a message of pydantic asks for, in TOML's terms instead of JSON's."""
    wanted = message.removeprefix("Input should be ")
    return _IN_TOML.get(wanted, wanted)


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


def field_names(noun: type | None) -> tuple[str, ...]:
    """The names of a dataclass's fields; () for None."""
    return tuple(f.name for f in fields(noun)) if noun is not None else ()


def free_text(noun: type) -> list[str]:
    """The fields of a dataclass that are tables of texts whose keys are not Hydra's."""
    return [name for name, hint in get_type_hints(noun).items() if hint == Mapping[str, str]]


def _may_be_secret(key: Key, tables: Tables) -> bool:
    """Whether a key belongs to a field that is never shown, or to free text."""
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
"""The field of a model class that holds the system's own values."""


@cache
def _adapter(noun: Hashable) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # what is refused before does not wait for it

    strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    # A dataclass of the standard library has no configuration, but inherits that of its container: hence the tuple.
    return TypeAdapter(cast("Any", tuple[noun]), config=strict)  # type: ignore[valid-type]


def build(noun: type[T], data: Mapping[str, object], tables: Tables | None = None) -> T:
    """Builds a dataclass from data, with all of its checks.

    Args:
        noun: a dataclass.
        data: TOML values by field name.
        tables: the dataclass of each table of the data, to find the right place of a misplaced key.

    Raises:
        RefusedError: a value is invalid.
    """
    places: Tables = {(): noun} if tables is None else tables
    _refuse_unknown((), data, places)
    from pydantic import ValidationError

    # Strict validation accepts an object for a dataclass, and an array for a tuple, only from JSON.
    text = json.dumps([data], default=str)
    try:
        return cast("T", _adapter(cast("Hashable", noun)).validate_json(text)[0])
    except ValidationError as error:
        raise first_refusal(error.errors(), data, places) from error


def _refuse_unknown(key: Key, table: Mapping[str, object], tables: Tables) -> None:
    """Rejects unknown keys, the most frequent mistake, without importing pydantic."""
    known = field_names(tables[key])
    for name in table:
        if name not in known:
            raise UnknownKeyError((*key, name), known, tables)
    for name, value in table.items():
        if (*key, name) in tables and isinstance(value, dict):
            _refuse_unknown((*key, name), value, tables)


@cache
def as_written(noun: type, own: type | None) -> type:
    """The dataclass of a table in a file: the shared fields, and the system's own fields in place of ``system``.

    The merged dataclass rejects what one of the two rejects. :func:`of_written` converts it to the model's dataclass.
    """

    def check(self: Any) -> None:
        of_written(self, noun, own)

    specs = [spec for kind in (noun, own) if kind for spec in specs_of(kind) if not (kind is noun and spec[0] == OWN)]
    return make_dataclass(noun.__name__, specs, namespace={"__post_init__": check}, frozen=True, kw_only=True)


def of_written(written: Any, noun: type[T], own: type | None) -> T:
    """The model's dataclass, with all of the system's own fields in ``system``."""
    shared = {name: getattr(written, name) for name in field_names(noun) if name != OWN}
    its = own(**{name: getattr(written, name) for name in field_names(own)}) if own else None
    return noun(**shared, **{OWN: {name: getattr(its, name) for name in field_names(own)}})


def specs_of(noun: type) -> list[tuple[str, Any, Any]]:
    """The fields of a dataclass, in the form for ``make_dataclass``."""
    hints = get_type_hints(noun)
    return [(f.name, hints[f.name], _default(f)) for f in fields(noun)]


def _default(of: Field[Any]) -> Any:
    if of.default is not MISSING:
        return field(default=of.default, metadata=of.metadata)
    factory = of.default_factory
    return field(default_factory=factory) if factory is not MISSING else field(metadata=of.metadata)


def check_value(noun: type, others: Mapping[str, object], name: str, value: object) -> None:
    """Rejects a value that a field of the dataclass cannot have together with the other fields.

    Raises:
        RefusedError: the value is invalid; the error has the empty key.
    """
    try:
        build(noun, {**others, name: value})
    except RefusedError as e:
        raise RefusedError((), e.what) from e
