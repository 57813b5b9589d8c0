"""What is compared: runs as rows of repeats. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hydra.measure.column import Column
from hydra.model import Figure

Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Repeat:
    """One repeat of a row: one sample.

    Attributes:
        figures: by column; empty where it could not be measured.
        below: latencies that are shorter than the clocks can tell.
        problem: why it was not measured; "": it was.
        passed_over: whether that is because somebody passed it over, or the run ended before: it did not fail.
    """

    figures: Row
    below: frozenset[str] = frozenset()
    problem: str = ""
    passed_over: bool = False

    @property
    def failed(self) -> bool:
        """Whether it could not be measured: there is no worse one."""
        return bool(self.problem) and not self.passed_over


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a step, a second or longer: drawn, and never a sample.

    Attributes:
        at_s: its begin, since the start of the step.
        received_pps: copies that all subscribers received, a second.
        p99_us: of their latency; None where nothing arrived.
    """

    at_s: float
    received_pps: float
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class SideRow:
    """A row of a run.

    Attributes:
        settings: all that it was measured with, by name: client count, rate, and every other setting.
        repeats: in the order in which they were measured.
        shown: the row as the run's own table has it.
        notes: what has to be known before its figures are believed.
        slices: of each of its steps whose seconds were kept, in the order of measuring.
    """

    settings: Row
    repeats: Sequence[Repeat]
    shown: Row = field(default_factory=dict)
    notes: Sequence[str] = ()
    slices: Sequence[Sequence[Slice]] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """A run that is compared.

    Attributes:
        name: by which it is told from the others.
        directory: where it is.
        system: what it measured.
        searches: what it searches for, as text; "" for a run that does not.
        varied: the settings that its rows differ in.
        rows: in the order of its table.
        columns: of the figures of a repeat, by name.
        primary: the figure that such runs are usually compared by; those that follow where it is not known.
        facts: where and with what it was measured, as JSON.
    """

    name: str
    directory: str
    system: str
    rows: Sequence[SideRow]
    columns: Mapping[str, Column]
    searches: str = ""
    varied: Sequence[str] = ()
    primary: Sequence[str] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
