"""The definition of a column, the structured evidence in its cells, and the columns that repeats add. Pure.

``loss_pattern``, ``loss_interval`` and ``steadiness`` find the evidence of a step for its loss and steadiness. A row
with repeats is computed from that of its steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from hydra.model import Evidence, Figure, Role


@dataclass(frozen=True, slots=True)
class LossBursts(Evidence):
    """The size of each burst of lost messages in a step, in seconds of traffic."""

    sizes_s: tuple[float, ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{size:.4g}" for size in self.sizes_s)

    @property
    def total_s(self) -> float:
        """The size of all bursts together."""
        return sum(self.sizes_s)


@dataclass(frozen=True, slots=True)
class LoneLossySubscriber:
    """A subscriber that lost alone: its id, and the share of its messages (a fraction)."""

    client: int
    loss: float


@dataclass(frozen=True, slots=True)
class LossEvidence(Evidence):
    """The evidence of a step for its loss.

    Attributes:
        length_s: the length of the step in seconds.
        count: the number of independent bursts.
        total, squares, largest: the sum, the sum of squares and the maximum of their sizes, in seconds of traffic as a
            mean over the subscribers.
        error: the standard error of ``total`` if losses last throughout the step; otherwise 0.
        freedom: the degrees of freedom of ``error``.
    """

    length_s: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    error: float = 0.0
    freedom: float = 0.0

    def __str__(self) -> str:
        numbers = (self.length_s, self.count, self.total, self.squares, self.largest, self.error, self.freedom)
        return " ".join(f"{value:.6g}" for value in numbers)

    @property
    def everywhere(self) -> bool:
        """Whether losses last throughout the step."""
        return self.freedom > 0


@dataclass(frozen=True, slots=True)
class UnlistedMessages(Evidence):
    """The clients that could not list single messages: publishers of one step, members of a consumer group, or both."""

    by: tuple[Literal["publisher", "members"], ...]

    def __str__(self) -> str:
        return ", ".join(self.by)


@dataclass(frozen=True, slots=True)
class Unsteadiness:
    """A difference between the seconds of a step, or between steps.

    Attributes:
        kind: a slow beginning, a change, an outlier (``second``), a second that received less than was due (``short``),
            a stop, or a slow first step (``first``).
        at_s: the second at which the beginning ends, the change occurs, or the outlier or stop begins; 0 for a first
            step.
        by: how much less (below zero) or more was received than otherwise, as a fraction: in the beginning, after the
            change, in the outlier, in the stop, or in the first step.
        for_s: about how many seconds a stop lasted.
    """

    kind: Literal["beginning", "change", "second", "short", "stop", "first"]
    at_s: int
    by: float
    for_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.at_s} {self.for_s if self.kind == 'stop' else self.by:.3g}"


@dataclass(frozen=True, slots=True)
class Differences(Evidence):
    """How the seconds of a step differ; of a repeated row how its first repeat differs, and the text of each repeat."""

    found: tuple[Unsteadiness, ...]
    repeats: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (*map(str, self.found), self.repeats)))


Digits = Literal["two", "six", "none", "all", "rate"]
Repeats = Literal["mean", "median", "merged", "common", "first", "noted", "highest", "pooled"]
Better = Literal["", "higher", "lower"]

PER_SECOND: Final = "messages/s"
MB_S: Final = "MB/s"
MICROSECONDS: Final = "µs"
MESSAGES: Final = "messages"
SUBSCRIBERS: Final = "subscribers"
PUBLISHERS: Final = "publishers"
SUBSCRIBERS_PER_SECOND: Final = "subscribers/s"
YES_NO: Final = "yes/no"
TEXT: Final = "text"
"""The unit of a column of texts."""

REPEATS: Final = "repeats"
INTERVAL: Final = "_ci95"
"""Suffix of the column with the ± of a mean: half the width of its 95 % confidence interval."""
COUNT: Final = "_n"
"""Suffix of the column with the number of repeats that have the figure, if not all have it."""
LOW: Final = "_low"
HIGH: Final = "_high"
"""Suffixes of the columns with the range of a percentile or an extreme."""


_SHORT: Final = {PER_SECOND: "msg/s", MESSAGES: "msg", SUBSCRIBERS_PER_SECOND: "/s"}
"""The short forms of units in a heading, because ten columns share a terminal."""
_NO_UNIT: Final = ("", SUBSCRIBERS, PUBLISHERS, YES_NO, TEXT)


@dataclass(frozen=True, slots=True)
class Column:
    """The definition of a column.

    Attributes:
        name: its name in ``table.csv``, ``rows.json`` and ``--fail-if``.
        unit: the unit of its figures; ``YES_NO`` and ``TEXT`` are no numbers, "" is a plain number.
        help: its definition, one line of Markdown. Adjacent columns with the same definition share a line of the docs.
        heading: its name in tables, panels and legends; "": ``name``.
        published: its name in the published tables; "": that of other tables.
        reached: of a setting, the column with what was reached of it, which tables show beside it; "": none.
        digits: the digits of a fraction: two decimals; six significant digits, as in the published losses; none, as in
            the published table; all, of a figure that is rounded already; or those of a searched rate, which has no
            decimals from 100/s on.
        repeats: the figure of a repeated row: the mean; the median; the percentile of the merged histograms; the
            highest figure; the common value of all repeats (a setting, a flag, a text); the text of the first repeat
            that has one; each text with its number of repeats; or a figure from the evidence of all repeats together.
        axis: the title of its axis in plots; "": its unit.
        better: whether the higher or the lower of two figures is better; "": neither.
    """

    name: str
    unit: str = ""
    help: str = ""
    heading: str = ""
    digits: Digits = "two"
    repeats: Repeats = "mean"
    axis: str = ""
    better: Better = ""
    published: str = ""
    reached: str = ""

    @property
    def title(self) -> str:
        """The column's name in tables and legends."""
        return self.heading or self.name

    @property
    def table_heading(self) -> str:
        """The same with the unit, as a table has it; what is counted needs no unit beside its name."""
        return self.title if self.unit in _NO_UNIT else f"{self.title} ({_SHORT.get(self.unit, self.unit)})"

    @property
    def axis_title(self) -> str:
        """The title of the column's axis in plots."""
        return self.axis or self.unit or self.name


