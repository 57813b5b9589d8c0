"""What an event is, how grave, what it says, and how it is stored."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from string import Formatter
from typing import Any, ClassVar, Final, NamedTuple, dataclass_transform

import msgspec

from hydra.events.value_formatting import duration, id_ranges, number, ranges


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


_SAID: Final[Mapping[str, Callable[[Any], str]]] = {"number": number, "duration": duration, "ids": id_ranges}
"""How a template writes a value, besides the formats of Python."""


class _Template(Formatter):
    """Fills a template with the fields and properties of an event."""

    def get_value(self, key: int | str, args: Any, _: Mapping[str, Any]) -> Any:
        return getattr(args[0], str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        said = _SAID.get(format_spec)
        return said(value) if said else str(super().format_field(value, format_spec))


_TEMPLATE: Final = _Template()


@dataclass(frozen=True, slots=True)
class EventData:
    """An event as data, beside what it says: what is stored, and what programs read.

    Attributes:
        kind: what it is; runs of other versions have kinds of their own.
        level: how much it matters.
        text: what happened, in one line.
        remedy: what to try; "" where nothing is to be done.
        fields: what the text is made of, as JSON has it; runs of earlier versions have none.
    """

    kind: str
    level: Level
    text: str
    remedy: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass_transform(frozen_default=True)
class Event(ABC):
    """Something that happened in a run. A subclass becomes a frozen dataclass whose fields say what, and is registered.

    ``str(event)`` is the line for a person. It may hold secrets, as fields may: who writes them down hides those first.

    Attributes:
        kind: what it is; the name of the class, unless it says otherwise.
        category: what run.db and the report gather it under; its kind, unless several share one.
        level: how much it matters.
        summary: what the report says of several of one category.
        template: the text, with fields and properties in braces.
        remedy: what to try; "" where nothing is to be done.
    """

    kinds: ClassVar[dict[str, type[Event]]] = {}
    kind: ClassVar[str] = ""
    category: ClassVar[str] = ""
    level: ClassVar[Level] = Level.ROUTINE
    summary: ClassVar[str] = "see the details"
    template: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)
        if "kind" not in cls.__dict__:
            cls.kind = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        cls.category = cls.category or cls.kind
        Event.kinds[cls.kind] = cls

    @property
    def text(self) -> str:
        """What happened, in one line."""
        return _TEMPLATE.vformat(self.template, (self,), {})

    @property
    def remedy(self) -> str:
        """What to try."""
        return ""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text

    def data(self) -> EventData:
        """It as data."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # see above
        return EventData(self.kind, self.level, self.text, self.remedy, msgspec.to_builtins(values, enc_hook=_ids))


def _ids(clients: Iterable[int]) -> list[list[int]]:
    """A set of ids, the first and the last of each run of them."""
    return [[run.start, run.stop - 1] for run in ranges(clients)]


EventSink = Callable[[Event], None]
"""Takes an event that is worth keeping with the run."""


class StoredEvent(NamedTuple):
    """An event as a run's database has it.

    Attributes:
        time_ns: wall time.
        epoch: the step in which it happened; None: between steps, or nobody said.
        told: what it is and says.
    """

    time_ns: int
    epoch: int | None
    data: EventData

    @property
    def kind(self) -> str:
        """That of its class."""
        return self.data.kind

    @property
    def text(self) -> str:
        """Its line for a person."""
        return str(self.data)

    @property
    def category(self) -> str:
        """What the report gathers it under."""
        known = Event.kinds.get(self.kind)
        return known.category if known else self.kind

    @property
    def summary(self) -> str:
        """What is said of several of its category."""
        return Event.kinds.get(self.category, Event).summary
