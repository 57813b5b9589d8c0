"""A published experiment: which runs repeat it, and how their figures stand beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.columns.column import Column
from hydra.model import Figure, Scenario

Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for.

    ``scale`` multiplies the published numbers of records and lengths; ``options`` are the experiment's own by name.
    """

    scale: float
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One run of an experiment: its name, which is that of its folder, and its scenario as a file would have it."""

    name: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """A part that was run.

    Attributes:
        part: what was asked for.
        scenario: what was run: with the user's flags.
        rows: its table.
        publishers: of each row, what each of its publishers did: figures by the names of ``PUBLISHER_FIGURES``.
        subscribers: of each row, what each of its subscribers did, likewise.
        servers: of each row, what each server did: figures by name (``System.server_counters`` as rates).
    """

    part: Part
    scenario: Scenario
    rows: Sequence[Row]
    publishers: Sequence[Sequence[Row]] = ()
    subscribers: Sequence[Sequence[Row]] = ()
    servers: Sequence[Mapping[str, Row]] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A table of an experiment: measured beside published.

    ``x`` and ``y`` name the columns of its picture, ``marks`` the vertical lines in it by their text.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    x: str = ""
    y: Sequence[str] = ()
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """An experiment as it was published.

    Attributes:
        name: by which it is called.
        title: one line for lists.
        source: who published it, and when.
        scale: the scale unless the user says otherwise: it takes less than three minutes on two cores.
        next_part: the run after those that are done, None when there is none. Pure and repeatable: an experiment that
            was interrupted goes on by asking again.
        views: its tables, from what has been done so far.
    """

    name: str
    title: str
    source: str
    scale: float
    next_part: Callable[[Order, Sequence[Done]], Part | None]
    views: Callable[[Order, Sequence[Done]], Sequence[View]]


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings for one design goal: values by dotted key of the scenario, each with the reason."""

    about: str
    values: Mapping[str, tuple[Figure, str]]
