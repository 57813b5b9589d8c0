"""A column of a step together with the formula of its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from hydra.measure.column import TEXT, YES_NO, Column, Repeats

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep
    from hydra.model import Evidence, Figure

    Formula = Callable[[MeasuredStep], Figure]
    Condition = Callable[[MeasuredStep], bool]


def _always(_: MeasuredStep) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepColumn(Column):
    """A column of the steps of every system.

    Attributes:
        of: its figure, from the parts of a measured step; None: not known.
        when: whether a step has the column.
        evidence: the class of its figures if they are evidence, as which a stored figure is read.
    """

    of: Formula
    when: Condition = _always
    evidence: type[Evidence] | None = None

    @classmethod
    def made_of(cls, column: Column, *, of: Formula, when: Condition = _always) -> StepColumn:
        """The column with a formula."""
        return cls(**{each.name: getattr(column, each.name) for each in fields(column)}, of=of, when=when)

    def figure(self, step: MeasuredStep) -> Figure:
        """The figure of a step that has the column."""
        return self.of(step)


def step_text(
    name: str,
    about: str,
    heading: str = "",
    *,
    of: Formula,
    repeats: Repeats = "common",
    when: Condition = _always,
    evidence: type[Evidence] | None = None,
) -> StepColumn:
    """A column of texts or evidence; by default a repeated row shows what its repeats share."""
    return StepColumn(*(name, TEXT, about, heading), repeats=repeats, of=of, when=when, evidence=evidence)


def step_yes_no(name: str, about: str, *, of: Formula, when: Condition = _always) -> StepColumn:
    """A column of yes or no; a repeated row shows what its repeats share."""
    return StepColumn(name, YES_NO, about, repeats="common", of=of, when=when)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderColumn(StepColumn):
    """A column that needs the identity of each message: it is empty if messages have no header."""

    def figure(self, step: MeasuredStep) -> Figure:
        """The figure of a step that has the column."""
        return None if step.o.counted else self.of(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileColumn(StepColumn):
    """A percentile (%) of a step's merged histogram; of a repeated row that of the merged histograms of all repeats."""

    histogram: Literal["latency", "lag", "ack"]
    percent: float
