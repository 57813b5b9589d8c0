"""Events as they are stored in a run's database, and the class of each stored kind."""

from __future__ import annotations

from typing import NamedTuple

from hydra.events import group_events, run_events, warnings  # noqa: F401  # they register their kinds
from hydra.events.event import Event, EventData


def kind_named(name: str) -> type[Event] | None:
    """The class of a kind or a category; None: its package is not imported."""
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
