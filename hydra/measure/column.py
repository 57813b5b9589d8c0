"""The record of a column, and the columns that repeats add beside one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from hydra.model import Role

Digits = Literal["two", "six", "none"]
Repeats = Literal["mean", "median", "merged", "common", "noted", "pooled"]
Better = Literal["", "higher", "lower"]

PER_SECOND: Final = "messages/s"
MB_S: Final = "MB/s"
MICROSECONDS: Final = "µs"
MESSAGES: Final = "messages"
SUBSCRIBERS: Final = "subscribers"
YES_NO: Final = "yes/no"
TEXT: Final = "text"
"""The unit of a column that holds words."""

REPEATS: Final = "repeats"
INTERVAL: Final = "_ci95"
"""Suffix of the column with half the width of a mean's 95 % interval."""
COUNT: Final = "_n"
"""Suffix of the column with the number of repeats that a figure is of, where these are not all."""
LOW: Final = "_low"
HIGH: Final = "_high"
"""Suffixes of the columns with the range of a percentile or an extreme."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: in ``table.csv``, ``rows.json`` and ``--fail-if``.
        unit: of its figures; ``YES_NO`` and ``TEXT`` are no numbers, "" is a plain number.
        help: its definition, one line of Markdown. Columns side by side with the same one share a line of the docs.
        heading: what tables, panels and legends call it; "": its name.
        digits: of a fraction: two behind the point, the six significant ones of the published losses, or none in the
            published table.
        repeats: what a repeated row shows: the mean; the median; the percentile of the merged histograms; what all
            repeats have in common (a setting, a flag, a text); each text with its number of repeats; or a figure from
            the evidence of all repeats together.
        axis: the title of an axis for it; "": its unit.
        better: which of two figures is the better one; "": neither is by itself.
    """

    name: str
    unit: str = ""
    help: str = ""
    heading: str = ""
    digits: Digits = "two"
    repeats: Repeats = "mean"
    axis: str = ""
    better: Better = ""

    @property
    def title(self) -> str:
        """What a table or a legend calls it."""
        return self.heading or self.name

    @property
    def axis_title(self) -> str:
        """What an axis calls it."""
        return self.axis or self.unit or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportColumn(Column):
    """A column of one system: what its clients reported under one key of the ``system`` object.

    Attributes:
        role: whose reports.
        key: of the object; a client that does not name it does not count.
        fold: what becomes of the figures of all these clients: their sum, their mean, the highest, or the one that all
            share (none where they differ). Where no client names the key there is no figure.
    """

    role: Role
    key: str
    fold: Literal["sum", "mean", "max", "common"] = "sum"


def text_column(name: str, about: str, heading: str = "", repeats: Repeats = "common") -> Column:
    """A column of words, which repeats share by default."""
    return Column(name, TEXT, about, heading, repeats=repeats)


def yes_no_column(name: str, about: str) -> Column:
    """A column of yes or no, which repeats share."""
    return Column(name, YES_NO, about, repeats="common")


def wire_bytes(frame: str) -> ReportColumn:
    """The column of the bytes that messages took on their publishers' connections; ``frame`` is what surrounds each."""
    return ReportColumn(
        "wire_bytes",
        "bytes",
        f"bytes of the messages sent, each with {frame}: computed from their sizes; without probes, TCP and IP",
        role="publisher",
        key="wire_bytes",
    )


def of_repeats(column: Column) -> tuple[Column, ...]:
    """The columns that stand beside a repeated one, in their order."""
    count = Column(f"{column.name}{COUNT}", REPEATS, "number of repeats that the figure is computed from, if not all")
    if column.repeats == "mean":
        half = "half the width of the 95 % confidence interval of the mean of the repeats"
        return replace(column, name=f"{column.name}{INTERVAL}", help=half, heading=""), count
    if column.repeats in ("median", "merged"):
        ends = ((LOW, "the lowest of the repeats' figures"), (HIGH, "the highest of the repeats' figures"))
        return *(replace(column, name=f"{column.name}{end}", help=text, heading="") for end, text in ends), count
    return ()
