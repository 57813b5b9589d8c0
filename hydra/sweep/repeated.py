"""Every row measured several times, and what its figures are then: mean and 95 % interval. Pure.

All repetitions of a client count come one after the other, so no client is launched twice for it; the settings that a
grid varies take turns within a client count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from hydra.model import Figure, Scenario, StepPlan, StepResult
from hydra.sweep.columns import REASON, STATUS
from hydra.sweep.sweep import Row, Sweep

REPEATS: Final = "repeats"
INTERVAL: Final = "_ci95"
"""Suffix of the column with half the width of a figure's 95 % interval."""

_T_975: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
                 2.045, 2.042)  # fmt: skip
"""0.975 quantiles of Student's t distribution for 1 to 30 degrees of freedom."""
_WORST_FIRST: Final = ("partial", "failed", "skipped", "ok")
_FROM_PLAN: Final = ("clients", "msg_batch", "requested_rate", "loss_target_pct", "batch_bytes")


class Repeated:
    """A sweep whose rows are each measured ``sweep.repeat`` times; see :class:`hydra.sweep.sweep.Sweep`."""

    def __init__(self, scenario: Scenario, make: Callable[[Scenario], Sweep]) -> None:
        self._times = scenario.sweep.repeat
        self._keys = (*_FROM_PLAN, *scenario.sweep.vary)
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
            rounds: list[list[Row]] = []
            for _ in range(self._times):
                taken = 0
                while (plan := part.next(results[at : at + taken])) is not None and at + taken < len(results):
                    taken += 1
                if taken:
                    rounds.append(part.rows(results[at : at + taken]))
                if plan is not None:
                    return [*rows, *self._merge(rounds)], plan
                at += taken
                if rounds and all(row[STATUS] == "skipped" for row in rounds[-1]):
                    # What does not fit does not fit the next time either.
                    break
            rows += self._merge(rounds)
        if at < len(results):
            raise ValueError("there are more results than this sweep has steps")
        return rows, None

    def _merge(self, rounds: Sequence[Sequence[Row]]) -> list[Row]:
        count = max(map(len, rounds), default=0)
        return [merged([rows[i] for rows in rounds if i < len(rows)], self._keys) for i in range(count)]


def merged(rows: Sequence[Row], keys: Sequence[str] = _FROM_PLAN) -> Row:
    """One row of several measurements of the same: each number's mean, and its 95 % interval in a column of its own.

    Rows without figures (failed, skipped) give none to the means; their status and reason stay. ``keys`` are columns
    that were asked for, not measured.
    """
    if not rows:
        raise ValueError("there is nothing to merge")
    result: Row = {}
    columns = dict.fromkeys(c for row in rows for c in row)
    for column in columns:
        values = [row[column] for row in rows if row.get(column) is not None]
        if column in (STATUS, REASON):
            continue
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if column in keys or not values or len(numbers) < len(values):
            result[column] = _common(values)
            continue
        result[column], result[column + INTERVAL] = mean_and_interval(numbers)
    statuses = [str(row[STATUS]) for row in rows]
    result[REPEATS] = len(rows)
    result[STATUS] = next(s for s in _WORST_FIRST if s in statuses)
    result[REASON] = "; ".join(dict.fromkeys(str(row[REASON]) for row in rows if row.get(REASON)))
    return result


def mean_and_interval(numbers: Sequence[float]) -> tuple[float, float | None]:
    """The mean and half the width of its 95 % interval, t(n − 1)·s/√n; no interval of a single number."""
    n = len(numbers)
    if n < 2:
        return fmean(numbers), None
    t = _T_975[n - 2] if n - 2 < len(_T_975) else 1.96
    return fmean(numbers), t * stdev(numbers) / sqrt(n)


def _common(values: Sequence[Figure]) -> Figure:
    """The value that all share; of several, false for flags and otherwise all of them."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= 1:
        return distinct[0] if distinct else None
    return False if all(isinstance(v, bool) for v in distinct) else " / ".join(map(str, distinct))
