"""What has to be known before a run's figures are believed, gravest first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from hydra.jupyter.recorded import Run
from hydra.model import StepPlan, value_of
from hydra.results.tables import headings
from hydra.sweep import Row

Level = Literal["fail", "loss", "note"]
ORDER: Final[tuple[Level, ...]] = ("fail", "loss", "note")

ORDINARY: Final = frozenset({"window", "launch", "present", "phases", "stored", "fact", "failed"})
"""Kinds of events that belong to every run; whatever else happened is told, and why it failed
stands at the top."""

KINDS: Final = {
    "client_exit": "clients that ended in mid-run",
    "client_error": "errors that clients reported",
    "group_exit": "groups that ended in mid-run",
    "evict": "clients that did not answer",
    "refused": "peers and messages that the controller refused",
    "resumed": "the run was resumed",
    "revive": "the system under test was brought up again",
}
_MOST_DETAILS: Final = 20


@dataclass(frozen=True, slots=True)
class Caution:
    """One warning: what it is about, what it says, and single occurrences if it sums them up."""

    level: Level
    about: str
    text: str
    details: tuple[str, ...] = ()


def cautions(run: Run) -> list[Caution]:
    """The run's warnings: how it ended, rows by gravity, then what happened on the way."""
    of_rows = [c for row, notes in zip(run.rows, run.notes, strict=True) for c in _of_row(run, row, notes)]
    of_rows.sort(key=lambda c: ORDER.index(c.level))
    of_rates = [Caution("loss", "The rates", run.earlier)] if run.earlier else []
    return [*_of_the_end(run), *of_rates, *of_rows, *_of_events(run)]


def name_of(run: Run, row: Row) -> str:
    """What tells a row from the others: ``60 clients, Batch 200``."""
    titles = headings(run.scenario)
    varied = [f"{titles.get(v, v)} {row.get(v)}" for v in run.scenario.sweep.vary]
    return ", ".join([f"{row.get('clients')} clients", *varied])


def _of_the_end(run: Run) -> Iterator[Caution]:
    how = {
        "finished": "",
        "interrupted": "it was interrupted",
        "failed": f"it could not go on: {run.error}" if run.error else "it could not go on",
        "": "it was killed, or it still goes on",
    }
    why = how.get(run.ended, f"it ended as {run.ended!r}")
    if run.coming is not None:
        ahead = f"the sweep would go on with {_plan(run, run.coming)}"
        yield Caution("fail", "The run is not complete", "; ".join(filter(None, (why, ahead))))
    elif why:
        yield Caution("fail", "The run did not end well", f"{why}, after its last step")


def _plan(run: Run, plan: StepPlan) -> str:
    return name_of(run, {"clients": plan.clients, **{v: value_of(plan.settings, v) for v in run.scenario.sweep.vary}})


def _of_row(run: Run, row: Row, notes: list[str]) -> Iterator[Caution]:
    for note in notes:
        level: Level = "note"
        if note.startswith(("FAILED", "SKIPPED")):
            level = "fail"
        elif note.startswith("LOSS"):
            level = "loss"
        yield Caution(level, name_of(run, row), note)


def _of_events(run: Run) -> Iterator[Caution]:
    kinds = Counter(kind for _, _, kind, _ in run.events if kind not in ORDINARY)
    for kind, count in kinds.items():
        details = [
            f"step {epoch}: {detail}" if epoch is not None else detail
            for _, epoch, happened, detail in run.events
            if happened == kind
        ]
        if count > _MOST_DETAILS:
            details = [*details[:_MOST_DETAILS], f"… and {count - _MOST_DETAILS} more, in the table events of run.db"]
        yield Caution("note", f"{count} × {kind}", KINDS.get(kind, "see the details"), tuple(details))
