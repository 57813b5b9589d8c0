"""Events: their kind, severity and text, and the data that is stored of them."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from string import Formatter
from typing import Any, ClassVar, Final, NamedTuple, dataclass_transform

import msgspec

from hydra.events.value_formatting import counted, duration, id_ranges, number, ranges


class Level(StrEnum):
    """The severity of an event, the most severe first."""

    FAIL = "fail"
    """Something was not measured."""
    LOSS = "loss"
    """The figures show less than they seem to."""
    NOTE = "note"
    """The user should read it before using the figures."""
    ROUTINE = "routine"
    """It happens in every run."""


_FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": number,
    "duration": duration,
    "ids": id_ranges,
    "GB": lambda size_bytes: f"{size_bytes / 1e9:.1f} GB",
}
"""Formats for values in a template, in addition to Python's."""


class _Template(Formatter):
    """Fills a template with the fields and properties of an event."""

    def get_value(self, key: int | str, args: Any, _: Mapping[str, Any]) -> Any:
        return getattr(args[0], str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:  # {clients:client|clients}
            return counted(value, *format_spec.split("|"))
        formatter = _FORMATS.get(format_spec)
        return formatter(value) if formatter else str(super().format_field(value, format_spec))


_TEMPLATE: Final = _Template()


@dataclass(frozen=True, slots=True)
class EventData:
    """An event as data: the form that is stored and that programs read.

    Attributes:
        kind: name of the kind.
        level: the severity.
        text: what happened, in one line.
        remedy: what to try; "" if nothing has to be done.
        fields: the values in the text, as JSON values.
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
    """Something that happened in a run. A subclass becomes a frozen dataclass of its values, and is registered.

    ``str(event)`` is the line for the user. The line and the fields may hold secrets, which are hidden before storing.

    Attributes:
        kind: name of the kind; the default is made from the name of the class.
        category: name under which run.db and the report group events; the default is the kind.
        level: the severity.
        summary: the report's text for several events of one category.
        template: the text, with fields and properties in braces.
        remedy: what to try; "" if nothing has to be done.
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
        """The event as data."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # see above
        return EventData(self.kind, self.level, self.text, self.remedy, msgspec.to_builtins(values, enc_hook=_ids))


def _ids(clients: Iterable[int]) -> list[list[int]]:
    """A set of ids as ranges: the first and the last id of each."""
    return [[run.start, run.stop - 1] for run in ranges(clients)]


def kind_named(name: str) -> type[Event] | None:
    """The class of a kind or a category; None: its module is not imported."""
    return Event.kinds.get(name)


class StoredEvent(NamedTuple):
    """An event as it is stored in a run's database.

    Attributes:
        time_ns: wall time.
        epoch: the step of the event; None: between steps, or unknown.
        data: its kind, severity and text.
    """

    time_ns: int
    epoch: int | None
    data: EventData

    @property
    def kind(self) -> str:
        """The name of the event's kind."""
        return self.data.kind

    @property
    def text(self) -> str:
        """The event's line for the user."""
        return str(self.data)

    @property
    def category(self) -> str:
        """The name under which the report groups the event."""
        known = kind_named(self.kind)
        return known.category if known else self.kind

    @property
    def summary(self) -> str:
        """The text with which the report summarises several events of this category."""
        return (kind_named(self.category) or Event).summary
