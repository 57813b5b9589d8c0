"""What has to be known before a run's figures are believed, gravest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hydra.events.event import Level, StoredEvent
from hydra.events.kinds import level_of, summary_of
from hydra.events.warnings import HydraWarning, RunEndedBadly, RunIncomplete
from hydra.jupyter.run_data import Run
from hydra.measure.column_names import CLIENTS, POINT
from hydra.model import StepPlan, value_of
from hydra.report.tables import name_of
from hydra.sweep import Row

_ORDER: Final = tuple(Level)
_MOST_DETAILS: Final = 20


@dataclass(frozen=True, slots=True)
class Caution:
    """One warning: what it is about, what it says, what to try, and single occurrences if it sums them up."""

    level: Level
    about: str
    text: str
    remedy: str = ""
    details: tuple[str, ...] = ()


def cautions(run: Run) -> list[Caution]:
    """The run's warnings: how it ended, rows by gravity, then what happened on the way."""
    of_rows = [
        _caution(name_of(run.scenario, row), note)
        for row, notes in zip(run.rows, run.notes, strict=True)
        for note in notes
    ]
    of_rows.sort(key=lambda c: _ORDER.index(c.level))
    of_rates = [_caution("The rates", run.earlier)] if run.earlier else []
    return [*_of_the_end(run), *of_rates, *of_rows, *_of_events(run.events)]


def _caution(about: str, warning: HydraWarning) -> Caution:
    return Caution(warning.level, about, warning.text, warning.remedy)


def _of_the_end(run: Run) -> Iterator[Caution]:
    if run.coming is not None:
        yield _caution("The run is not complete", RunIncomplete(run.ended, run.error, _plan(run, run.coming)))
    elif run.ended != "finished":
        yield _caution("The run did not end well", RunEndedBadly(run.ended, run.error))


def _plan(run: Run, plan: StepPlan) -> str:
    known: Row = {POINT: plan.point, CLIENTS: plan.clients}
    return name_of(run.scenario, known | {v: value_of(plan.settings, v) for v in run.scenario.sweep.vary})


def _of_events(events: list[StoredEvent]) -> Iterator[Caution]:
    """What did not have to happen, by kind."""
    kinds: dict[str, list[StoredEvent]] = {}
    for event in events:
        if level_of(event.kind) != Level.ROUTINE:
            kinds.setdefault(event.kind, []).append(event)
    for kind, happened in kinds.items():
        details = [f"step {e.epoch}: {e.text}" if e.epoch is not None else e.text for e in happened]
        count = len(happened)
        if count > _MOST_DETAILS:
            details = [*details[:_MOST_DETAILS], f"… and {count - _MOST_DETAILS} more, in the table events of run.db"]
        yield Caution(level_of(kind), f"{count} × {kind}", summary_of(kind), details=tuple(details))
