"""How a run ended, and the exit code that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hydra.config.resolved import ResolvedScenario
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE
from hydra.events.event import StoredEvent
from hydra.events.runs import RunFailed
from hydra.events.warnings import SubscribersFailed
from hydra.measure.column_names import CLIENTS, STATUS
from hydra.model import StepResult
from hydra.monitor.progress import Observer
from hydra.report.row_warnings import gone_of
from hydra.store.database import CLIENTS_KEY, ENDED_KEY, ERROR_KEY, RunStore
from hydra.sweep import Row
from hydra.sweep.search_columns import answers

FINISHED: Final = "finished"
"""How a run ended that has measured everything."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """What came of a run, so that nobody has to read it again who shows it.

    Attributes:
        code: the exit code.
        results: its steps.
        rows: of its table.
        clients: what its clients said that they are.
        events: what happened.
    """

    code: int
    results: list[StepResult]
    rows: list[Row]
    clients: list[dict[str, Any]]
    events: list[StoredEvent]

    @classmethod
    def of(cls, resolved: ResolvedScenario, store: RunStore, code: int) -> RunEnd:
        """As it is stored."""
        results = store.results()
        return cls(code, results, resolved.sweep.rows(results), store.meta(CLIENTS_KEY, []), store.events())


def conclude(store: RunStore, ended: str, error: str) -> None:
    """Stores how the run ended, and why."""
    store.set_meta(ENDED_KEY, ended)
    store.set_meta(ERROR_KEY, error)
    if error:
        store.add_event(RunFailed(error))


def exit_code(rows: Sequence[Row], observer: Observer) -> int:
    """The code of these rows; those whose subscribers failed by themselves are told."""
    if gone := [(n, row[CLIENTS], text) for n, row in enumerate(rows, 1) if (text := gone_of(row))]:
        observer.show(SubscribersFailed(gone))
    return code_of(rows)


def code_of(rows: Sequence[Row]) -> int:
    """EXIT_INCOMPLETE if a row could not be measured or a search has no figure, or if subscribers failed by themselves.

    A step that failed may have been measured again: only the final state of its row counts.
    """
    good = all(row[STATUS] == "ok" and not gone_of(row) and set(answers(row)) <= {"figure"} for row in rows)
    return EXIT_GOOD if good else EXIT_INCOMPLETE
