"""The result of a step: its figures in parts, all of them by the names of their columns, and these in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

import msgspec

from hydra.measure.column import Column, SystemColumns
from hydra.measure.connection_columns import ComingBack, Connecting, Disconnections
from hydra.measure.host_columns import Hosts, Limit, ServerLoad
from hydra.measure.latency_columns import DUE, SENT, ClockErrors, Delays, Latency, SendLatency
from hydra.measure.loss_columns import Loss, Outcomes, Usage
from hydra.measure.passing_columns import Accepted, HeldRate, Passing
from hydra.measure.step_part import Number, StepColumn, StepPart, columns_of
from hydra.measure.traffic_columns import Rates, Shares, SlowClients, TopicLoad, Totals, published
from hydra.model import SKIPPED_BY, USER, Figure, Histogram, SettingValue, StepPlan, StepStatus

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep


@dataclass(frozen=True, kw_only=True, eq=False)
class StepFigures(Mapping[str, Figure]):
    """The figures of a step in parts; as a mapping, each figure by the name of its column.

    The parts of a step that was not measured, or does not have them, are empty. A step has one kind of latency.

    Attributes:
        reported: the figures of the system's own columns by their names, that of its batch first.
        wall_s: the time of the step from its preparation to its figures, in seconds; None: not stored.
        skipped_by: ``user`` if the user skipped the step; otherwise None.
    """

    totals: Totals = Totals()
    rates: Rates = Rates()
    loss: Loss = Loss()
    latency: Latency | None = None
    send_latency: SendLatency | None = None
    clocks: ClockErrors = ClockErrors()
    shares: Shares = Shares()
    held: HeldRate = HeldRate()
    delays: Delays = Delays()
    accepted: Accepted = Accepted()
    outcomes: Outcomes = Outcomes()
    usage: Usage = Usage()
    topics: TopicLoad = TopicLoad()
    cohort: SlowClients = SlowClients()
    connecting: Connecting = Connecting()
    disconnections: Disconnections = Disconnections()
    coming_back: ComingBack = ComingBack()
    passing: Passing = Passing()
    servers: ServerLoad = ServerLoad()
    hosts: Hosts = Hosts()
    limit: Limit = Limit()
    reported: Mapping[str, Figure] = field(default_factory=dict)
    wall_s: Number | None = None
    skipped_by: str | None = None

    @classmethod
    def of_step(cls, step: MeasuredStep) -> StepFigures:
        """The figures of a measured step."""
        system = step.o.columns
        # The only other column of a system is that of how many messages are sent together.
        reported = {system.batch.name: step.o.batch, **{each.name: step.reported(each) for each in system.reported}}
        parts: dict[str, Any] = {name: part.of(step) for name, part in parts_of_steps().items() if part.is_in(step)}
        return cls(**parts, reported=reported)

    @classmethod
    def of(cls, cells: Mapping[str, Figure]) -> StepFigures:
        """The figures of a row or a step by the names of their columns; other names are those of a system's columns."""
        if isinstance(cells, StepFigures):
            return cells
        by_part, others = _by_part(cells)
        kinds = parts_of_steps()
        return cls._of({name: kinds[name].with_figures(found) for name, found in by_part.items()}, others)

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> StepFigures:
        """The same of stored JSON values, with evidence as objects.

        Raises:
            msgspec.ValidationError: a value is not one of its column.
        """
        by_part, others = _by_part(stored)
        kinds = parts_of_steps()
        parts = {name: msgspec.convert(found, kinds[name]) for name, found in by_part.items()}
        return cls._of(parts, msgspec.convert(others, dict[str, SettingValue]))

    @classmethod
    def _of(cls, parts: Mapping[str, Any], others: Mapping[str, Figure]) -> StepFigures:
        own: dict[str, Any] = {name: others.get(name) for name in _OWN}
        return cls(**parts, **own, reported={name: value for name, value in others.items() if name not in _OWN})

    @cached_property
    def cells(self) -> Mapping[str, Figure]:
        """Each figure by the name of its column.

        A measured step has a cell for each column that is not optional; otherwise only known figures have one.
        """
        own = list(self.reported.items())
        clients, *totals = self.totals.cells()
        cells = dict([clients, *own[:1], *totals])
        for name in parts_of_steps():
            if name != "totals" and (part := getattr(self, name)) is not None:
                cells |= part.cells()
            if name == "delays":
                cells |= own[1:]
        cells |= {name: value for name in _OWN if (value := getattr(self, name)) is not None}
        measured = self.totals.clients is not None
        return cells if measured else {name: value for name, value in cells.items() if value is not None}

    @property
    def p99_us(self) -> float | None:
        """The 99th percentile of latency, from the due times or, at rate ``max``, from the sends; None: not known."""
        due = self.latency.latency_p99_us if self.latency else None
        found = self.send_latency.latency_from_send_p99_us if due is None and self.send_latency else due
        return None if found is None else float(found)

    def __getitem__(self, name: str) -> Figure:
        return self.cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step: its figures, or the reason why there are none.

    ``histograms`` are the step's merged histograms by their stored name, only if rows are repeated: percentiles over
    several steps are computed from the sum of their counts.
    """

    epoch: int
    plan: StepPlan
    status: StepStatus
    figures: StepFigures = field(default_factory=StepFigures)
    reason: str = ""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)

    @property
    def passed_over(self) -> bool:
        """Whether the user skipped the step."""
        return self.figures.skipped_by == USER


_OWN: Final = ("wall_s", SKIPPED_BY)
"""The figures that belong to no part."""


@cache
def parts_of_steps() -> Mapping[str, type[StepPart]]:
    """The class of each part of a step's figures, by the name of its field, in the order of the columns."""
    kinds = ((name, (hint, *get_args(hint))) for name, hint in get_type_hints(StepFigures).items())
    return {name: k for name, known in kinds for k in known if isinstance(k, type) and issubclass(k, StepPart)}


