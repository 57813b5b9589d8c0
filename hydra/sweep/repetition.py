"""A sweep whose rows are each measured several times, and the figures of a repeated row. Pure.

Rates, counts and shares get their mean and Student's 95 % confidence interval. Percentiles and extremes are never
averaged: latencies have those of the merged histograms of all repeats, other figures the median; both with their range.
If only some of the repeats have a figure, their number stands in a column beside it.

All repeats of a client count follow one another, so no client is launched twice for it; the settings that a grid
varies take turns within a client count. All repeats of a listed point are measured before the next point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, sqrt
from statistics import fmean, median, stdev
from typing import Final

from hydra.measure import steadiness
from hydra.measure.column import COUNT, HIGH, INTERVAL, LOW, REASON, REPEATS, STATUS, Column, Differences, Values
from hydra.measure.connection_columns import is_above_all
from hydra.measure.latency import MERGED_IN_REPEATS
from hydra.measure.loss_columns import LOSS_CI_HIGH, LOSS_CI_LOW, LOSS_EVIDENCE
from hydra.measure.loss_interval import around, pooled
from hydra.measure.passing_columns import STEADY, UNSTEADY
from hydra.measure.step_part import PercentileColumn
from hydra.measure.step_result import StepFigures, StepResult, step_columns
from hydra.measure.traffic_columns import CLIENTS, LOSS
from hydra.model import Figure, Histogram, Scenario, StepPlan, cell_of, number
from hydra.sweep.interface import LadderProgress, RepeatTurn, Row, SearchProgress, Sweep, apart
from hydra.sweep.kind import plan_of
from hydra.wire.buckets import percentiles_us
from hydra.wire.histogram import merge

_WORST_FIRST: Final = ("partial", "failed", "skipped", "ok")
_OF_STEPS: Final = {column.name: column for column in step_columns()}

Histograms = Mapping[str, Histogram]
"""A step's merged histograms by their stored name."""


class RepeatedSweep(Sweep):
    """A sweep whose rows are each measured ``sweep.repeat`` times; see :class:`hydra.sweep.interface.Sweep`."""

    def __init__(self, scenario: Scenario, columns: Mapping[str, Column]) -> None:
        plan, repeats = plan_of(scenario), scenario.sweep.repeat
        self._varied = scenario.sweep.varied
        self._columns = columns
        self._in_order = plan.in_order
        self._part_of = plan.part_of
        parts = plan.parts()
        self._parts = list(parts)
        self._rounds = [
            [_Round(plan_of(part).begin(), in_order=self._in_order) for _ in range(repeats)] for part in parts.values()
        ]

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return next((each.coming for rounds in self._deal(results) for each in rounds if each.coming), None)

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return [
            merge_repeats([r for r, _ in of_point], self._columns, [h for _, h in of_point])
            for of_point in self._of_points(results)
        ]

    def repeats(self, results: Sequence[StepResult]) -> list[list[Row]]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return [[row for row, _ in of_point] for of_point in self._of_points(results)]

    @property
    def turns(self) -> list[RepeatTurn]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return [RepeatTurn(part, number) for part, rounds in enumerate(self._rounds) for number in range(len(rounds))]

    def turn(self, results: Sequence[StepResult]) -> RepeatTurn | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        # Only parts after an open one are left out, so the parts up to it have their own numbers.
        open_ = (
            RepeatTurn(part, number)
            for part, rounds in enumerate(self._deal(results))
            for number, each in enumerate(rounds)
            if each.coming
        )
        return next(open_, None)

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """See :class:`hydra.sweep.interface.Sweep`: all steps of a failed search, which is repeated as a whole."""
        epochs: set[int] = set()
        for each in (each for rounds in self._deal(results) for each in rounds):
            failed = each.sweep.offered_again(each.taken)
            epochs |= {r.epoch for r in each.taken} if self._in_order and failed else failed
        return epochs

    def progress(self, results: Sequence[StepResult]) -> SearchProgress | LadderProgress | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        last = results[-1]
        rounds = (each for of_part in self._deal(results) for each in of_part)
        return next((each.sweep.progress(each.taken) for each in rounds if each.taken and each.taken[-1] is last), None)

    def steps(self) -> int | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        counts = [each.sweep.steps() for rounds in self._rounds for each in rounds]
        return None if None in counts else sum(filter(None, counts))

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return sum(each.sweep.bound_s() for rounds in self._rounds for each in rounds)

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return sum(each.sweep.expected_s() for rounds in self._rounds for each in rounds)

    def _deal(self, results: Sequence[StepResult]) -> list[list[_Round]]:
        """The rounds of each part that these results have reached; the first open round continues."""
        dealt: list[list[_Round]] = []
        of_parts = apart(results, self._parts, self._part_of)
        for rounds, its_results in zip(self._rounds, of_parts.values(), strict=True):
            if not its_results and any(each.coming for reached in dealt for each in reached):
                continue
            dealt.append([])
            rest = its_results
            for each in rounds:
                rest = each.take(rest)
                dealt[-1].append(each)
                if each.coming is not None and not rest:
                    break
                if all(row[STATUS] == "skipped" for row in each.sweep.rows(each.taken)):
                    # A client count that does not fit does not fit in the next repeat either.
                    break
            if rest:
                rounds[0].sweep.next(rest[:1])  # raises its own error if the sweep never asks for that step
                raise ValueError("there are more results than this sweep has steps")
        return dealt

    def _of_points(self, results: Sequence[StepResult]) -> list[list[tuple[Row, Histograms]]]:
        """All repeats of each point that were measured."""
        found: list[list[tuple[Row, Histograms]]] = []
        for rounds in self._deal(results):
            repeats: dict[tuple[Figure, ...], list[tuple[Row, Histograms]]] = {}
            for each in rounds:
                for row, histograms in self._with_histograms(each) if each.taken else ():
                    repeats.setdefault(self._place(row), []).append((row, histograms))
            found += repeats.values()
        return found

    def _with_histograms(self, each: _Round) -> list[tuple[Row, Histograms]]:
        """A round's rows, each with the histograms of its step; the row of a search has several steps and none here."""
        rows = each.sweep.rows(each.taken)
        if self._in_order:
            return [(row, {}) for row in rows]
        of_steps = {(r.plan.clients, *(r.plan.value(name) for name in self._varied)): r.histograms for r in each.taken}
        # The rows after a skipped step have no step.
        return [(row, of_steps.get(self._place(row), {})) for row in rows]

    def _place(self, row: Row) -> tuple[Figure, ...]:
        """The values that distinguish a row from the others of its part."""
        return (row[CLIENTS], *(row[name] for name in self._varied))


