"""What all nouns are made of: numbers of the format, words for roles, one cell of a table."""

from __future__ import annotations

from typing import Final, Literal

HEADER_BYTES: Final = 24
"""Size of the header at the start of every data message."""

LATENCY_LOWEST_US: Final = 1
LATENCY_HIGHEST_US: Final = 3_600_000_000
LATENCY_DIGITS: Final = 3


Role = Literal["publisher", "subscriber"]
GroupRole = Literal["publisher", "subscriber", "server"]
"""What a group runs: clients of a role, or one server."""
Rate = float | Literal["max"]
"""Messages per second, or ``"max"``: as fast as the library takes them."""
Figure = int | float | str | bool | None
"""One cell of a result row."""


def number(figure: Figure) -> float | None:
    """The figure as a number, None if it is none."""
    return float(figure) if isinstance(figure, int | float) and not isinstance(figure, bool) else None


def require(condition: bool, message: str) -> None:
    """Refuses what cannot be.

    Raises:
        ValueError: with that message, where the condition does not hold.
    """
    if not condition:
        raise ValueError(message)
