"""Basic types and constants of the model: sizes of the format, roles, cells of a table, metadata of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from math import inf, isfinite
from typing import Any, ClassVar, Final, Literal, cast, get_type_hints

HEADER_BYTES: Final = 24
"""Size of the header at the start of every data message."""

DAY_S: Final = 86_400
MOST_RATE: Final = 1e9
MOST_CLIENTS: Final = 1_000_000
MOST_PUBLISHERS: Final = 10_000
LEAST_RATE: Final = 1e-6
"""In messages/s; clients represent a rate as a fraction with a denominator of at most 10⁶, and count in ns."""
INT32: Final = 2**31 - 1

LATENCY_LOWEST_US: Final = 1
LATENCY_HIGHEST_US: Final = 3_600_000_000
LATENCY_DIGITS: Final = 3


Role = Literal["publisher", "subscriber"]
GroupRole = Literal["publisher", "subscriber", "server"]
"""The role of a group: it runs publishers, subscribers, or one server."""
Rate = float | Literal["max"]
"""Messages per second, or ``"max"``: as fast as the library accepts them."""


class Evidence:
    """Structured evidence of a step or a row: a frozen dataclass, stored as JSON; ``str`` is the text of its cell."""

    __slots__ = ()


SettingValue = int | float | str | bool | None
"""The value of a setting."""
Figure = SettingValue | Evidence
"""One cell of a result row."""


def cell_of(figure: Figure) -> SettingValue:
    """The figure as tables and files have it: evidence as a text."""
    return str(figure) if isinstance(figure, Evidence) else figure


_SETTING: Final = "setting"
"""The key of a field's metadata for its :class:`Setting`."""


ADDRESS: Final = "."
"""The key of a need for the address of the user's servers, whatever its name in the system's table is."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a setting needs of another key of the scenario to have an effect.

    Attributes:
        key: the dotted key; :data:`ADDRESS`; or, after a dot, a key of the same table.
        values: the values of that key with which the setting has an effect; (): all but None, "" and false.
        other: a need that suffices in place of this one; None: there is no such need.
        least: the smallest value of that key with which it has an effect, in place of ``values``; 0: they count.
        other_than: the values of that key with which it has no effect, in place of ``values``; (): they count.
    """

    key: str
    values: tuple[SettingValue, ...] = ()
    other: Need | None = None
    least: int = 0
    other_than: tuple[SettingValue, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether the key must be unset."""
        return self.values in (("",), (None,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Metadata of a scenario's key, stored with its field; the field itself has the name, the type and the default.

    Attributes:
        help: one sentence; "": the key has no flag.
        flag: the name of the flag, and aliases; (): the name of the field.
        least, most: the bounds of the number, which its dataclass checks (:class:`hydra.model.base.Bounded`), and
            with it files, flags and clients; for a list, they apply to each element.
        above, below: bounds that the number itself must not have.
        unit: the notation of the flag: ``s`` and ``ms`` are times, also with other units; ``%`` is a percentage;
            ``fraction`` is a fraction written in percent; ``path`` is a file of the user; "": the type decides.
        metavar: the text for the value in the flag's help; "": the name of the type.
        needs: what the setting needs to have an effect; a value that the user gives and no row uses is rejected.
        of_publishers: whether only publishers obey the setting, so a comparison of its values compares publishers.
        compared: whether a comparison with a published table shows the setting of a system if it differs.
    """

    help: str = ""
    flag: Sequence[str] = ()
    least: float = -inf
    most: float = inf
    above: float = -inf
    below: float = inf
    unit: Literal["", "s", "ms", "%", "fraction", "path"] = ""
    metavar: str = ""
    needs: Sequence[Need] = ()
    of_publishers: bool = False
    compared: bool = False

    @property
    def metadata(self) -> dict[str, Setting]:
        """The metadata for a field with this setting."""
        return {_SETTING: self}

    @property
    def is_bounded(self) -> bool:
        """Whether there are numbers out of its bounds."""
        return (self.least, self.most, self.above, self.below) != (-inf, inf, -inf, inf)

    def allows(self, number: float) -> bool:
        """Whether a number is within the bounds."""
        return self.least <= number <= self.most and self.above < number < self.below


def setting(default: Any, help: str = "", **more: Any) -> Any:  # noqa: A002  # click's word
    """A field with a default and a :class:`Setting`, which gets the other arguments."""
    return field(default=default, metadata=Setting(help=help, **more).metadata)


def setting_of(of: Field[Any]) -> Setting:
    """The metadata of a field; an empty one if the field has none."""
    found: Setting = of.metadata.get(_SETTING) or Setting()
    return found


def flag_names(of: Field[Any]) -> tuple[str, ...]:
    """The names of the flag of a setting, as click takes them; (): it has no flag."""
    about, word = setting_of(of), of.name.replace("_", "-")
    if not about.help:
        return ()
    return tuple(about.flag) or ((f"--{word}/--no-{word}",) if of.default is True else (f"--{word}",))


def number(figure: Figure) -> float | None:
    """The figure as a number; None if it is no number."""
    return float(figure) if isinstance(figure, int | float) and not isinstance(figure, bool) else None


class FieldError(ValueError):
    """Values that a model class cannot have.

    Args:
        what: what is wrong; of one field, without its name.
        fields: the fields whose values are wrong, alone or together.
    """

    def __init__(self, what: str, *fields: str) -> None:
        super().__init__(f"{fields[0]} {what}" if len(fields) == 1 else what)
        self.what, self.fields = what, fields


def require(condition: bool, what: str, *fields: str) -> None:
    """Checks a condition; the further arguments are those of :class:`FieldError`.

    Raises:
        FieldError: the condition does not hold.
    """
    if not condition:
        raise FieldError(what, *fields)


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
