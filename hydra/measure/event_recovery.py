"""The time series of a step, and the impact of events on it. Pure.

The *backlog* at the end of an interval are the copies that were due by then, minus those that had arrived and those
known to be lost, wherever they wait. An interval is *good* if its latency and loss are within the objectives, and
something arrived if something was due. A system has *recovered* from an event when the next ``STEADY`` intervals in a
row are good, or all intervals before the next event or the end of the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hydra.model import PERCENTILES as KEPT
from hydra.model import EventSpec, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from hydra.wire.buckets import percentiles_us
from hydra.wire.histogram import merge

PERCENTILES: Final = {f"{name}_ms": KEPT[name] for name in ("p50", "p90", "p99", "p999")}
"""The objectives that are percentiles."""
STEADY: Final = 5
"""The number of good intervals in a row that make a recovery, since a single one may be chance."""


def backlog_by_interval(facts: TimeSeriesFacts, course: Sequence[TimeSeriesInterval]) -> list[int]:
    """The backlog outside the cohort at the end of each interval, in copies."""
    steps = (round(i.due * facts.copies) - i.received - (i.lost or 0) for i in course)
    return [max(count, 0) for count in accumulate(steps)]


def is_good(facts: TimeSeriesFacts, interval: TimeSeriesInterval, slo: SloSpec, off_us: float = 0.0) -> bool:
    """Whether an interval is within the objectives, if latencies are ``off_us`` µs higher than measured."""
    expected = round(interval.due * facts.copies)
    if expected and not interval.received:
        return False
    if slo.loss_pct is not None and expected and 100 * (interval.lost or 0) > slo.loss_pct * expected:
        return False
    targets = slo.objectives()
    if not interval.latency.counts:
        return True
    names = [name for name in PERCENTILES if name in targets]
    values = percentiles_us(interval.latency, [PERCENTILES[name] for name in names])
    late = any(
        value is not None and value + off_us > 1000 * targets[name] for name, value in zip(names, values, strict=True)
    )
    return not late and (slo.max_ms is None or interval.latency.max_us + off_us <= 1000 * slo.max_ms)


@dataclass(frozen=True, slots=True)
class SpanLatency:
    """The latency (µs) of the messages that arrived in a part of a step; None if nothing arrived."""

    p50_us: int | None = None
    p99_us: int | None = None
    max_us: int | None = None


@dataclass(frozen=True, slots=True)
class EventImpact:
    """The impact of an event.

    Attributes:
        kind: the kind of the event.
        at_s: its start, in seconds from the start of the step.
        ended_s: its end; equal to ``at_s`` for an event without duration.
        recovered_s: seconds from its end to the recovery; None: no recovery before the next event or the end of the
            step.
        bad_after: the number of intervals that were not good between the recovery and the next event or the end of the
            step.
        highest_backlog: the largest backlog between its start and the recovery, in copies.
        catch_up_pps: the highest rate in that time at which copies arrived beyond those due (copies/s).
        lost: copies that were due in that time and were lost; None: not known.
        before: the latency from the recovery from the previous event, or the start, to this event.
        during: the latency from its start to the recovery.
        after: the latency from the recovery to the next event, or the end of the window.
    """

    kind: str
    at_s: float
    ended_s: float
    recovered_s: float | None
    bad_after: int
    highest_backlog: int
    catch_up_pps: float
    lost: int | None
    before: SpanLatency
    during: SpanLatency
    after: SpanLatency


def event_impacts(
    facts: TimeSeriesFacts,
    course: Sequence[TimeSeriesInterval],
    events: Sequence[EventSpec],
    slo: SloSpec,
    at_once: Sequence[str],
    off_us: float = 0.0,
) -> list[EventImpact]:
    """The impact of each event, in the order of time.

    Args:
        facts: the constants of the step's time series.
        course: its intervals, oldest first, those of the drain included.
        events: the events of the step.
        slo: the objectives of a good interval; without any, an interval is good if something arrives.
        at_once: the kinds of events without duration.
        off_us: the assumed error of the latencies in µs: positive if they are higher than measured.
    """
    waiting = backlog_by_interval(facts, course)
    found: list[EventImpact] = []
    events = sorted(events, key=lambda event: event.at_s)
    begun_s = 0.0
    for index, event in enumerate(events):
        last_s = course[-1].begin_s + facts.interval_s if course else 0
        until_s = next((later.at_s for later in events[index + 1 :] if later.at_s > event.at_s), last_s)
        ended_s = event.at_s if event.kind in at_once else min(event.at_s + event.for_s, facts.duration_s)
        # The interval in which an event starts belongs to that event.
        own = [n for n, i in enumerate(course) if i.begin_s + facts.interval_s > event.at_s and i.begin_s < until_s]
        good = [is_good(facts, course[n], slo, off_us) for n in own]
        back = next((k for k in range(len(own)) if all(good[k : k + STEADY])), None)
        good_s = float(last_s) if back is None else float(course[own[back]].begin_s) if back else event.at_s
        during = [n for n in own if course[n].begin_s < max(good_s, ended_s)] or own[:1]
        lost = [0 if not course[n].due else course[n].lost for n in during]
        spare = [(course[n].received - course[n].due * facts.copies) / facts.interval_s for n in during]
        found.append(
            EventImpact(
                *(event.kind, event.at_s, ended_s),
                recovered_s=None if back is None else max(good_s - ended_s, 0.0),
                bad_after=0 if back is None else good[back:].count(False),
                highest_backlog=max((waiting[n] for n in during), default=0),
                catch_up_pps=max([0.0, *spare]),
                lost=None if any(count is None for count in lost) else sum(count or 0 for count in lost),
                before=_stretch(course, begun_s, event.at_s - facts.interval_s),
                during=latency_of_span(course[n] for n in during),
                after=latency_of_span(
                    course[n] for n in own if n not in during and course[n].begin_s < facts.duration_s
                ),
            )
        )
        begun_s = max(good_s, ended_s)
    return found


def _stretch(course: Sequence[TimeSeriesInterval], begin_s: float, last_s: float) -> SpanLatency:
    return latency_of_span(i for i in course if begin_s <= i.begin_s <= last_s)


def latency_of_span(intervals: Iterable[TimeSeriesInterval]) -> SpanLatency:
    """The latency of all messages that arrived in these intervals."""
    together = merge(i.latency for i in intervals)
    if not together.counts:
        return SpanLatency()
    p50, p99 = percentiles_us(together, (KEPT["p50"], KEPT["p99"]))
    return SpanLatency(p50, p99, together.max_us)
