"""What a part of a published experiment is, what comes out of it, and a table; presets for design goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hydra.measure.column import NOT_CLEAN_WHY, TEXT, Column
from hydra.model import Figure, Scenario, number

Row = Mapping[str, Figure]

FEWEST_RECORDS: Final = 1000
"""The smallest number of records at any scale: fewer would measure only the start of a transfer."""
WHY: Final = Column(NOT_CLEAN_WHY, TEXT, "why the row is not clean; empty if it is")
TROUBLE: Final = Column(
    "host_trouble", TEXT, "what the hosts of the row lacked, or what disturbed them; empty if nothing"
)
MARKING: Final = (WHY, TROUBLE)
"""Columns of any table with measured rows: rows with a text have a mark, and a note of the table has the text."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """The options of an experiment that the user chose.

    Attributes:
        scale: factor for the published numbers of records and durations; 1 is the original.
        options: values of the experiment's own flags by name; flags that were not given are
            absent.
        hosts: number of hosts of the cluster.
    """

    scale: float
    options: Mapping[str, Any] = field(default_factory=dict)
    hosts: int = 1

    def records(self, published: int) -> int:
        """The number of records at this scale, for a published number."""
        return max(round(published * self.scale), min(published, FEWEST_RECORDS))


@dataclass(frozen=True, slots=True)
class ExperimentPart:
    """One run of an experiment: its name, which its folder has, too, and its scenario as the content of a file."""

    name: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of a part.

    Attributes:
        part: the part as the experiment defines it.
        scenario: the scenario that was run, with the user's flags.
        rows: the rows of its table.
        publishers: for each row, figures of each publisher: those of ``store.client_rows.client_figures``, its
            ``agent``, and ``began_ns``, the time of its first data (ns since 1970).
        subscribers: for each row, the same figures of each subscriber.
        servers: for each row, figures of each server by name (``RunServers.counters`` as rates).
        reason: why the part could not be run; "" if it was run.
    """

    part: ExperimentPart
    scenario: Scenario
    rows: Sequence[Row]
    publishers: Sequence[Sequence[Row]] = ()
    subscribers: Sequence[Sequence[Row]] = ()
    servers: Sequence[Mapping[str, Row]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentTable:
    """A table of an experiment, with measured and published figures.

    ``x`` and ``y`` name the columns of its plot; ``marks`` has the positions of vertical lines in the plot by their
    text.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    x: str = ""
    y: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings for one design goal: values by dotted key of the scenario, each with the reason."""

    about: str
    values: Mapping[str, tuple[Figure, str]]


def ratio(measured: Figure, published: Figure) -> float | None:
    """Measured / published; None if one is unknown, or the published one is 0."""
    measured_value, published_value = number(measured), number(published)
    return measured_value / published_value if measured_value is not None and published_value else None
