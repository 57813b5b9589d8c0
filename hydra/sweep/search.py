"""Searches for rates: how fast until nothing is gained, and how fast without loss (DESIGN section 4).

The search is written as a script that asks for a step and is given its result. Asking for the next step replays the
script over all results so far, so there is no state beside the results.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from hydra.model import Cohort, Figure, Scenario, SearchSeries, SearchSpec, Settings, StepPlan, StepResult
from hydra.sweep.columns import (
    AGGREGATE,
    AGGREGATE_MAX,
    AVG_RX,
    CLIENTS,
    PASSED,
    RATE_HELD,
    REASON,
    STATUS,
    VERDICT,
    search_column,
    search_columns,
    sndhwm_column,
)
from hydra.sweep.sweep import QUICK_DRAIN_S, Row, check_plan, step_bound_s

CONFIRM_ROUNDS: Final = 6
"""Candidates that are confirmed at most; each is lower than the last by ratio, ratio², ratio⁴, …"""
GIVE_UP_AFTER: Final = 3
"""Failed steps in a row after which a client count is given up: more rates will not mend what is broken."""

_RISING: Final = ("max_rate", "nodrop")
"""Series that only double: they look for the highest rate that is received at all."""

Script = Generator[StepPlan, StepResult, None]
Steps = Generator[StepPlan, StepResult, StepResult]


class _GivenUpError(Exception):
    """The client count at hand cannot be measured."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass
class _Answer:
    """What a search for a rate without loss knows."""

    settings: Settings
    passed: dict[float, StepResult] = field(default_factory=dict)
    lowest_failed: float | None = None
    figure: float | None = None
    note: str = ""
    last: StepResult | None = None

    def fail(self, rate: float) -> None:
        """A failure makes nothing of any higher rate that passed: the interval stays one."""
        if self.lowest_failed is None or rate < self.lowest_failed:
            self.lowest_failed = rate
        self.passed = {r: s for r, s in self.passed.items() if r < rate}

    @property
    def highest_passed(self) -> float | None:
        return max(self.passed, default=None)


def _round(rate: float) -> float:
    """A rate that is pleasant to read; five digits are finer than any ratio worth bisecting to."""
    return float(f"{rate:.5g}")


def _number(value: Figure) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _passed(result: StepResult) -> bool:
    return result.status == "ok" and result.figures.get(PASSED) is True


