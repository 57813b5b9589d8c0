"""A part of a step's result: a frozen class whose fields are columns, each beside the formula of its figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar, cast

from hydra.measure.column import MICROSECONDS, TEXT, YES_NO, Column, Values

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep
    from hydra.model import Figure

    Formula = Callable[[MeasuredStep], Figure]

Number = int | float
"""A number as its formula gives it; the mean of repeats may have a fraction."""
T = TypeVar("T")
_COLUMN: Final = "column"
"""The key of a field's metadata for its :class:`StepColumn`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepColumn(Column):
    """A column of the steps of every system.

    Attributes:
        of: its figure, from the parts of a measured step; None: not known.
        header: whether it needs the identity of each message, so it is empty if messages have no header.
        optional: whether a step without the figure has no such column.
        shown: whether tables and files have the column; warnings alone read another one.
    """

    of: Formula
    header: bool = False
    optional: bool = False
    shown: bool = True

    def takes(self, value: Figure) -> bool:
        """Whether a part can have the value; not if it is a number that repeats should share, and do not."""
        return self.unit == TEXT or not isinstance(value, Values)

    def figure(self, step: MeasuredStep) -> Figure:
        """The figure of a step that has the part."""
        return None if self.header and step.o.counted else self.of(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileColumn(StepColumn):
    """A percentile (%) of a step's merged histogram; of a repeated row that of the merged histograms of all repeats."""

    histogram: Literal["latency", "lag", "ack"]
    percent: float


def figure(unit: str, about: str, heading: str = "", *, of: Callable[[MeasuredStep], T], **more: Any) -> T:
    """A field of a part, with its column and the formula of its figure; its value is None unless it is known.

    The further arguments are those of :class:`StepColumn`; the column has the name of the field.
    """
    made: T = _field(StepColumn("", unit, about, heading, of=cast("Formula", of), **more))
    return made


def text(about: str, heading: str = "", *, of: Callable[[MeasuredStep], T], **more: Any) -> T:
    """The field of a text or evidence; by default a repeated row shows what its repeats share."""
    return figure(TEXT, about, heading, of=of, **{"repeats": "common", **more})


def yes_no(about: str, *, of: Callable[[MeasuredStep], T], **more: Any) -> T:
    """The field of yes or no; a repeated row shows what its repeats share."""
    return figure(YES_NO, about, of=of, repeats="common", **more)


def percentile(about: str, heading: str = "", *, of: Callable[[MeasuredStep], T], **more: Any) -> T:
    """The field of a percentile of a histogram in µs; the further arguments are those of :class:`PercentileColumn`."""
    shared = {"repeats": "merged", "better": "lower", **more}
    made: T = _field(PercentileColumn("", MICROSECONDS, about, heading, of=cast("Formula", of), **shared))
    return made


def _field(column: StepColumn) -> Any:
    return field(default=None, metadata={_COLUMN: column})


def columns_of(part: type[StepPart]) -> tuple[StepColumn, ...]:
    """The columns of a part in their order."""
    key: Any = part  # a type checker takes a class of unhashable objects for unhashable
    found: tuple[StepColumn, ...] = _columns(key)
    return found


@cache
def _columns(part: Any) -> tuple[StepColumn, ...]:
    return tuple(replace(each.metadata[_COLUMN], name=each.name) for each in fields(part))


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step's figures. A figure that is not known is None.

    The part of a repeated row has the figures of the row. Of repeats that differ, a text or evidence is a ``Values``,
    and a number that repeats should share is None.

    Attributes:
        everywhere: whether every step has the columns of the part; otherwise only one with a figure of it.
    """

    everywhere: ClassVar[bool] = True

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:  # noqa: ARG003  # of some parts
        """Whether a measured step has the part."""
        return True

    @classmethod
    def of(cls, step: MeasuredStep) -> Self:
        """The part of a measured step."""
        return cls.with_figures({column.name: column.figure(step) for column in columns_of(cls)})

    @classmethod
    def of_row(cls, cells: Mapping[str, Figure]) -> Self:
        """The part of a row, by the names of its columns, without the other parts."""
        known = {column.name: (column, cells.get(column.name)) for column in columns_of(cls)}
        return cls.with_figures({name: value for name, (column, value) in known.items() if column.takes(value)})

    @classmethod
    def with_figures(cls, figures: Mapping[str, Figure]) -> Self:
        """The part with these figures, by the names of their columns."""
        made: Any = cls
        part: Self = made(**figures)
        return part

    def cells(self) -> Iterator[tuple[str, Figure]]:
        """The name and the figure of each column that a step with this part has."""
        columns = columns_of(type(self))
        values = [getattr(self, column.name) for column in columns]
        if self.everywhere or any(value is not None for value in values):
            for column, value in zip(columns, values, strict=True):
                if value is not None or not column.optional:
                    yield column.name, value
