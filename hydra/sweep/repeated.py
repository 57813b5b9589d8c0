"""Every row measured several times, and what its figures are then. Pure.

Rates, counts and shares get their mean and Student's 95 % interval. Percentiles and extremes are never averaged: those
of latencies are asked of the merged histograms of all repeats, others are the median; both with their range. How many
repeats a figure is of stands beside it wherever these are not all.

All repetitions of a client count come one after the other, so no client is launched twice for it; the settings that a
grid varies take turns within a client count.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from statistics import fmean, median, stdev
from typing import Final

from hydra.measure import latency
from hydra.model import Figure, Histogram, Scenario, StepPlan, StepResult
from hydra.sweep.columns import REASON, STATUS
from hydra.sweep.sweep import Row, Sweep

REPEATS: Final = "repeats"
INTERVAL: Final = "_ci95"
"""Suffix of the column with half the width of a mean's 95 % interval."""
COUNT: Final = "_n"
"""Suffix of the column with the number of repeats that a figure is of, where these are not all."""
LOW: Final = "_low"
HIGH: Final = "_high"
"""Suffixes of the columns with the range of a percentile or an extreme."""

_WORST_FIRST: Final = ("partial", "failed", "skipped", "ok")
_FROM_PLAN: Final = ("clients", "msg_batch", "requested_rate", "loss_target_pct", "batch_bytes")
_ORDER_STATISTIC: Final = re.compile(
    r"latency_\w+_us|tx_lag_p\d+_us|rx_p\d+|\w+_(min|max)_bytes|host_cpu_busiest_core_pct"
)
_TOLD: Final = re.compile(r"\w+_note|stopped_early")
"""Texts that say what is wrong with a figure: it matters in how many repeats."""

MERGED_IN_REPEATS: Final = ("latency", "lag")
"""The stored histograms of a step that percentile columns are made of."""

Histograms = Mapping[str, Histogram]
"""A step's merged histograms by their stored name."""


class Repeated:
    """A sweep whose rows are each measured ``sweep.repeat`` times; see :class:`hydra.sweep.sweep.Sweep`."""

    def __init__(self, scenario: Scenario, make: Callable[[Scenario], Sweep]) -> None:
        self._times = scenario.sweep.repeat
        self._keys = (*_FROM_PLAN, *scenario.sweep.vary)
        self._one_step_a_row = scenario.sweep.search is None
        self._parts = [
            make(dataclasses.replace(scenario, sweep=dataclasses.replace(scenario.sweep, clients=(clients,), repeat=1)))
            for clients in sorted(scenario.sweep.clients)
        ]

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[1]

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[0]

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._times * sum(part.bound_s() for part in self._parts)

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._times * sum(part.expected_s() for part in self._parts)

    def _replay(self, results: Sequence[StepResult]) -> tuple[list[Row], StepPlan | None]:
        rows: list[Row] = []
        at = 0
        for part in self._parts:
            rounds: list[list[tuple[Row, Histograms]]] = []
            for _ in range(self._times):
                taken = 0
                while (plan := part.next(results[at : at + taken])) is not None and at + taken < len(results):
                    taken += 1
                if taken:
                    rounds.append(self._with_histograms(part, results[at : at + taken]))
                if plan is not None:
                    return [*rows, *self._merge(rounds)], plan
                at += taken
                if rounds and all(row[STATUS] == "skipped" for row, _ in rounds[-1]):
                    # What does not fit does not fit the next time either.
                    break
            rows += self._merge(rounds)
        if at < len(results):
            raise ValueError("there are more results than this sweep has steps")
        return rows, None

    def _with_histograms(self, part: Sweep, results: Sequence[StepResult]) -> list[tuple[Row, Histograms]]:
        """A part's rows, each with the histograms of its step; the row of a search is of no single step."""
        rows = part.rows(results)
        of_steps = [r.histograms for r in results] if self._one_step_a_row else []
        # Where a step was skipped, the rows that follow have no step.
        return [(row, of_steps[i] if i < len(of_steps) else {}) for i, row in enumerate(rows)]

    def _merge(self, rounds: Sequence[Sequence[tuple[Row, Histograms]]]) -> list[Row]:
        merged_rows = []
        for i in range(max(map(len, rounds), default=0)):
            rows, histograms = zip(*(measured[i] for measured in rounds if i < len(measured)), strict=True)
            merged_rows.append(merged(rows, self._keys, histograms))
        return merged_rows