POINT: Final = "point"
"""The name of a row, if the sweep lists its rows."""
STATUS: Final = "status"
FEWEST: Final = 10
"""The least number of lost messages of a subscriber that loses alone; fewer may be chance."""
START_S: Final = 0.1
"""Messages due within this many seconds of the start count as lost at the start."""
REASON: Final = "reason"
CLEAN: Final = "clean"
NOT_CLEAN_WHY: Final = "why"
"""Whether a row is clean, and why it is not (sweep/cleanness.py): of JSON and CSV, made when these are written."""
FAILED_STEPS: Final = "failed_steps"
"""The number of failed steps of a search's row, which were retried."""
STEP_S: Final = "step_s"
WALL: Final = "wall_s"
"""The time of a step from its preparation to its figures, connecting and the drain included, in seconds."""
LOST_BY_SILENCE: Final = "lost_by_silence"
"""Connections that servers ended because their clients were silent, of systems whose clients ping."""
AGGREGATE_MAX: Final = "aggregate_max_pps"
"""The columns of rows that are no figures of a step."""
ANSWER: Final = "_answer"
WHY: Final = "_why"
LOW_PPS: Final = "_low_pps"
HIGH_PPS: Final = "_high_pps"
"""Suffixes: each is appended to the name of a search and gives the name of a column beside the searched rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportColumn(Column):
    """A column of one system, computed from one key of the ``system`` object in its clients' reports.

    Attributes:
        role: the role of the clients.
        key: the key of the object; a client without it does not count.
        fold: how the figures of all these clients are combined: their sum, their mean, the highest, or the common one
            (none if they differ). If no client has the key, there is no figure.
    """

    role: Role
    key: str
    fold: Literal["sum", "mean", "max", "common"] = "sum"


BATCH: Final = Column(
    "burst",
    MESSAGES,
    "the largest number of messages that a publisher sends back to back when it is behind its schedule",
    "Burst",
    repeats="common",
    axis="messages in a burst",
)


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """The columns of a system in addition to those of all systems.

    Attributes:
        batch: the second column of a step, with the setting of how many messages are sent together.
        reported: the columns of what only this system's clients report; they stand after ``blocked_s``.
    """

    batch: Column = BATCH
    reported: Sequence[ReportColumn] = ()


@dataclass(frozen=True, slots=True)
class Values(Evidence):
    """Several values in one cell, such as those of repeats that differ; their separator as text."""

    values: tuple[Figure, ...]
    separator: str = " / "

    def __str__(self) -> str:
        return self.separator.join(map(str, self.values))


def values_of(figure: Figure) -> list[Figure]:
    """The values of a cell: none if it is empty."""
    if isinstance(figure, Values):
        return [value for each in figure.values for value in values_of(each)]
    return [] if figure in (None, "") else [figure]


def text_column(name: str, about: str, heading: str = "", repeats: Repeats = "common") -> Column:
    """A column of texts; by default a repeated row shows the text that its repeats share."""
    return Column(name, TEXT, about, heading, repeats=repeats)


def yes_no_column(name: str, about: str) -> Column:
    """A column of yes or no; a repeated row shows what its repeats share."""
    return Column(name, YES_NO, about, repeats="common")


def wire_bytes(frame: str) -> ReportColumn:
    """The column of the bytes of messages on the publishers' connections; ``frame`` names what is added to each."""
    return ReportColumn(
        "wire_bytes",
        "bytes",
        f"bytes of the messages sent, each with {frame}: computed from the messages' sizes; without probes and without "
        f"the headers of TCP and IP",
        role="publisher",
        key="wire_bytes",
    )


