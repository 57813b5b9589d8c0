"""Every warning of a run for programs: of each row, and of the run as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hydra.events.event import Level, StoredEvent
from hydra.events.kinds import level_of
from hydra.model import Scenario
from hydra.report.row_warnings import notes_of
from hydra.sweep import Row


def warnings(scenario: Scenario, rows: Sequence[Row], events: Iterable[StoredEvent]) -> list[dict[str, Any]]:
    """The warnings, those of the run first.

    Args:
        scenario: what was asked for.
        rows: the table.
        events: what happened in the run.

    Returns:
        Of each: ``row`` (its place in ``rows``, from 0; None: the run), ``clients`` of that row, ``step`` in which it
        happened (None: of none, or of several), ``level`` (:class:`hydra.events.event.Level`), ``text``, ``remedy``.
    """
    of_run = [
        {"row": None, "clients": None, "step": event.epoch, "level": str(level), "text": event.text, "remedy": ""}
        for event in events
        if (level := level_of(event.kind)) != Level.ROUTINE
    ]
    of_rows = [
        {
            "row": place,
            "clients": row.get("clients"),
            "step": None,
            "level": str(note.level),
            "text": note.text,
            "remedy": note.remedy,
        }
        for place, row in enumerate(rows)
        for note in notes_of(row, scenario, rows)
    ]
    return [*of_run, *of_rows]