class _Round:
    """One repeat of a part: a sweep of its own, which continues from the results that it has taken.

    Args:
        sweep: the sweep of the part.
        in_order: whether each step depends on those before it, as in a search. Otherwise a result for which this round
            has no open row belongs to a later round, because a resumed run returns to rows of an earlier round.

    Attributes:
        taken: its results.
        coming: its next step; None if it is complete.
    """

    def __init__(self, sweep: Sweep, *, in_order: bool) -> None:
        self.sweep = sweep
        self._in_order = in_order
        self._begin()

    def _begin(self) -> None:
        self.taken: list[StepResult] = []
        self.coming = self.sweep.next([])
        self._seen: list[StepResult] = []
        self._rest: list[StepResult] = []

    def take(self, results: Sequence[StepResult]) -> list[StepResult]:
        """Takes its own results, and returns the others.

        Raises:
            ValueError: each step depends on those before it, and a result belongs to another step.
        """
        if list(results[: len(self._seen)]) != self._seen:
            self._begin()
        for result in results[len(self._seen) :]:
            self._seen.append(result)
            if self.coming is None or not self._takes(result):
                self._rest.append(result)
        return list(self._rest)

    def _takes(self, result: StepResult) -> bool:
        more = [*self.taken, result]
        try:
            # Only results that the sweep accepts are taken.
            self.coming = self.sweep.next(more)
        except ValueError:
            if self._in_order:
                raise
            return False
        self.taken = more
        return True


