"""The warnings of rows, in the order in which a row shows them.

A warning does not contain its row: tables and reports show the row beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from hydra.events.event import Level, StoredEvent
from hydra.events.value_formatting import MARK, counted
from hydra.events.warnings import HydraWarning
from hydra.model import Scenario
from hydra.report.connection_warnings import (
    ConnectionsLost,
    LostBySilence,
    NeverBack,
    NotLetIn,
    PartialRepeats,
    RowFailed,
    RowPartial,
    RowSkipped,
    StepRetried,
    SubscribersWithoutReport,
)
from hydra.report.host_warnings import GeneratorLimited, HostBusy, HostShared, RowDisturbed
from hydra.report.loss_warnings import (
    BacklogAtEnd,
    GroupOutcomeUnknown,
    LateMessages,
    LossInterval,
    MessagesLost,
    OutcomeUnknown,
    Undrained,
)
from hydra.report.row_context import RowContext, RowWarning, losses_by_rate
from hydra.report.send_warnings import (
    BatchNotFilled,
    PublisherStalled,
    PublisherThrottled,
    RateMissed,
    SendsRefused,
    SendsUnanswered,
    StoppedEarly,
)
from hydra.report.slow_client_warnings import NotJudged, SlowClientsWithoutEffect, UnsteadyRow
from hydra.sweep import Row, rows_of

OF_STATUS: Final[Sequence[type[RowWarning]]] = (
    RowSkipped,
    RowFailed,
    RowPartial,
    StepRetried,
    PartialRepeats,
)
"""Something is missing in a row."""
OF_FIGURES: Final[Sequence[type[RowWarning]]] = (
    LossInterval,
    MessagesLost,
    Undrained,
    OutcomeUnknown,
    GroupOutcomeUnknown,
    BacklogAtEnd,
    LateMessages,
    UnsteadyRow,
    SubscribersWithoutReport,
    NotLetIn,
    NeverBack,
    LostBySilence,
    RateMissed,
    BatchNotFilled,
    NotJudged,
    StoppedEarly,
    SendsRefused,
    SendsUnanswered,
    PublisherThrottled,
    PublisherStalled,
    ConnectionsLost,
    HostBusy,
    HostShared,
    RowDisturbed,
    GeneratorLimited,
    SlowClientsWithoutEffect,
)
"""Something limits what the figures of a row mean."""


def warnings_of(row: Row, scenario: Scenario, rows: Sequence[Row] = ()) -> list[HydraWarning]:
    """The warnings of a row.

    Args:
        row: the row.
        scenario: the scenario of the run.
        rows: all rows of the run.
    """
    return _warnings(RowContext(row, scenario, losses_by_rate(scenario, rows)))


def warnings_of_rows(scenario: Scenario, rows: Sequence[Row]) -> list[list[HydraWarning]]:
    """The warnings of each row of a run."""
    losses = losses_by_rate(scenario, rows)
    return [_warnings(RowContext(row, scenario, losses)) for row in rows]


def _warnings(about: RowContext) -> list[HydraWarning]:
    return [*_found(about, OF_STATUS), *rows_of(about.scenario).warnings(about.row), *_found(about, OF_FIGURES)]


def _found(about: RowContext, kinds: Iterable[type[RowWarning]]) -> list[HydraWarning]:
    return [warning for kind in kinds for warning in kind.found_in(about)]


_ROWS_NAMED: Final = 4
"""The maximum number of rows that a warning names."""
_WORDS_SHARED: Final = 4
"""The least number of words that stand once before what differs."""


def warnings(
    rows: Sequence[Row], notes: Sequence[Sequence[HydraWarning]], events: Iterable[StoredEvent]
) -> list[dict[str, Any]]:
    """The warnings as objects for JSON, those of the run first.

    Args:
        rows: the rows of the table.
        notes: the warnings of each row.
        events: the stored events of the run.

    Returns:
        For each warning ``row`` (its place in ``rows``, from 0; None: the run), ``clients`` of that row, ``step``
        of the warning (None: no step, or several), and the fields of :class:`hydra.events.event.EventData`.
    """
    of_run = [
        {"row": None, "clients": None, "step": event.epoch, **asdict(event.data)}
        for event in events
        if event.data.level != Level.ROUTINE
    ]
    of_rows = [
        {"row": place, "clients": row.get("clients"), "step": None, **asdict(warning.data())}
        for place, (row, its) in enumerate(zip(rows, notes, strict=True))
        for warning in its
    ]
    return [*of_run, *of_rows]


class WarnedRow(NamedTuple):
    """A row with its name, its warnings, and whether it is clean."""

    name: str
    warnings: Sequence[HydraWarning]
    clean: bool = False


class MergedWarning(NamedTuple):
    """A warning of one row or several: their names, its text, and ``MARK`` if it is a reason why one is not clean."""

    rows: str
    text: str
    mark: str


def merge_equal_warnings(about: Sequence[WarnedRow]) -> list[MergedWarning]:
    """Every warning once, the most severe first, with its rows.

    Warnings of one kind with the same remedies are joined under the names of all their rows. What their texts share at
    the beginning stands once, and the remedies follow once.

    Args:
        about: all rows of a table.
    """
    texts: dict[tuple[str, str], _Stated] = {}
    for name, warnings, clean in about:
        for warning in warnings:
            stated = texts.setdefault((warning.kind, warning.text), _Stated(warning.level))
            stated.rows.append(name)
            stated.remedies |= dict.fromkeys(filter(None, [warning.remedy]))
            stated.marked |= not clean and warning.level != Level.NOTE
    kinds: dict[tuple[str, str], dict[str, _Stated]] = {}
    for (kind, text), stated in texts.items():
        kinds.setdefault((kind, "; ".join(stated.remedies)), {})[text] = stated
    order = list(Level)
    found = []
    for (_, remedy), its in sorted(kinds.items(), key=lambda each: min(order.index(s.level) for s in each[1].values())):
        rows = list(dict.fromkeys(row for stated in its.values() for row in stated.rows))
        text = "; ".join(filter(None, [_joined(its, len(about)), remedy]))
        found.append(MergedWarning(_names(rows, len(about)), text, MARK if any(s.marked for s in its.values()) else ""))
    return found


@dataclass
class _Stated:
    """A text of a kind of warning: its severity, its rows, its remedies, and whether one of the rows is not clean."""

    level: Level
    rows: list[str] = field(default_factory=list)
    remedies: dict[str, None] = field(default_factory=dict)
    marked: bool = False


def _joined(texts: Mapping[str, _Stated], of: int) -> str:
    """The texts of a kind, each after the names of its rows if these differ, without the beginning of the first one."""
    names = [_names(stated.rows, of) for stated in texts.values()]
    if len(set(names)) == 1:
        return "; ".join(texts)
    words = [text.split(" ") for text in texts]
    shared = next(n for n, each in enumerate(zip_longest(*words)) if len(set(each)) > 1)
    start = " ".join(words[0][:shared])
    shared = shared if shared >= _WORDS_SHARED else 0
    parts = [f"{name}: {' '.join(own[shared:])}" for name, own in zip(names, words, strict=True)]
    start += "" if start.endswith(":") else " …"
    return f"{start} {'; '.join(parts)}" if shared else "; ".join(parts)


def _names(rows: Sequence[str], of: int) -> str:
    if len(rows) == of > _ROWS_NAMED:
        return f"all {of} rows"
    if len(rows) <= _ROWS_NAMED:
        return _listed(rows)
    return f"{_listed(rows[: _ROWS_NAMED - 1])}; {counted(len(rows) - _ROWS_NAMED + 1, 'more row')}"


def _listed(rows: Sequence[str]) -> str:
    """Names in a line; those that are numbers of the same have its word once: ``10, 30, 100 subscribers``."""
    parts = [row.split(" ", 1) for row in rows]
    units = {each[-1] for each in parts}
    if len(rows) == 1 or len(units) > 1 or not all(len(each) == 2 and each[0][0].isdigit() for each in parts):
        return "; ".join(rows)
    return f"{', '.join(number for number, _ in parts)} {units.pop()}"