def merged(rows: Sequence[Row], keys: Sequence[str] = _FROM_PLAN, histograms: Sequence[Histograms] = ()) -> Row:
    """One row of several measurements of the same.

    Args:
        rows: of every repeat; those without figures (failed, skipped) count as repeats all the same.
        keys: columns that were asked for, not measured.
        histograms: of the repeats' steps, to merge.
    """
    if not rows:
        raise ValueError("there is nothing to merge")
    result: Row = {}
    together = _percentiles(rows, histograms)
    for column in dict.fromkeys(c for row in rows for c in row):
        values = [row[column] for row in rows if row.get(column) is not None]
        if column in (STATUS, REASON):
            continue
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if column in keys:
            result[column] = _common(values)
        elif not values or len(numbers) < len(values):
            result[column] = _told(values, len(rows)) if _TOLD.fullmatch(column) else _all_of(values, len(rows))
        else:
            if _ORDER_STATISTIC.fullmatch(column):
                result[column] = together.get(column, median(numbers))
                result[column + LOW], result[column + HIGH] = min(numbers), max(numbers)
            else:
                result[column], result[column + INTERVAL] = mean_and_interval(numbers)
            if len(numbers) < len(rows):
                result[column + COUNT] = len(numbers)
    statuses = [str(row[STATUS]) for row in rows]
    result[REPEATS] = len(rows)
    result[STATUS] = next(s for s in _WORST_FIRST if s in statuses)
    result[REASON] = "; ".join(dict.fromkeys(str(row[REASON]) for row in rows if row.get(REASON)))
    return result


def _percentiles(rows: Sequence[Row], histograms: Sequence[Histograms]) -> dict[str, Figure]:
    """The percentiles of the repeats' merged histograms, by the columns that the rows have."""
    found: dict[str, Figure] = {}
    columns = {c for row in rows for c in row}
    all_latencies = latency.merge(h["latency"] for h in histograms if "latency" in h)
    for prefix in ("latency", "latency_from_send"):
        if f"{prefix}_p50_us" in columns:
            found |= latency.figures(all_latencies, prefix)
    (found["tx_lag_p99_us"],) = latency.percentiles_us(
        latency.merge(h["lag"] for h in histograms if "lag" in h), [99.0]
    )
    return {column: value for column, value in found.items() if value is not None}


def mean_and_interval(numbers: Sequence[float]) -> tuple[float, float | None]:
    """The mean and half the width of its 95 % interval, t(n − 1)·s/√n; no interval of a single number."""
    from scipy.special import stdtrit  # Student's quantile; only who repeats waits the half second for it

    n = len(numbers)
    if n < 2:
        return fmean(numbers), None
    return fmean(numbers), float(stdtrit(n - 1, 0.975)) * stdev(numbers) / sqrt(n)


def _common(values: Sequence[Figure]) -> Figure:
    """The value that all share, or all of them."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else " / ".join(map(str, distinct)) or None


def _all_of(values: Sequence[Figure], repeats: int) -> Figure:
    """Flags: false if any is, true if all are, otherwise not known; texts: all of them."""
    if values and all(isinstance(v, bool) for v in values):
        return False if False in values else True if len(values) == repeats else None
    return _common(values)


def _told(values: Sequence[Figure], repeats: int) -> Figure:
    """Each text with the number of repeats that it was said of."""
    said = {text: values.count(text) for text in dict.fromkeys(values)}
    return "; ".join(f"{text} ({n} of {repeats} repeats)" for text, n in said.items()) or None
