"""Texts in a file that are numbers with a unit become numbers: ``rate = "1k"``, ``duration_s = "1min"``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from hydra.amounts import AMOUNTS, BYTES, UNITS, amount, duration, unit_of, whole_number
from hydra.config.toml import Toml
from hydra.config.validation import Tables
from hydra.errors import Key
from hydra.model import Rate, setting_of

_NUMBERS: Final = {int, float, *get_args(Rate)}


def with_numbers(data: Toml, tables: Tables) -> None:
    """Replaces texts that are numbers with a unit, in place; what is no number stays, and is rejected later.

    Args:
        data: the content of the file.
        tables: the dataclass of each table of the file.
    """
    for key, noun in tables.items():
        _replace(data, key, noun)
    # The rows of a sweep have values of settings.
    for key in (("sweep", "vary"), *((("sweep", "points", n)) for n in range(_points(data)))):
        _replace(data, key, tables[("settings",)])


def _points(data: Toml) -> int:
    sweep = data.get("sweep")
    points = sweep.get("points") if isinstance(sweep, dict) else None
    return len(points) if isinstance(points, list) else 0


def _replace(data: Any, key: Key, noun: type) -> None:
    """Replaces the texts of one table; copies it with its parents, which may belong to another scenario."""
    hints = get_type_hints(noun)
    place: Any = data
    for part in key:
        inner = place.get(part) if isinstance(place, dict) else place[int(part)]
        if not isinstance(inner, dict | list):
            return
        place[part] = inner.copy()
        place = place[part]
    if not isinstance(place, dict):
        return
    for each in fields(noun):
        value = place.get(each.name)
        if isinstance(value, str):
            place[each.name] = number_in(each, hints[each.name], value)
        elif isinstance(value, list):
            place[each.name] = [
                number_in(each, hints[each.name], one) if isinstance(one, str) else one for one in value
            ]


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