def lost_by_silence(what: str) -> ReportColumn:
    """The column of the connections that a server ended because a subscriber was silent; ``what`` is what it counts."""
    return ReportColumn(LOST_BY_SILENCE, "", f"{what}. Empty if there was none", role="subscriber", key=LOST_BY_SILENCE)


@cache
def of_repeats(column: Column) -> tuple[Column, ...]:
    """The columns that repeats add to a column, in their order."""
    count = Column(
        f"{column.name}{COUNT}",
        REPEATS,
        "number of repeats from which the figure is computed, if it is not all repeats",
    )
    if column.repeats == "mean":
        half = "the mean over the repeats ± this figure is the 95 % confidence interval of the mean"
        return replace(column, name=f"{column.name}{INTERVAL}", help=half, heading=""), count
    if column.repeats == "highest":
        return (count,)
    if column.repeats in ("median", "merged"):
        ends = ((LOW, "the lowest of the repeats' figures"), (HIGH, "the highest of the repeats' figures"))
        return *(replace(column, name=f"{column.name}{end}", help=text, heading="") for end, text in ends), count
    return ()


_MOST_MEANT: Final = 3


def columns_meant(text: str, columns: Mapping[str, Column]) -> list[str]:
    """The names of the columns that a user may mean by a text, the most likely one first; at most three.

    A column is meant by the words of its heading in tables, by words of its name, or by a name that is spelled
    similarly. The columns that repeats add are not meant.

    Args:
        text: what the user wrote.
        columns: the columns by name, in the order of the table.
    """
    from difflib import get_close_matches  # most commands do not wait for it

    words = _words(text)
    own = [each for each in columns.values() if not any(each.name.startswith(f"{other}_") for other in columns)]
    close = get_close_matches(text, [each.name for each in own], 1)
    if words:
        titles = [each.name for each in own if _words(each.title) == words]
        parts = [each.name for each in own if words <= _words(f"{each.title} {each.name}")]
        if titles or parts:
            return list(dict.fromkeys([*titles, *parts]))[: 1 if titles else _MOST_MEANT]
    return close


def _words(text: str) -> set[str]:
    """The words of a text in lower case, without a unit in brackets."""
    return set(re.findall(r"[a-z0-9.]+", re.sub(r"[(\[].*", "", text.lower()).replace("_", " ")))
