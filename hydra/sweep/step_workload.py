"""The load, the cohort and the impairments of a step, from its scenario. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from pyroaring import BitMap

from hydra.model import (
    BURST,
    IMPAIRMENTS,
    MAX_POINTS,
    RESTART,
    Cohort,
    EventSpec,
    ImpairmentSpec,
    LoadSpec,
    Points,
    Rate,
    Scenario,
    ServerRestart,
    StepPlan,
)

_CHORDS: Final = 96
"""The number of straight lines for one period of the daily curve, a sine: the error is below 0.06 % of its height."""


def loaded(plan: StepPlan, scenario: Scenario) -> StepPlan:
    """The plan with its load and impairments; ``settings.rate`` becomes the mean of the load.

    Raises:
        ValueError: the load has no message in the whole step.
    """
    events = scenario.events
    bursts = [event for event in events if event.kind == BURST]
    if scenario.load.shape != "constant" or bursts:
        points = points_of(scenario.load, plan.settings.rate, plan.duration_s)
        for event in bursts:
            points = scaled(points, event.at_s, min(event.at_s + event.for_s, plan.duration_s), event.factor)
        from hydra.wire.load_schedule import LoadSchedule  # slow to import (numpy); a rejected scenario does without

        total = LoadSchedule(points).total(plan.duration_s)
        if total < 1:
            raise ValueError("the load has no message in the whole step")
        settings = replace(plan.settings, rate=total / plan.duration_s)
        plan = replace(plan, settings=settings, load=tuple(points))
    ends = [ServerRestart(event.at_s, event.for_s) for event in events if event.kind == RESTART]
    restarts = tuple(sorted(ends, key=lambda end: end.at_s))
    plan = replace(plan, course=scenario.keeps_seconds, restarts=restarts)
    return _with_impairments(plan, [event for event in events if event.kind in IMPAIRMENTS])


def _with_impairments(plan: StepPlan, events: list[EventSpec]) -> StepPlan:
    if not events:
        return plan
    spells = []
    for event in events:
        rate = event.rate
        if rate is None:
            rate = 1.0 if plan.settings.rate == "max" else float(plan.settings.rate) / 2
        end_s = min(event.at_s + event.for_s, plan.duration_s)
        spells.append(ImpairmentSpec("slow" if event.kind == "slow" else "gone", event.at_s, end_s, rate))
    return replace(plan, cohort=Cohort("spells", events[0].fraction), spells=tuple(spells))


def points_of(load: LoadSpec, rate: Rate, duration_s: float) -> list[tuple[float, float]]:
    """The points of a load.

    Args:
        load: the shape of the load.
        rate: ``settings.rate``, of which the load has fractions; ``"max"`` only for a recorded load.
        duration_s: the length of the step in seconds.
    """
    if load.shape == "recorded":
        scale = 1.0 if rate == "max" else float(rate) / max(r for _, r in load.points)
        return [(at, r * scale) for at, r in load.points]
    peak = float(rate)
    if load.shape == "ramp":
        return [(0.0, load.low * peak), (duration_s, load.high * peak)]
    if load.shape == "steps":
        width = duration_s / len(load.parts)
        edges = [(k * width, (k + 1) * width, part * peak) for k, part in enumerate(load.parts)]
        return [point for begin, end, r in edges for point in ((begin, r), (end, r))]
    if load.shape == "daily":
        count = min(max(math.ceil(duration_s / load.period_s * _CHORDS), 2), MAX_POINTS // 2)
        middle, swing = (load.high + load.low) / 2 * peak, (load.high - load.low) / 2 * peak
        times = [duration_s * k / count for k in range(count + 1)]
        return [(at, middle - swing * math.cos(2 * math.pi * at / load.period_s)) for at in times]
    return [(0.0, peak)]


def scaled(points: Points, begin_s: float, end_s: float, factor: float) -> list[tuple[float, float]]:
    """The load with its rate multiplied between two times."""
    made: list[tuple[float, float]] = []
    last_s = max(points[-1][0], end_s) + 1.0
    whole = [*points, (last_s, points[-1][1])]
    for (t0, r0), (t1, r1) in pairwise(whole):
        if t1 <= t0:
            continue
        cuts = [t0, *(t for t in (begin_s, end_s) if t0 < t < t1), t1]
        for a, b in pairwise(cuts):
            times = factor if begin_s <= a and b <= end_s else 1.0
            made += [(t, times * (r0 + (r1 - r0) * (t - t0) / (t1 - t0))) for t in (a, b)]
    return _plain(made[:-1])


def _plain(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points without those that equal the point before."""
    kept: list[tuple[float, float]] = []
    for point in points:
        if not kept or kept[-1] != point:
            kept.append(point)
    return kept


def cohort_ids(cohort: Cohort, subscribers: Iterable[int]) -> BitMap:
    """The ids of the cohort: ``fraction`` of the subscribers, at least one, and never all of them.

    Slow subscribers are the first and reconnecting ones the last of one shuffled order, so with the same seed the
    two cohorts never overlap if both fit.
    """
    if cohort.kind == "none":
        return BitMap()
    ids = sorted(subscribers)
    if len(ids) < 2:
        return BitMap()
    count = min(max(round(cohort.fraction * len(ids)), 1), len(ids) - 1)
    order = random.Random(cohort.seed).sample(ids, len(ids))  # noqa: S311  # a draw to repeat, not a secret
    return BitMap(order[:count] if cohort.kind == "slow" else order[-count:])
