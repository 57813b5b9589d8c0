"""Texts in a file that are numbers with a unit become numbers: ``rate = "1k"``, ``duration_s = "1min"``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from types import NoneType
from typing import Any, Final, get_args, get_origin

from hydra.amounts import AMOUNTS, BYTES, UNITS, amount, duration, unit_of, whole_number
from hydra.model import Rate, setting_of
from hydra.model.bounds import types_of

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
