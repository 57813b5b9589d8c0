"""Whether a stored step met the objectives of its scenario, and the effects of its events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from hydra.events.value_formatting import counted
from hydra.measure.event_recovery import EventImpact, backlog_by_interval, event_impacts
from hydra.measure.slo import ObjectiveResult, Recoveries, clock_bound_us, holds, objective_results
from hydra.measure.step_result import StepFigures
from hydra.model import EVENT_KINDS, RESTART, EventSpec, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from hydra.store.database import RunStore


@dataclass(frozen=True, slots=True)
class SloResult:
    """The result of a step that had objectives or events.

    ``holds`` is None if unknown; ``highest_backlog`` is the largest backlog in copies; ``complete`` is whether all
    figures of the time series have arrived. ``others_pct`` is the CPU (%) of a host that other processes used; None:
    unknown.
    """

    holds: bool | None
    objectives: Sequence[ObjectiveResult]
    consequences: Sequence[EventImpact]
    highest_backlog: int
    complete: bool | None
    facts: TimeSeriesFacts
    course: Sequence[TimeSeriesInterval]
    others_pct: float | None = None

    @property
    def local(self) -> str:
        """What limited or delayed the step at the hosts of the run, if that is why the answer is unknown; else ""."""
        return "" if self.holds is not None else next((each.local for each in self.objectives if each.local), "")


def workload_of(store: RunStore) -> tuple[SloSpec, tuple[EventSpec, ...]]:
    """The objectives and the events of the stored scenario."""
    scenario = store.meta("scenario")
    with store.reading():
        slo = msgspec.convert(scenario["slo"], SloSpec)
        return slo, msgspec.convert(scenario["events"], tuple[EventSpec, ...])


def answer_of(store: RunStore, epoch: int) -> SloResult | None:
    """The answer of a step; None if its time series was not stored."""
    found = store.course(epoch)
    if found is None:
        return None
    plan, facts, course = found
    slo, events = workload_of(store)
    at_once = [event.kind for event in events if event.kind not in (*EVENT_KINDS, RESTART)]
    latency = store.histogram(epoch, "latency")
    figures = next((r.figures for r in store.results() if r.epoch == epoch), StepFigures())

    def done(off_us: float = 0.0) -> Sequence[EventImpact]:
        return event_impacts(facts, course, events, slo, at_once, off_us)

    measured, bound_us = done(), clock_bound_us(figures, latency)
    best = done(-math.inf if bound_us is None else -bound_us) if bound_us != 0 else measured
    worst = None if bound_us is None else done(bound_us) if bound_us else measured
    publishers = plan.publishers or store.meta("scenario", {}).get("publishers", 1)
    objectives = objective_results(slo, figures, latency, facts, course, Recoveries(best, worst), publishers)
    if without_report := int(figures.loss.without_report):
        why = f"{counted(without_report, 'subscriber')} died, or did not answer"
        objectives.append(ObjectiveResult("failed_subscribers", 0, without_report, None, None, holds=False, why=why))
    backlog = max(backlog_by_interval(facts, course), default=0)
    others_pct = figures.hosts.host_others_pct
    return SloResult(holds(objectives), objectives, measured, backlog, facts.complete, facts, course, others_pct)