def merge_repeats(
    rows: Sequence[Row], columns: Mapping[str, Column] = _OF_STEPS, histograms: Sequence[Histograms] = ()
) -> Row:
    """One row from the rows of its repeats.

    Args:
        rows: the row of every repeat; rows without figures (failed, skipped) count as repeats, too.
        columns: the definition of each column; a column that is not among them is treated by the type of its figures.
        histograms: the histograms of the repeats' steps, to merge.
    """
    if not rows:
        raise ValueError("there is nothing to merge")
    result: Row = {}
    names = dict.fromkeys(c for row in rows for c in row)
    together = _percentiles(names, columns, histograms)
    for column in names:
        values = [row[column] for row in rows if row.get(column) is not None]
        if column in (STATUS, REASON) or (column in columns and columns[column].repeats == "pooled"):
            continue
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        how = columns[column].repeats if column in columns else "mean"
        if how == "noted":
            result[column] = _counted_texts(values, len(rows))
        elif how == "first":
            result[column] = next(iter(values), None)
        elif how == "common" or not values or len(numbers) < len(values):
            result[column] = _all_of(values, len(rows))
        else:
            if how == "mean":
                result[column], result[column + INTERVAL] = mean_and_interval(numbers)
            elif how == "highest":
                result[column] = max(numbers)
            else:
                ranked = numbers + [inf] * sum(is_above_all(row, column) for row in rows)
                middle, highest = median(ranked), max(ranked)
                result[column] = together.get(column, middle if isfinite(middle) else None)
                result[column + LOW], result[column + HIGH] = min(numbers), highest if isfinite(highest) else None
            if len(numbers) < len(rows):
                result[column + COUNT] = len(numbers)
    repeats = [StepFigures.of(row) for row in rows]
    if any(LOSS_EVIDENCE in row for row in rows):
        result |= _loss(repeats, number(result.get(LOSS)))
    result |= _cold(repeats, result.get(UNSTEADY))
    statuses = [str(row[STATUS]) for row in rows]
    result[REPEATS] = len(rows)
    result[STATUS] = next(s for s in _WORST_FIRST if s in statuses)
    result[REASON] = "; ".join(dict.fromkeys(str(row[REASON]) for row in rows if row.get(REASON)))
    return result


def _cold(repeats: Sequence[StepFigures], unsteady: Figure) -> Row:
    """The figures on steadiness if the first repeat was slow compared with the others; empty if it was not."""
    received = [repeat.rates.aggregate_pps for repeat in repeats]
    slow = steadiness.slow_first([pps for pps in received if pps is not None]) if received[0] is not None else None
    if slow is None:
        return {}
    return {
        STEADY: False,
        UNSTEADY: Differences((slow,), repeats=str(unsteady or "")),
    }


def _percentiles(
    names: Iterable[str], columns: Mapping[str, Column], histograms: Sequence[Histograms]
) -> dict[str, Figure]:
    """The percentiles of the repeats' merged histograms, by the columns that the rows have."""
    merged = {name: merge(h[name] for h in histograms if name in h) for name in MERGED_IN_REPEATS}
    found = {
        name: percentiles_us(merged[column.histogram], [column.percent])[0]
        for name in names
        if isinstance(column := columns.get(name), PercentileColumn)
    }
    return {name: value for name, value in found.items() if value is not None}


def _loss(repeats: Sequence[StepFigures], lost_pct: float | None) -> Row:
    """The interval of the mean loss, from the bursts of all repeats together.

    A repeat without a burst lost nothing by chance. Student's interval of a few such repeats, 0 ± 0, is too narrow.
    """
    steps = [evidence for repeat in repeats if (evidence := repeat.loss.loss_evidence)]
    if lost_pct is None or len(steps) < sum(repeat.totals.client_loss_pct is not None for repeat in repeats):
        return dict.fromkeys((LOSS_CI_LOW, LOSS_CI_HIGH, LOSS_EVIDENCE))
    limits = around(lost_pct, steps)
    return {
        LOSS + INTERVAL: None,
        LOSS_CI_LOW: limits and limits.low,
        LOSS_CI_HIGH: limits and limits.high,
        LOSS_EVIDENCE: pooled(steps),
    }


def mean_and_interval(numbers: Sequence[float]) -> tuple[float, float | None]:
    """The mean and half the width of its 95 % confidence interval, t(n − 1)·s/√n; None for a single number."""
    from scipy.special import stdtrit  # Student's quantile; takes half a second to import, which only repeats need

    n = len(numbers)
    if n < 2:
        return fmean(numbers), None
    return fmean(numbers), float(stdtrit(n - 1, 0.975)) * stdev(numbers) / sqrt(n)


def _common(values: Sequence[Figure]) -> Figure:
    """The value that all repeats share, or all distinct values."""
    distinct = tuple({cell_of(value): value for value in values}.values())
    return Values(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def _all_of(values: Sequence[Figure], repeats: int) -> Figure:
    """For flags: false if any is false, true if all are true, otherwise None; for texts: all distinct ones."""
    if values and all(isinstance(v, bool) for v in values):
        return False if False in values else True if len(values) == repeats else None
    return _common(values)


def _counted_texts(values: Sequence[Figure], repeats: int) -> Figure:
    """Each text with the number of repeats that have it."""
    counts = Counter(str(value) for value in values if value)
    return "; ".join(f"{text} ({n} of {repeats} repeats)" for text, n in counts.items()) or None
