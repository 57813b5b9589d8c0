"""What all nouns are made of: numbers of the format, words for roles, one cell of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass, field
from math import inf
from typing import Any, Final, Literal

HEADER_BYTES: Final = 24
"""Size of the header at the start of every data message."""

DAY_S: Final = 86_400
MOST_RATE: Final = 1e9
LEAST_RATE: Final = 1e-6
"""Messages/s: clients take a rate as a fraction with a denominator of at most 10⁶, and count in ns."""
INT32: Final = 2**31 - 1

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


_SETTING: Final = "setting"
"""Where a field's metadata keep what is known of it as a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of a key of a scenario beside its name, its type and its default: with its field stands all of it.

    Attributes:
        help: one sentence; "": it has no flag.
        flag: what the flag is called, and other names of it; (): like the field.
        least, most: beyond, a value makes no sense, and is refused where a file or a flag is read. What cannot be at
            all is refused by the noun itself: runs that earlier versions stored must still be read. Of a list, they are
            those of its elements.
        unit: how the flag is written: ``s`` and ``ms`` are times of which there are other units, ``%`` is a percentage,
            ``fraction`` one that is written in percent, ``path`` a file of the user's; "": as the type says.
        metavar: what stands behind the flag in its help; "": what its type is called.
    """

    help: str = ""
    flag: Sequence[str] = ()
    least: float = -inf
    most: float = inf
    unit: Literal["", "s", "ms", "%", "fraction", "path"] = ""
    metavar: str = ""

    @property
    def metadata(self) -> dict[str, Setting]:
        """Of its field."""
        return {_SETTING: self}


def setting(default: Any, help: str = "", **more: Any) -> Any:  # noqa: A002  # click's word
    """A field with a default and what is known of it; the rest is as for :class:`Setting`."""
    return field(default=default, metadata=Setting(help=help, **more).metadata)


def setting_of(of: Field[Any]) -> Setting:
    """What is known of a field."""
    found: Setting = of.metadata.get(_SETTING) or Setting()
    return found


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
