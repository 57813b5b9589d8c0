"""Nouns from what a file says, checked strictly; and the nouns as a file has them, with what is a system's beside."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, field, fields, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from hydra.config.validation_error import Tables, UnknownKeyError, explained, field_names
from hydra.errors import Key, RefusedError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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
        raise explained(error.errors(), data, places) from error


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
