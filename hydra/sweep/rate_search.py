"""Searches for rates: the highest rate received, and the highest rate within a loss target. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Final

from hydra.measure.column import AGGREGATE_MAX, ANSWER, HIGH_PPS, LOW_PPS, STATUS, WHY
from hydra.measure.host_columns import GENERATOR_LIMITED
from hydra.measure.step_result import StepResult
from hydra.model import Cohort, Scenario, Settings, StepPlan, number, with_values
from hydra.sweep import search_answer, search_warnings
from hydra.sweep.cleanness import add_host_facts, deciding
from hydra.sweep.interface import QUICK_DRAIN_S, LadderProgress, Row, SearchProgress, step_bound_s
from hydra.sweep.ladder import Ladder
from hydra.sweep.ladder_climb import USUAL_SHORT_S, LadderClimb, ends_of, progress_of
from hydra.sweep.repetition import mean_and_interval
from hydra.sweep.scripted_sweep import PlayedScript, Script, ScriptedSweep
from hydra.sweep.search_answer import Inconclusive, SideFindings
from hydra.sweep.search_columns import published, rates, side_columns, sndhwm_prefix
from hydra.sweep.search_end import StopRule, longest_s, most_steps
from hydra.sweep.search_figures import RateFigures
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.search_warnings import SearchWarning, text_of_search
from hydra.sweep.series_cohorts import cohort_of, warn
from hydra.sweep.step_retry import FAILURES_IN_A_ROW, MOST_FAILURES, StepRetry, unmeasured
from hydra.sweep.threshold_search import ThresholdSearch, rest_s

_RISING: Final = ("max_rate", "nodrop")
"""Series that only double the rate, to find the highest rate received."""
_LADDER_STEPS: Final = 20
"""The most steps of a bracket on the ladder."""
_LEAST_PART: Final = 0.05
"""Smaller parts of a shortfall are not named."""


@dataclass
class _Searched:
    """A search for a rate within the target.

    Attributes:
        name: the beginning of the names of the columns beside its figure.
        threshold: the search itself.
        steps: its measured steps.
        without: the same search without the subscriber that loses alone.
        more: the further steps that were measured for ``without``, and those on the ladder that are no evidence.
        climb: the steps on a ladder by which it begins; None: it begins without.
    """

    name: str
    threshold: ThresholdSearch
    steps: list[StepResult] = field(default_factory=list)
    without: ThresholdSearch | None = None
    more: list[StepResult] = field(default_factory=list)
    climb: LadderClimb | None = None

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The rates (messages/s) between which the answer is by the steps so far; None: no limit is known."""
        return self.climb.limits if self.brackets and self.climb else self.threshold.limits

    @property
    def brackets(self) -> bool:
        """Whether the search has not begun yet, so only the steps on the ladder are known."""
        return self.climb is not None and not self.threshold.findings.evidence

    def side_findings(self, target: float) -> SideFindings:
        """The findings beside the figure."""
        telling = self.telling()
        lone = search_answer.lone_loser(telling, target)
        answer = self.without.answer if self.without and lone else None
        return SideFindings(
            lone,
            answer.interval if answer and answer.kind == "figure" else None,
            search_answer.start_lost_ms(telling, target),
        )

    def telling(self) -> list[StepResult]:
        """The steps well below the answer."""
        return search_answer.telling(self.steps, self.threshold.figure)


