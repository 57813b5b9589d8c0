"""The seconds of a run's steps as slices of its rows, for a comparison to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hydra.analysis.compared_runs import Slice
from hydra.measure.column_names import CLIENTS, POINT, PUBLISHERS
from hydra.measure.event_recovery import stretch_of
from hydra.model import CourseFacts, CourseInterval, Figure, StepResult, value_of
from hydra.store.database import RunStore
from hydra.sweep import Row

SlicesOfRows = Mapping[tuple[Figure, ...], list[list[Slice]]]
"""Of each row, by what tells it from the others, a list for each step."""


def slices_of(store: RunStore, results: Sequence[StepResult], varied: Sequence[str]) -> SlicesOfRows:
    """The slices of all steps whose seconds were kept, as far as the step's window goes.

    Args:
        store: of the run.
        results: its steps.
        varied: the settings that its rows differ in.
    """
    found: dict[tuple[Figure, ...], list[list[Slice]]] = {}
    kept = set(store.courses())
    for result in results:
        plan = result.plan
        course = store.course(result.epoch) if result.status == "ok" and result.epoch in kept else None
        if course is not None:
            key = (plan.point or None, plan.clients, plan.publishers, *(value_of(plan.settings, n) for n in varied))
            _, facts, intervals = course
            within = [_slice(facts, interval) for interval in intervals if interval.begin_s < facts.duration_s]
            found.setdefault(key, []).append(within)
    return found


def key_of_row(row: Row, varied: Sequence[str]) -> tuple[Figure, ...]:
    """What tells a row from the others, as :func:`slices_of` has it."""
    return (row.get(POINT) or None, row[CLIENTS], row.get(PUBLISHERS), *(row.get(name) for name in varied))


def _slice(facts: CourseFacts, interval: CourseInterval) -> Slice:
    width_s = min(facts.interval_s, facts.duration_s - interval.begin_s)
    return Slice(interval.begin_s, interval.received / width_s, stretch_of([interval]).p99_us)
