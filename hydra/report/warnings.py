"""The warnings of a run, as objects for JSON and as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from hydra.events.event import Level
from hydra.events.stored_event import StoredEvent
from hydra.events.value_formatting import MARK, counted
from hydra.events.warnings import HydraWarning
from hydra.sweep import Row

_ROWS_NAMED: Final = 4
"""The maximum number of rows that a warning names."""


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

    Warnings of one kind with the same remedy are joined, and the remedy follows them once.

    Args:
        about: all rows of a table.
    """
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    levels: dict[tuple[str, str], Level] = {}
    marked: set[tuple[str, str]] = set()
    for name, warnings, clean in about:
        for warning in warnings:
            kind = warning.kind, warning.remedy
            levels[kind] = warning.level
            if not clean and warning.level != Level.NOTE:
                marked.add(kind)
            kinds.setdefault(kind, {}).setdefault(warning.text, []).append(name)
    order = list(Level)
    found = []
    for kind in sorted(kinds, key=lambda each: order.index(levels[each])):
        (names, text), *others = ((_names(its, len(about)), text) for text, its in kinds[kind].items())
        joined = "; ".join([text, *(another if its == names else f"{its}: {another}" for its, another in others)])
        text = f"{joined}; {kind[1]}" if kind[1] else joined
        found.append(MergedWarning(names, text, MARK if kind in marked else ""))
    return found


def _names(rows: Sequence[str], of: int) -> str:
    if len(rows) == of > _ROWS_NAMED:
        return f"all {of} rows"
    if len(rows) <= _ROWS_NAMED:
        return "; ".join(rows)
    return f"{'; '.join(rows[: _ROWS_NAMED - 1])}; {counted(len(rows) - _ROWS_NAMED + 1, 'more row')}"