class Search(ScriptedSweep[_Searched]):
    """The searches of ``SearchSpec.series``, in order, for every client count, ascending."""

    def __init__(self, scenario: Scenario, search: SearchSpec) -> None:
        super().__init__(scenario, (column.name for column in published(search)))
        self._search = search
        self._rates = rates(search)

    # --- the sweep ---------------------------------------------------------------------------------------------

    def _known(self, played: PlayedScript[_Searched]) -> Row:
        """See :class:`hydra.sweep.scripted_sweep.ScriptedSweep`."""
        known: Row = {}
        for found in played.found if played.row[STATUS] == "partial" else ():
            name, (low, high) = found.name, found.limits
            if f"{name}{ANSWER}" not in played.row:
                known |= {f"{name}{ANSWER}": "unknown", f"{name}{LOW_PPS}": low, f"{name}{HIGH_PPS}": high}
                known |= {f"{name}_steps": len(found.steps), f"{name}{WHY}": search_warnings.SearchInterrupted.why}
                known[f"{name}_note"] = text_of_search(known, name)
        return known

    def progress(self, results: Sequence[StepResult]) -> SearchProgress | LadderProgress | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        last = results[-1]
        of_step = [s for s in self._of_last(results).found if s.threshold.series == last.plan.series]
        if not of_step:
            return None
        if of_step[-1].brackets:
            return progress_of(last, of_step[-1].limits)
        short_pct = last.figures.passing.shortfall_pct
        return SearchProgress(100 * self._search.target, short_pct, _parts(last), *of_step[-1].limits)

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        steps = sum(self._times(series) * self._most_steps(series) for series in self._search.series)
        # At worst each step silenced subscribers twice before it counted, and all steps that may fail failed, too.
        steps = FAILURES_IN_A_ROW * steps + MOST_FAILURES
        window_s = self._scenario.sweep.duration_s
        step_s = rest_s(window_s) + step_bound_s(self._scenario, longest_s(window_s))
        return len(self._clients) * (steps * step_s + self._scenario.warmup_s)

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`: six doublings; of other searches all steps, without pauses."""
        search = self._search
        doublings = min(6, search.max_doublings) + 1 + search.fresh_steps
        steps = sum(self._times(s) * (doublings if s in _RISING else search.steps) for s in search.series)
        step_s = self._scenario.sweep.duration_s + QUICK_DRAIN_S
        return len(self._clients) * (steps * step_s + self._scenario.warmup_s)

    def _times(self, series: SearchSeries) -> int:
        """The number of searches of a series: one for each high-water mark."""
        return len(self._search.sndhwms) if series == "loss" and self._search.sndhwms else 1

    def _most_steps(self, series: SearchSeries) -> int:
        search = self._search
        if series in _RISING:
            return search.max_doublings + 1 + search.fresh_steps
        return most_steps(search, series) + _LADDER_STEPS * bool(search.ladder)

    # --- the script --------------------------------------------------------------------------------------------

    def _measure(self, retry: StepRetry, row: Row, searched: list[_Searched]) -> Script:
        """See :class:`hydra.sweep.scripted_sweep.ScriptedSweep`: searches for a rate within the target are added."""
        search = self._search
        settings = self._scenario.settings
        if search.sndhwms:
            settings = with_values(settings, {"sndhwm": search.sndhwms[0]})
        max_rate: float | None = None
        undisturbed: _Searched | None = None
        for series in search.series:
            if series == "max_rate":
                max_rate = yield from self._max_rate(retry, settings, series, row)
            elif series == "nodrop":
                yield from self._max_rate(retry, with_values(settings, {"nodrop": True}), series, row)
            elif series == "loss" and search.sndhwms:
                for sndhwm in search.sndhwms:
                    found = _Searched(
                        sndhwm_prefix(sndhwm), ThresholdSearch(with_values(settings, {"sndhwm": sndhwm}), series)
                    )
                    searched.append(found)
                    yield from self._search_into(row, retry, found, max_rate)
            else:
                cohort = cohort_of(search, series, retry.clients, max_rate)
                if not isinstance(cohort, Cohort):
                    warn(row, series, cohort)
                    continue
                known = undisturbed.threshold.figure if undisturbed else None
                found = _Searched(series, ThresholdSearch(settings, series, cohort))
                searched.append(found)
                yield from self._search_into(row, retry, found, known or max_rate)
                if series == "loss":
                    undisturbed = found
                elif undisturbed is not None:
                    yield from self._reconcile(row, retry, undisturbed, found)

    def _search_into(self, row: Row, retry: StepRetry, found: _Searched, near: float | None) -> Script:
        """Searches, and writes what is known into the row, also if the client count is given up during the search."""
        start = near / 2 if near else self._search.start_rate
        try:
            there: list[StepResult] = []
            if self._search.ladder and found.threshold.series == "loss":
                climb = found.climb = self._climb(retry, found.threshold.settings)
                yield from climb.bracket(retry, start)
                start, there = climb.limits[0] or climb.limits[1] or start, climb.steps
            yield from _recorded(found.threshold.search(retry, self._search, start, there), found.steps)
            found.more += there
            lone = search_answer.lone_loser(found.telling(), self._search.target)
            if lone and found.threshold.series == "loss":
                found.without, there = found.threshold.without_subscriber(lone), list(found.steps)
                yield from _reusing(found.without.search(retry, self._search, start, there), there, found.more)
        finally:
            self._fill(row, found)

    def _climb(self, retry: StepRetry, settings: Settings) -> LadderClimb:
        """The steps on the ladder by which a search begins; they have no time limit."""
        ladder = Ladder(self._search.ladder or 10)
        short_s = min(USUAL_SHORT_S, retry.step_s)
        return LadderClimb(
            settings, "loss", Cohort(), ladder, *ends_of(self._search, ladder), retry.step_s, short_s, inf
        )

    def _reconcile(self, row: Row, retry: StepRetry, undisturbed: _Searched, disturbed: _Searched) -> Script:
        """Extends both searches if the rate with a cohort is above the one without, and warns if it stays above."""
        for found in (undisturbed, disturbed):
            if not _above(disturbed.threshold, undisturbed.threshold):
                return
            threshold = found.threshold
            rule = StopRule.of_extension(self._search, retry.step_s, threshold.findings.spent_s)
            yield from _recorded(threshold.narrow(retry, rule), found.steps)
            self._fill(row, found)
        if _above(disturbed.threshold, undisturbed.threshold):
            self._fill(row, disturbed, search_warnings.AboveUndisturbed)

    def _max_rate(
        self, retry: StepRetry, settings: Settings, series: SearchSeries, row: Row
    ) -> Generator[StepPlan, StepResult, float | None]:
        """Doubles the rate until doubling gains nothing; the figure is the rate received at the best of the rates."""
        search = self._search
        best: float | None = None
        fastest, deciding_step = 0.0, None
        aggregate: float | None = None
        stalled = 0
        together = AGGREGATE_MAX if series == "max_rate" else f"{series}_aggregate_pps"
        for doubling in range(search.max_doublings + 1):
            rate = float(f"{search.start_rate * 2.0**doubling:.5g}")
            result = yield from retry.step(settings, series, rate)
            received = result.figures.totals.avg_rx_rate_pps
            gained = received is not None and (best is None or received >= best * (1 + search.gain_target))
            if received is not None and (best is None or received > best):
                best, fastest, deciding_step = received, rate, result
                row[f"{series}_verdict"] = result.figures.limit.verdict
                _mark(row, series, result.figures.limit.generator_limited)
            pps = result.figures.rates.aggregate_pps
            if pps is not None:
                aggregate = pps if aggregate is None else max(aggregate, pps)
            row[self._rates[series]], row[together], row[f"{series}_steps"] = best, aggregate, doubling + 1
            stalled = 0 if gained else stalled + 1
            if stalled >= search.stall_doublings:
                break
        else:
            warn(row, series, search_warnings.StillRising)
        if best is None or deciding_step is None:
            warn(row, series, search_warnings.NothingReceived)
            return None
        add_host_facts(row, [deciding_step])
        return (yield from self._received_again(retry, settings, series, fastest, row)) or best

    def _received_again(
        self, retry: StepRetry, settings: Settings, series: SearchSeries, fastest: float, row: Row
    ) -> Generator[StepPlan, StepResult, float | None]:
        """The mean of further steps at the best rate, since the step by which it was chosen is too high by chance."""
        fresh: list[StepResult] = []
        for _ in range(self._search.fresh_steps):
            fresh.append((yield from retry.step(settings, series, fastest)))
            row[f"{series}_steps"] = int(number(row[f"{series}_steps"]) or 0) + 1
        received = [pps for result in fresh if (pps := result.figures.totals.avg_rx_rate_pps) is not None]
        if not received:
            return None
        mean, half = mean_and_interval(received)
        row[self._rates[series]] = mean
        if half is not None:
            row[f"{series}_low_pps"], row[f"{series}_high_pps"] = max(mean - half, 0.0), mean + half
        together = [pps for result in fresh if (pps := result.figures.rates.aggregate_pps) is not None]
        if together:
            row[AGGREGATE_MAX if series == "max_rate" else f"{series}_aggregate_pps"] = fmean(together)
        return mean

    def _fill(self, row: Row, searched: _Searched, *against: type[SearchWarning]) -> None:
        name, found = searched.name, searched.threshold
        row[self._rates[name]] = found.figure
        tried = [evidence.rate for evidence in found.findings.evidence]
        for column in side_columns(name, found.series):
            row.pop(column.name, None)  # an earlier call may have filled it
        row[f"{name}_steps"] = len(found.findings.evidence) + len(searched.more)
        objections = (kind.why for kind in against)
        side = searched.side_findings(self._search.target)
        row |= RateFigures.of(found.answer, tried, side, objections).cells(name)
        row[f"{name}_note"] = text_of_search(row, name)
        row[f"{name}_verdict"] = found.limiting.limit.verdict
        _mark(row, name, found.limiting.limit.generator_limited)
        add_host_facts(row, deciding(searched.steps, found.limiting_step, found.figure))
        cohort = found.limiting.cohort
        if name in ("slow", "reconnecting"):
            row[f"{name}_cohort_loss_pct"] = cohort.cohort_loss_pct
        if name == "slow":
            row["slow_cohort_felt"] = cohort.cohort_felt


def _recorded(script: Script, steps: list[StepResult]) -> Script:
    """The script; its measured steps are added to ``steps``."""
    try:
        plan = next(script)
        while True:
            result = yield plan
            if not unmeasured(result):
                steps.append(result)
            plan = script.send(result)
    except StopIteration:
        return


def _reusing(script: Script, there: list[StepResult], more: list[StepResult]) -> Script:
    """The script, which receives the steps that it asks for from ``there``; further steps are added to ``more``."""
    try:
        plan = next(script)
        while True:
            # The length of a pause is random, so steps after other pauses serve as well.
            at = next((n for n, step in enumerate(there) if _rested(step.plan) == _rested(plan)), None)
            if at is None:
                result = yield plan
                if not unmeasured(result):
                    more.append(result)
            else:
                result = there.pop(at)
            plan = script.send(result)
    except StopIteration:
        return


def _rested(plan: StepPlan) -> StepPlan:
    """The plan without its pause."""
    return dataclasses.replace(plan, rest_s=0.0)


def _above(disturbed: ThresholdSearch, undisturbed: ThresholdSearch) -> bool:
    """Whether the figure with a cohort is above the one without, beyond both intervals."""
    if disturbed.interval is None or undisturbed.interval is None:
        return False
    if {disturbed.answer.why, undisturbed.answer.why} & {Inconclusive.CHANGING, Inconclusive.CONTRADICTED}:
        return False
    return disturbed.interval.low > undisturbed.interval.high


def _mark(row: Row, name: str, limited: bool | None) -> None:
    """Writes into the row whether the generator limited the figure of a search, if that is known."""
    if limited is not None:
        row[f"{name}_{GENERATOR_LIMITED}"] = limited


def _parts(step: StepResult) -> list[tuple[float, str]]:
    """The parts (%) of a step's shortfall, the largest first: what was lost, and the largest part of the rest."""
    figures = step.figures
    short_pct = figures.passing.shortfall_pct or 0.0
    lost_pct = min(figures.totals.client_loss_pct or 0.0, short_pct)
    rest_pct = short_pct - lost_pct
    sent, rate = figures.totals.avg_tx_rate_pps, step.plan.settings.rate
    unsent_pct = 0.0
    if sent is not None and rate != "max" and figures.held.rate_sent is False:
        unsent_pct = 100 * (1 - sent / rate)
    unaccepted_pct = figures.accepted.unaccepted_pct or 0.0
    stopped_pct = 100 * (figures.passing.stopped_s or 0.0) / step.plan.duration_s
    parts_of_rest = ((unsent_pct, "not sent"), (unaccepted_pct, "not accepted"), (stopped_pct, "in a stop"))
    rest = next((name for part, name in parts_of_rest if part > rest_pct / 2), "backlog")
    parts = [(lost_pct, "lost"), (rest_pct, rest)]
    return sorted((part for part in parts if part[0] > _LEAST_PART * short_pct), reverse=True)
