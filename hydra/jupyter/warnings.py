"""What has to be known before a run's figures are believed, gravest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hydra.events.event import Level, StoredEvent
from hydra.events.warnings import HydraWarning, RunEndedBadly, RunIncomplete
from hydra.jupyter.run_data import Run
from hydra.measure.column_names import CLIENTS, POINT
from hydra.model import StepPlan, value_of
from hydra.report.tables import name_of
from hydra.sweep import Row

_ORDER: Final = tuple(Level)
_MOST_DETAILS: Final = 20


@dataclass(frozen=True, slots=True)
class ReportWarning:
    """One warning: how grave, what it is about, what it says, and single occurrences if it sums them up."""

    level: Level
    about: str
    text: str
    details: tuple[str, ...] = ()


def warnings_of(run: Run) -> list[ReportWarning]:
    """The run's warnings: how it ended, rows by gravity, then what happened on the way."""
    of_rows = [
        _about(name_of(run.scenario, row), warning)
        for row, warnings in zip(run.rows, run.notes, strict=True)
        for warning in warnings
    ]
    of_rows.sort(key=lambda warning: _ORDER.index(warning.level))
    of_rates = [_about("The rates", run.earlier)] if run.earlier else []
    return [*_of_the_end(run), *of_rates, *of_rows, *_of_events(run.events)]


def _about(about: str, warning: HydraWarning) -> ReportWarning:
    return ReportWarning(warning.level, about, str(warning))


def _of_the_end(run: Run) -> Iterator[ReportWarning]:
    if run.coming is not None:
        yield _about("The run is not complete", RunIncomplete(run.ended, run.error, _plan(run, run.coming)))
    elif run.ended != "finished":
        yield _about("The run did not end well", RunEndedBadly(run.ended, run.error))


def _plan(run: Run, plan: StepPlan) -> str:
    known: Row = {POINT: plan.point, CLIENTS: plan.clients}
    return name_of(run.scenario, known | {v: value_of(plan.settings, v) for v in run.scenario.sweep.crossed})


def _of_events(events: list[StoredEvent]) -> Iterator[ReportWarning]:
    """What did not have to happen, by category."""
    categories: dict[str, list[StoredEvent]] = {}
    for event in events:
        if event.told.level != Level.ROUTINE:
            categories.setdefault(event.category, []).append(event)
    for category, happened in categories.items():
        details = [f"step {e.epoch}: {e.text}" if e.epoch is not None else e.text for e in happened]
        count = len(happened)
        if count > _MOST_DETAILS:
            details = [*details[:_MOST_DETAILS], f"… and {count - _MOST_DETAILS} more, in the table events of run.db"]
        gravest = min((event.told.level for event in happened), key=_ORDER.index)
        yield ReportWarning(gravest, f"{count} × {category}", happened[0].summary, tuple(details))
