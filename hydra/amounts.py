"""Numbers with a unit, as flags and files have them: ``1k``, ``64KiB``, ``20ms``."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation, Overflow
from math import isfinite
from typing import Any, Final

AMOUNTS: Final[Mapping[str, int]] = {"k": 10**3, "M": 10**6, "G": 10**9}
"""What the letters behind a number mean."""
BYTES: Final[Mapping[str, int]] = {
    **{f"{unit}B": size for unit, size in {"": 1, **AMOUNTS}.items()},
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    **AMOUNTS,
}
"""What the letters behind a number of bytes mean."""
UNITS: Final[Mapping[str, float]] = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Units of times, in seconds."""
_MOST: Final = 1e300


def amount(text: str, units: Mapping[str, int]) -> Decimal:
    """The number that a text is, with one of the units behind it.

    Raises:
        ValueError: the text is no finite number.
    """
    text = text.strip()
    unit = unit_of(text, units)
    try:
        number = Decimal(text.removesuffix(unit).strip()) * units.get(unit, 1)
    except (InvalidOperation, Overflow):
        raise ValueError(f"{text!r} is no number") from None
    if not number.is_finite() or abs(number) > _MOST:
        raise ValueError(f"{text!r} is no finite number")
    return number


def unit_of(text: str, units: Mapping[str, Any]) -> str:
    """The unit at the end of a text; "" if there is none."""
    return next((each for each in sorted(units, key=len, reverse=True) if text.endswith(each)), "")


def whole_number(text: str, units: Mapping[str, int] = AMOUNTS) -> int:
    """The whole number that a text is: in digits, like 1e5, or with a unit.

    Raises:
        ValueError: the text is no whole number.
    """
    try:
        return int(text)
    except ValueError:
        # Of 1.1k the exact decimal fraction counts: 1.1 × 1,000 is 1100 and not 1100.0000000000002.
        number = amount(text, units)
        if number != number.to_integral_value():
            raise
        return int(number)


def duration(text: str, unit: str) -> float:
    """The time that a text is, in a unit; a number without a unit is in that unit.

    Args:
        text: such as ``20ms``.
        unit: one of :data:`UNITS`.

    Raises:
        ValueError: the text is no time.
    """
    text = text.strip()
    own = unit_of(text, UNITS)
    number = float(text.removesuffix(own))
    if not isfinite(number) or number < 0:
        raise ValueError(f"{text!r} is no time")
    return number * UNITS[own or unit] / UNITS[unit]
