"""The bounds of fields: stated once, in the field, and checked wherever an object is made."""

from __future__ import annotations

from dataclasses import Field, fields
from functools import cache
from math import isfinite
from typing import Any, ClassVar, Final, cast, get_type_hints

from hydra.model.base import FieldError, Setting, setting_of

_SHOWN_UNITS: Final = {
    "reconnect_rate": "/s",
    "connect_rate": " clients/s",
    "rate": " messages/s",
    "_s": " s",
    "_ms": " ms",
    "_mb": " MB",
    "_bytes": " bytes",
}
"""The unit of a field's numbers, by the end of its name."""


@cache
def types_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields by name."""
    return get_type_hints(kind)


class Bounded:
    """A dataclass whose numbers are within the bounds of their fields (:class:`hydra.model.Setting`).

    With slots, ``super()`` does not find it: a class with a ``__post_init__`` of its own calls this one by name.

    Raises:
        FieldError: a number is out of its bounds.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for of in _bounded(cast("Any", type(self))):
            if what := out_of_bounds(of, getattr(self, of.name)):
                raise FieldError(what, of.name)


@cache
def _bounded(kind: type[Bounded]) -> tuple[Field[Any], ...]:
    return tuple(of for of in fields(kind) if setting_of(of).is_bounded)


def out_of_bounds(of: Field[Any], value: object) -> str:
    """What is wrong with a value for a field: ``must be 1 to 9, not 0``; "" if it is within the bounds.

    Args:
        of: the field.
        value: its value; each element of a list is checked, and what is no number has no bounds.
    """
    about = setting_of(of)
    for number in value if isinstance(value, tuple | list) else (value,):
        if isinstance(number, int | float) and not isinstance(number, bool) and not about.allows(number):
            unit = next((unit for ending, unit in _SHOWN_UNITS.items() if of.name.endswith(ending)), "")
            return f"must be {_range(about)}{unit}, not {_plain(number)}{unit}"
    return ""


def _range(about: Setting) -> str:
    least = f"above {_plain(about.above)}" if isfinite(about.above) else ""
    most = f"below {_plain(about.below)}" if isfinite(about.below) else ""
    if isfinite(about.least) and isfinite(about.most):
        return f"{_plain(about.least)} to {_plain(about.most)}"
    if isfinite(about.least):
        least = f"{_plain(about.least)} or more"
    if isfinite(about.most):
        most = f"at most {_plain(about.most)}"
    return " and ".join(filter(None, (least, most)))


def _plain(number: float) -> str:
    if abs(number) < 1e15 and number == int(number):
        return str(int(number))
    try:
        return f"{number:g}"
    except OverflowError:  # a whole number
        return f"a number of {len(str(abs(number)))} digits"