class Search:
    """For every client count, ascending, the searches of ``SearchSpec.series`` in order."""

    def __init__(self, scenario: Scenario, search: SearchSpec) -> None:
        self._scenario = scenario
        self._search = search
        self._clients = sorted(scenario.sweep.clients)
        self._top = search.start_rate * 2.0**search.max_doublings

    # --- the sweep ---------------------------------------------------------------------------------------------

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[1]

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[0]

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        steps = sum(self._times(series) * self._most_steps(series) for series in self._search.series)
        return len(self._clients) * (steps * step_bound_s(self._scenario) + self._scenario.warmup_s)

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`: about six doublings, and a bracket of three steps for the others."""
        search = self._search
        doublings, bracketed = min(6, search.max_doublings) + 1, 3 + self._bisections() + search.confirmations
        steps = sum(self._times(s) * (doublings if s in _RISING else bracketed) for s in search.series)
        step_s = self._scenario.sweep.duration_s + QUICK_DRAIN_S
        return len(self._clients) * (steps * step_s + self._scenario.warmup_s)

    def _times(self, series: SearchSeries) -> int:
        """How many searches a series is: one for each of several high-water marks."""
        return len(self._search.sndhwms) if series == "loss" and self._search.sndhwms else 1

    def _most_steps(self, series: SearchSeries) -> int:
        search = self._search
        if series in _RISING:
            return search.max_doublings + 1
        # From anywhere between the floor and the top, doubling or halving to the other end.
        bracket = math.ceil(math.log2(self._top / search.floor_rate)) + 2
        return bracket + self._bisections() + CONFIRM_ROUNDS * search.confirmations

    def _bisections(self) -> int:
        """Halvings in logarithm of a bracket of 2 down to ``ratio``, and one for rounding."""
        return max(math.ceil(math.log2(math.log(2) / math.log(self._search.ratio))), 0) + 1

    def _replay(self, results: Sequence[StepResult]) -> tuple[list[Row], StepPlan | None]:
        rows: list[Row] = []
        script = self._script(rows)
        remaining = iter(results)
        try:
            plan = next(script)
            for result in remaining:
                check_plan(plan, result)
                plan = script.send(result)
        except StopIteration:
            if next(remaining, None) is not None:
                raise ValueError("there are more results than this sweep has steps") from None
            return rows, None
        return rows, plan

    # --- the script --------------------------------------------------------------------------------------------

    def _script(self, rows: list[Row]) -> Script:
        for clients in self._clients:
            row: Row = dict.fromkeys(search_columns(self._search))
            row.update({CLIENTS: clients, STATUS: "partial", REASON: ""})
            rows.append(row)
            try:
                yield from self._row(clients, row)
            except _GivenUpError as e:
                row[STATUS], row[REASON] = e.status, e.reason
            else:
                row[STATUS] = "ok"

    def _row(self, clients: int, row: Row) -> Script:
        """All searches of one client count."""
        search = self._search
        settings = self._scenario.settings
        if search.sndhwms:
            settings = dataclasses.replace(settings, sndhwm=search.sndhwms[0])
        asked = _Asked(self._scenario, clients)
        max_rate: float | None = None
        for series in search.series:
            if series == "max_rate":
                max_rate = yield from self._max_rate(asked, settings, series, row)
                row[AGGREGATE_MAX] = row.pop(f"{series}_aggregate_pps", None)
            elif series == "nodrop":
                yield from self._max_rate(asked, dataclasses.replace(settings, nodrop=True), series, row)
            elif series == "loss" and search.sndhwms:
                for sndhwm in search.sndhwms:
                    at = dataclasses.replace(settings, sndhwm=sndhwm)
                    answer = yield from self._without_loss(asked, at, series, Cohort(), max_rate)
                    self._fill(row, f"loss_sndhwm_{sndhwm}", sndhwm_column(sndhwm, search), answer)
            else:
                cohort = self._cohort(series, clients, max_rate)
                if isinstance(cohort, str):
                    row[f"{series}_note"] = cohort
                    continue
                first = _number(row.get(search_column("loss", search))) or max_rate
                answer = yield from self._without_loss(asked, settings, series, cohort, first)
                self._fill(row, series, search_column(series, search), answer)

    def _cohort(self, series: SearchSeries, clients: int, max_rate: float | None) -> Cohort | str:
        """The cohort of a search, or why it cannot be measured."""
        search = self._search
        if series == "loss":
            return Cohort()
        if clients < 2:
            return "a cohort needs at least 2 clients"
        # One seed a client count: the two cohorts are cut from the two ends of one order and never overlap.
        seed = zlib.crc32(f"cohort of {clients}".encode())
        if series == "reconnecting":
            return Cohort("reconnecting", search.cohort_fraction, search.reconnect_rate, seed)
        if not max_rate:
            return "slow clients read a share of the highest rate, which is not known"
        return Cohort("slow", search.cohort_fraction, search.slow_share * max_rate, seed)

    def _max_rate(
        self, asked: _Asked, settings: Settings, series: SearchSeries, row: Row
    ) -> Generator[StepPlan, StepResult, float | None]:
        """Doubles the rate until doubling gains nothing; the highest received rate is the figure."""
        search = self._search
        best: float | None = None
        aggregate: float | None = None
        stalled = 0
        for doubling in range(search.max_doublings + 1):
            rate = _round(search.start_rate * 2.0**doubling)
            result = yield from asked.step(settings, series, rate)
            received = _number(result.figures.get(AVG_RX)) if result.status == "ok" else None
            gained = received is not None and (best is None or received >= best * (1 + search.gain_target))
            if received is not None and (best is None or received > best):
                best = received
                row[f"{series}_verdict"] = result.figures.get(VERDICT)
            pps = _number(result.figures.get(AGGREGATE)) if result.status == "ok" else None
            if pps is not None:
                aggregate = pps if aggregate is None else max(aggregate, pps)
            row[search_column(series, search)], row[f"{series}_aggregate_pps"] = best, aggregate
            stalled = 0 if gained else stalled + 1
            if stalled >= search.stall_doublings:
                break
        else:
            row[f"{series}_note"] = f"still rising at {search.max_doublings} doublings"
        if best is None:
            row[f"{series}_note"] = "nothing was received at any rate"
        return best

    def _without_loss(
        self, asked: _Asked, settings: Settings, series: SearchSeries, cohort: Cohort, start: float | None
    ) -> Generator[StepPlan, StepResult, _Answer]:
        """Brackets, bisects and confirms the highest rate that passes."""
        answer = _Answer(settings)
        yield from self._bracket(asked, series, cohort, start or self._search.start_rate, answer)
        low = answer.highest_passed
        if low is None:
            answer.note = f"no rate down to {self._search.floor_rate:g}/s passes"
            return answer
        while answer.lowest_failed is not None and answer.lowest_failed / low > self._search.ratio:
            middle = _round(math.sqrt(low * answer.lowest_failed))
            if not low < middle < answer.lowest_failed:
                break
            yield from self._try(asked, series, cohort, middle, answer)
            low = answer.highest_passed or low
        yield from self._confirm(asked, series, cohort, low, answer)
        return answer

    def _try(self, asked: _Asked, series: SearchSeries, cohort: Cohort, rate: float, answer: _Answer) -> Steps:
        result = yield from asked.step(answer.settings, series, rate, cohort)
        answer.last = result
        if _passed(result):
            answer.passed[rate] = result
        else:
            answer.fail(rate)
        return result

    def _bracket(self, asked: _Asked, series: SearchSeries, cohort: Cohort, start: float, answer: _Answer) -> Script:
        """Doubles from a rate that passes until one fails, or halves from one that fails until one passes."""
        floor = self._search.floor_rate
        rate = _round(min(max(start, floor), self._top))
        result = yield from self._try(asked, series, cohort, rate, answer)
        while _passed(result):
            if result.figures.get(RATE_HELD) is False:
                answer.note = "the publisher held no higher rate"
                return
            if rate >= self._top:
                answer.note = f"passes at {rate:g}/s, the highest rate that is tried"
                return
            rate = _round(min(rate * 2, self._top))
            result = yield from self._try(asked, series, cohort, rate, answer)
        while not answer.passed and rate > floor:
            rate = _round(max(rate / 2, floor))
            yield from self._try(asked, series, cohort, rate, answer)

    def _confirm(self, asked: _Asked, series: SearchSeries, cohort: Cohort, rate: float, answer: _Answer) -> Script:
        """Fresh steps at the answer; when one fails, the next lower candidate has to stand the same."""
        if not self._search.confirmations:
            answer.figure = _number(answer.passed[rate].figures.get(AVG_RX))
            return
        back_off = self._search.ratio
        for _ in range(CONFIRM_ROUNDS):
            received: list[float] = []
            for _ in range(self._search.confirmations):
                result = yield from asked.step(answer.settings, series, rate, cohort, confirm=True)
                answer.last = result
                if not _passed(result):
                    answer.fail(rate)
                    break
                received.append(_number(result.figures.get(AVG_RX)) or 0.0)
            else:
                answer.passed[rate] = result
                answer.figure = fmean(received)
                return
            if rate <= self._search.floor_rate:
                break
            rate = _round(max(rate / back_off, self._search.floor_rate))
            back_off *= back_off
        answer.note = f"no rate was confirmed, the lowest tried was {rate:g}/s"

    def _fill(self, row: Row, series: str, column: str, answer: _Answer) -> None:
        row[column] = answer.figure
        row[f"{series}_highest_passed_pps"] = answer.highest_passed
        row[f"{series}_lowest_failed_pps"] = answer.lowest_failed
        if answer.note:
            row[f"{series}_note"] = answer.note
        if answer.last is None:
            return
        figures = answer.last.figures
        row[f"{series}_verdict"] = figures.get(VERDICT)
        if series in ("slow", "reconnecting"):
            row[f"{series}_cohort_loss_pct"] = figures.get("cohort_loss_pct")
        if series == "slow":
            row["slow_cohort_felt"] = figures.get("cohort_felt")


class _Asked:
    """Steps of one client count; watches for those that show that it cannot be measured."""

    def __init__(self, scenario: Scenario, clients: int) -> None:
        self._scenario = scenario
        self._clients = clients
        self._failed_in_a_row = 0

    def step(
        self,
        settings: Settings,
        series: SearchSeries,
        rate: float,
        cohort: Cohort = Cohort(),  # noqa: B008  # frozen
        confirm: bool = False,
    ) -> Steps:
        """Asks for one step.

        Raises:
            _GivenUpError: it was skipped, or failed like the ones before it.
        """
        result = yield StepPlan(
            clients=self._clients,
            settings=dataclasses.replace(settings, rate=rate),
            duration_s=self._scenario.sweep.duration_s,
            series=series,
            cohort=cohort,
            confirm=confirm,
        )
        if result.status == "skipped":
            raise _GivenUpError("skipped", result.reason)
        self._failed_in_a_row = self._failed_in_a_row + 1 if result.status == "failed" else 0
        if self._failed_in_a_row >= GIVE_UP_AFTER:
            raise _GivenUpError("failed", f"{GIVE_UP_AFTER} steps in a row failed, the last: {result.reason}")
        return result
