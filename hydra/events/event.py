"""What an event is, how grave, and how the store gives it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar, NamedTuple


class Level(StrEnum):
    """How much an event matters, gravest first."""

    FAIL = "fail"
    """Something was not measured."""
    LOSS = "loss"
    """Figures are there, and say less than they seem to."""
    NOTE = "note"
    """Worth knowing before the figures are believed."""
    ROUTINE = "routine"
    """Belongs to every run."""


class Event(ABC):
    """Something that happened in a run. Subclasses are frozen dataclasses whose fields say what.

    ``str(event)`` is the line for a person. It may hold secrets: who writes it down hides them first.

    Attributes:
        kind: its name in the database; several classes may share one.
        level: how much it matters.
        summary: what the report says of several of this kind.
    """

    __slots__ = ()

    kind: ClassVar[str]
    level: ClassVar[Level] = Level.ROUTINE
    summary: ClassVar[str] = "see the details"

    @property
    @abstractmethod
    def text(self) -> str:
        """What happened, in one line."""

    def __str__(self) -> str:
        return self.text


Note = Callable[[Event], None]
"""Takes an event that is worth keeping with the run."""


class StoredEvent(NamedTuple):
    """An event as a run's database has it.

    Attributes:
        time_ns: wall time.
        epoch: the step in which it happened; None: between steps, or nobody said.
        kind: that of its class; runs of other versions have kinds of their own.
        text: as it was rendered.
    """

    time_ns: int
    epoch: int | None
    kind: str
    text: str
