"""The part of a scenario that belongs to its system: objects of the system's classes, in tables that systems share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol, Self

from hydra.model.base import SettingValue
from hydra.model.bounds import Bounded


class _Table(Protocol):
    @property
    def system(self) -> SystemPart: ...


class SystemPart(Bounded):
    """The base of a system's own part of a table: a frozen dataclass of figures, each with a default."""

    __slots__ = ()

    @classmethod
    def of(cls, table: _Table) -> Self:
        """The part of this class in a table; its defaults if the table was made without a system's part.

        Raises:
            TypeError: the table belongs to another system.
        """
        if isinstance(own := table.system, cls):
            return own
        if isinstance(own, NoSystemSettings | NoOptions):
            return cls()
        raise TypeError(f"{cls.__name__} of a table with {type(own).__name__}")

    def values(self) -> dict[str, SettingValue]:
        """All values by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class SystemSettings(SystemPart):
    """The base of a system's own settings, which can change between two steps."""

    __slots__ = ()


class SystemOptions(SystemPart):
    """The base of a system's own options of native clients."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NoSystemSettings(SystemSettings):
    """The settings of a system that has none of its own."""


@dataclass(frozen=True, slots=True)
class NoOptions(SystemOptions):
    """The options of a system that has none of its own."""