@cache
def _columns() -> Mapping[str, tuple[str, StepColumn]]:
    """The part and the column of each figure that does not belong to a system, by its name."""
    return {column.name: (name, column) for name, part in parts_of_steps().items() for column in columns_of(part)}


def _by_part(cells: Mapping[str, Figure]) -> tuple[dict[str, dict[str, Figure]], dict[str, Figure]]:
    """The figures of each part, and the others; a number that repeats should share, and do not, is left out."""
    columns = _columns()
    parts: dict[str, dict[str, Figure]] = {}
    others: dict[str, Figure] = {}
    for name, value in cells.items():
        if name not in columns:
            others[name] = value
            continue
        part, column = columns[name]
        if column.takes(value):
            parts.setdefault(part, {})[name] = value
    return parts, others


def step_columns(
    latencies: Iterable[str] = (DUE, SENT),
    cohort: bool = True,
    system: SystemColumns | None = None,
    *,
    connecting: bool = True,
) -> tuple[Column, ...]:
    """The columns of a step in their order, by default all that any step can have.

    Args:
        latencies: the starts from which the steps count latency.
        cohort: whether the steps have a cohort.
        system: the columns that the system adds; None: those that all systems share.
        connecting: whether the steps measure how subscribers connect.
    """
    has = {Latency: DUE in latencies, SendLatency: SENT in latencies, SlowClients: cohort, Connecting: connecting}
    return tuple(_in_order(system or SystemColumns(), without={part for part, there in has.items() if not there}))


def _in_order(system: SystemColumns, without: set[type]) -> Iterator[Column]:
    for part in parts_of_steps().values():
        if part is Totals:
            yield from published(system)
        elif part not in without:
            yield from (column for column in columns_of(part) if column.shown)
        if part is Delays:
            yield from system.reported


def hidden_columns() -> tuple[StepColumn, ...]:
    """The figures of a step that are stored, but no column of a table."""
    return tuple(column for part in parts_of_steps().values() for column in columns_of(part) if not column.shown)
