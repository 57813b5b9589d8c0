"""Whether a step kept its objectives, with the margin and the confidence limits. Pure.

The answer to each objective is yes, no or *unknown*. A percentile is within its target if the share of later messages
is within the rest of 100 %; a loss is such a share itself. The share is known between two ends. A message is certainly
late if its latency exceeds the target by more than the error of the clocks, and may be late if it exceeds the target
minus that error. A copy whose outcome is unknown may be lost. A copy that did not arrive is later than all others. For
a yes, the upper 95 % limit of the larger share must be within the allowed share; for a no, the lower limit of the
smaller share must be above it (:mod:`hydra.measure.share_interval`).

A maximum, a loss of 0, the rate, a stop and a recovery are facts of the run, without a statistical conclusion. A stop
(:mod:`hydra.measure.stops`) is a no, whatever the objectives are: the system did not carry the workload all the time.

An objective that was missed while the hosts of the run limited or delayed the step is unknown: another machine may keep
it (:attr:`hydra.measure.verdict.Verdict.local`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from hydra.events.value_formatting import counted, number
from hydra.measure.acceptance import least_sent
from hydra.measure.event_recovery import PERCENTILES, EventImpact
from hydra.measure.passing_columns import STOPPED
from hydra.measure.share_interval import DOUBT, CopyOutcomes, Lateness, copies_of, least_s
from hydra.measure.step_result import StepFigures
from hydra.model import Histogram, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from hydra.wire.buckets import percentiles_us

LOSS: Final = "loss_pct"
MAX: Final = "max_ms"
RECOVERY: Final = "recovery_s"
RATE: Final = "rate"
"""The objective of every step: the system accepted the messages that the others are about (``rate_held``)."""
_RESOLUTION_US: Final = 1.0
"""The resolution of latencies, which are whole microseconds."""

Word = Literal["yes", "no", "unknown"]


def word(holds: bool | None) -> Word:
    """The answer as a word."""
    return "unknown" if holds is None else "yes" if holds else "no"


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """One objective with its answer.

    Attributes:
        name: a field of :class:`hydra.model.SloSpec`, ``rate``, or, of a step with a stop, ``stopped_s``.
        target: the target, in the unit of the name.
        measured: the figure; None: not known.
        low: its lower 95 % limit; None: there is none, as for facts of the run.
        limit: its upper 95 % limit; None: there is none.
        holds: whether it is kept; None: unknown.
        why: an explanation; "" if none is needed.
        measure_s: the length of a step that would give an answer, in seconds; None: the answer is known, or no length
            would give one.
        local: what limited or delayed the step at the hosts of the run, so that a miss is no answer about the system;
            "": nothing is known to have done so.
    """

    name: str
    target: float
    measured: float | None
    low: float | None
    limit: float | None
    holds: bool | None
    why: str = ""
    measure_s: int | None = None
    local: str = ""

    @property
    def margin(self) -> float | None:
        """The distance of the figure from its target; positive if the figure is below it (the rate: above it)."""
        if self.measured is None:
            return None
        return self.measured - self.target if self.name == RATE else self.target - self.measured


def needed(share: float) -> int:
    """The least number of messages, none of them bad, that shows that at most this share is bad."""
    return math.ceil(math.log(DOUBT) / math.log1p(-share))


def _shares(slo: SloSpec) -> dict[str, float]:
    """The share of messages (0 to 1) that each objective allows to be bad, without those that allow none."""
    objectives = slo.objectives()
    shares = {name: 1 - PERCENTILES[name] / 100 for name in objectives if name in PERCENTILES}
    return shares | ({LOSS: slo.loss_pct / 100} if slo.loss_pct else {})


def impossible(slo: SloSpec, messages: float) -> str:
    """Why no step with this number of messages (not copies) can show the objectives; "" if it can."""
    for name, share in _shares(slo).items():
        if messages < needed(share):
            what = f"a loss of at most {slo.loss_pct:g} %" if name == LOSS else name
            few = counted(round(messages), "message")
            return f"{what} of {few} cannot be shown: {needed(share)} are needed for 95 % confidence"
    return ""


def shortest_s(slo: SloSpec) -> int:
    """The least length of a step that can give a yes, in seconds."""
    return max((math.ceil(least_s(share, slo.stall_s)) for share in _shares(slo).values()), default=0)


@dataclass(frozen=True, slots=True)
class Recoveries:
    """The impact of a step's events if latencies are as low, or as high, as the clocks' error allows; None: unknown."""

    best: Sequence[EventImpact]
    worst: Sequence[EventImpact] | None


def clock_bound_us(figures: StepFigures, latency: Histogram) -> float | None:
    """The largest error of the latencies of a step (µs); None: not known.

    No message arrives before it is due. If one seems to do so by more than the bound, the bound is wrong.
    """
    bound = figures.clocks.latency_bound_us
    if not latency.counts:
        return 0.0
    if bound is None or latency.min_us < -bound - _RESOLUTION_US:
        return None
    return float(bound)


def objective_results(
    slo: SloSpec,
    figures: StepFigures,
    latency: Histogram,
    facts: TimeSeriesFacts,
    course: Sequence[TimeSeriesInterval],
    recoveries: Recoveries | None = None,
    publishers: int = 1,
) -> list[ObjectiveResult]:
    """Every objective of a step.

    Args:
        slo: the objectives.
        figures: the figures of the step.
        latency: the latency of its subscribers outside the cohort.
        facts: the constants of its time series.
        course: the intervals of its time series.
        recoveries: the recoveries from its events; None: unknown.
        publishers: the number of publishers.
    """
    copies = copies_of(figures, latency, facts, course)
    step = _Step(slo, latency, facts, copies, Lateness(facts, course, latency, copies, slo.stall_s), figures)
    due = sum(interval.due for interval in course)
    found = [_rate(figures, due, publishers, facts.duration_s), *_stopped(figures)]
    for name, target in slo.objectives().items():
        if name in PERCENTILES:
            found.append(step.percentile(name, target))
        elif name == MAX:
            found.append(step.maximum(target))
        elif name == LOSS:
            found.append(step.loss(target))
        else:
            found.append(_recovery(target, recoveries, facts))
    local = figures.limit.local_limit
    return [_here(each, local) if local and each.holds is False else each for each in found]


def _here(missed: ObjectiveResult, local: str) -> ObjectiveResult:
    """A missed objective as unknown: the hosts of the run, not the system, may be the cause."""
    return replace(missed, holds=None, local=local, why="")


def _rate(figures: StepFigures, due: float, publishers: int, duration_s: float) -> ObjectiveResult:
    """The rate of all publishers in messages/s; whether it is held is decided by the numbers of messages."""
    # The load may change within the step, so the messages due are those of its time series.
    least = (1 - (figures.passing.loss_target_pct or 0.0) / 100) * least_sent(due, publishers)
    sent, held = figures.totals.total_tx, figures.held.rate_held
    if sent is None or held is None:
        why = "the number of messages sent is unknown"
        return ObjectiveResult(RATE, least / duration_s, None, None, None, holds=None, why=why)
    what = "sent" if figures.held.rate_sent is False else "accepted"
    why = "" if held else f"not all messages due were {what}; limited by: {figures.limit.verdict or 'unknown'}"
    return ObjectiveResult(RATE, least / duration_s, sent / duration_s, None, None, held, why)


def _stopped(figures: StepFigures) -> Iterator[ObjectiveResult]:
    """The objective that a step with a stop missed, with its longest stop; nothing of any other step."""
    if stopped_s := figures.passing.stopped_s:
        differences = figures.passing.unsteady
        stops = [each for each in (differences.found if differences else ()) if each.kind == "stop"]
        parts = []
        if longest := max(stops, key=lambda each: each.for_s, default=None):
            others = f", and in {counted(len(stops) - 1, 'other stop')}" if len(stops) > 1 else ""
            about = f"nothing arrived for about {number(longest.for_s)} s from second {longest.at_s} on"
            parts.append(f"{about}{others}, although messages were due")
        parts.append(f"limited by: {figures.limit.verdict or 'unknown'}")
        yield ObjectiveResult(STOPPED, 0, stopped_s, None, None, holds=False, why="; ".join(parts))


@dataclass(frozen=True, slots=True)
class _Step:
    """The data of a step by which its objectives are decided."""

    slo: SloSpec
    latency: Histogram
    facts: TimeSeriesFacts
    copies: CopyOutcomes
    lateness: Lateness
    figures: StepFigures

    @property
    def bound_us(self) -> float | None:
        return clock_bound_us(self.figures, self.latency)

    def percentile(self, name: str, target: float) -> ObjectiveResult:
        if not self.copies.expected:
            return ObjectiveResult(name, target, None, None, None, holds=None, why="nothing was due")
        share = 1 - PERCENTILES[name] / 100
        bound_us, target_us = self.bound_us, 1000 * target
        least, most = self.copies.missing
        measured = self._measured(PERCENTILES[name] / 100)
        low_us = self._lower_us(share, least)
        high_us = None if most is None else self._upper_us(share, most)
        # If the latencies are unknown, the copies that did not arrive are still late.
        off_us = math.inf if bound_us is None else bound_us
        low = None if low_us is None else math.inf if low_us == math.inf else max(low_us - off_us, 0.0) / 1000
        high = None if high_us is None or bound_us is None else (high_us + bound_us) / 1000
        holds = True if high is not None and high <= target else False if low is not None and low > target else None
        low = None if low == math.inf else low
        if holds is not None:
            why = self._missing_words() if not holds and measured is None else ""
            return ObjectiveResult(name, target, measured, low, high, holds, why)
        if most is None:
            return ObjectiveResult(name, target, measured, low, high, None, _UNACCOUNTED)
        if bound_us is None:
            return ObjectiveResult(name, target, measured, low, high, None, self._clock_words())
        may_be = self.lateness.at_most(target_us - bound_us, most)
        is_late = self.lateness.at_least(target_us + bound_us, least)
        if may_be.share < share or is_late.share > share:
            times = (may_be if may_be.share < share else is_late).times_needed(share)
            return self._longer(name, target, measured, (low, high), times)
        # The two ends of the known share are on both sides of the target, for any number of seconds.
        why = self._between_words(bound_us)
        return ObjectiveResult(name, target, measured, low, high, None, why)

    def _measured(self, part: float) -> float | None:
        """The percentile (ms) of all copies; None if the copy at its rank did not arrive or may not have."""
        missing = self.copies.missing[1]
        arrived = self.copies.arrived
        if missing is None or not arrived or part * (arrived + missing) > arrived:
            return None
        (value,) = percentiles_us(self.latency, (100 * part * (arrived + missing) / arrived,))
        return None if value is None else value / 1000

    def _upper_us(self, share: float, missing: int) -> float | None:
        values = self.lateness.highest_us()
        at = bisect_left(values, True, key=lambda us: self.lateness.at_most(us, missing).above(share) <= DOUBT)
        return None if at == len(values) else min(values[at], self.latency.max_us)

    def _lower_us(self, share: float, missing: int) -> float | None:
        """The lower limit in µs; None: there is none; infinite: enough copies did not arrive."""
        if self.lateness.missing(missing).within(share) <= DOUBT:
            return math.inf
        values = self.lateness.lowest_us()
        at = bisect_left(values, True, key=lambda us: self.lateness.at_least(us - 1, missing).within(share) > DOUBT)
        return None if at == 0 else max(values[at - 1], self.latency.min_us)

    def maximum(self, target: float) -> ObjectiveResult:
        least, most = self.copies.missing
        bound_us = self.bound_us
        measured = self.latency.max_us / 1000 if self.latency.counts and not most else None
        off = math.inf if bound_us is None else bound_us / 1000
        known = self.latency.max_us / 1000 if self.latency.counts else 0.0
        if least or known - off > target:
            return ObjectiveResult(
                MAX, target, measured, None, None, holds=False, why=self._missing_words() if least else ""
            )
        if most == 0 and self.latency.counts and known + off <= target:
            return ObjectiveResult(MAX, target, measured, None, None, holds=True)
        why = _UNACCOUNTED if most is None else self._missing_words() if most else self._clock_words()
        return ObjectiveResult(
            MAX, target, measured, None, None, None, why if self.latency.counts else "nothing arrived"
        )

    def loss(self, target: float) -> ObjectiveResult:
        least, most = self.copies.missing
        if not self.copies.expected:
            return ObjectiveResult(LOSS, target, None, None, None, holds=None, why="nothing was due")
        low = 100 * self.lateness.missing(least).lower() if least else 0.0
        if most is None:
            holds = False if low > target else None
            return ObjectiveResult(LOSS, target, None, low, None, holds, _UNACCOUNTED)
        may_be, certain = self.lateness.missing(most), self.lateness.missing(least)
        measured, limits = 100 * may_be.share, (low, 100 * may_be.upper())
        if not target:
            # No loss is a fact of this run; the upper limit is about longer runs.
            holds = False if least else True if not most else None
            return ObjectiveResult(
                LOSS, target, measured, *limits, holds, "" if holds is not None else self._missing_words()
            )
        if limits[1] <= target or low > target:
            return ObjectiveResult(LOSS, target, measured, *limits, limits[1] <= target)
        if measured < target or 100 * certain.share > target:
            times = (may_be if measured < target else certain).times_needed(target / 100)
            return self._longer(LOSS, target, measured, limits, times)
        return ObjectiveResult(LOSS, target, measured, *limits, None, self._between_words(0.0))

    def _longer(
        self,
        name: str,
        target: float,
        measured: float | None,
        limits: tuple[float | None, float | None],
        times: float | None,
    ) -> ObjectiveResult:
        """The answer unknown because of too few seconds, with the length that would be enough."""
        if times is None:
            return ObjectiveResult(
                name,
                target,
                measured,
                *limits,
                None,
                "the figure is too near the target, so a longer step would not help",
            )
        seconds = math.ceil(times * self.facts.duration_s)
        return ObjectiveResult(name, target, measured, *limits, None, f"measure for at least {seconds} s", seconds)

    def _missing_words(self) -> str:
        least, most = self.copies.missing
        if least == most or most is None:
            return f"{counted(least, 'copy', 'copies')} did not arrive"
        return f"{least:,} to {most:,} copies did not arrive"

    def _clock_words(self) -> str:
        bound = self.figures.clocks.latency_bound_us
        if bound is None:
            return "the error of the clocks is unknown"
        if self.bound_us is None:
            early_us = -self.latency.min_us
            return f"a message arrived {early_us:,} us before it was due: clocks are wrong by more than {bound:,.0f} us"
        return f"clocks may be wrong by {bound:,.0f} us"

    def _between_words(self, bound_us: float) -> str:
        least, most = self.copies.missing
        unsure = [self._clock_words()] if bound_us else []
        unsure += [self._missing_words()] if least != most else []
        return "; ".join(unsure) or "the figure is too near the target, so a longer step would not help"


_UNACCOUNTED: Final = "the number of copies that did not arrive is unknown"


def _recovery(target: float, recoveries: Recoveries | None, facts: TimeSeriesFacts) -> ObjectiveResult:
    if recoveries is None or not recoveries.best:
        return ObjectiveResult(RECOVERY, target, None, None, None, holds=None, why="there was no event to recover from")
    best, worst = _slowest(recoveries.best), None if recoveries.worst is None else _slowest(recoveries.worst)
    if best is None or best > target:
        never = next((c for c in recoveries.best if c.recovered_s is None), None)
        why = f"not recovered from {never.kind} at {never.at_s:g} s" if never else ""
        return ObjectiveResult(RECOVERY, target, best, None, None, holds=False, why=why)
    if worst is None or worst > target:
        return ObjectiveResult(
            RECOVERY, target, None, best, worst, holds=None, why="the clocks may be wrong by too much to decide"
        )
    if facts.complete is False:
        return ObjectiveResult(RECOVERY, target, worst, None, None, holds=None, why="figures of some seconds were lost")
    return ObjectiveResult(RECOVERY, target, worst, None, None, holds=True)


def _slowest(consequences: Sequence[EventImpact]) -> float | None:
    """The longest recovery in seconds; None: the system did not recover from an event."""
    times = [c.recovered_s for c in consequences]
    return None if None in times else max((time for time in times if time is not None), default=None)


def holds(objectives: Sequence[ObjectiveResult]) -> bool | None:
    """The common answer: no if any objective has a no, yes if all have a yes, otherwise unknown."""
    answers = {o.holds for o in objectives}
    return False if False in answers else None if None in answers else True
