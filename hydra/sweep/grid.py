"""A grid: every client count with every combination of the settings that vary."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product

from hydra.model import Figure, Scenario, StepPlan, StepResult
from hydra.sweep.columns import CLIENTS, REASON, STATUS
from hydra.sweep.sweep import QUICK_DRAIN_S, Row, check_plan, step_bound_s


class Grid:
    """Client counts ascending in the outer loop, then the product of ``vary`` in the order of the file.

    A skipped step skips the rest of its client count, because what did not fit is the number of clients; each of
    its points keeps a row with the reason.
    """

    def __init__(self, scenario: Scenario) -> None:
        sweep = scenario.sweep
        self._step_bound_s = step_bound_s(scenario)
        self._duration_s = sweep.duration_s
        self._warmup_s = scenario.warmup_s * len(sweep.clients)
        self._points: list[tuple[StepPlan, dict[str, Figure]]] = []
        for clients in sorted(sweep.clients):
            for values in product(*sweep.vary.values()):
                varied = dict(zip(sweep.vary, values, strict=True))
                settings = dataclasses.replace(scenario.settings, **varied)  # type: ignore[arg-type]  # checked by config
                self._points.append((StepPlan(clients, settings, sweep.duration_s), varied))

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[1]

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[0]

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return len(self._points) * self._step_bound_s + self._warmup_s

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return len(self._points) * (self._duration_s + QUICK_DRAIN_S) + self._warmup_s

    def _replay(self, results: Sequence[StepResult]) -> tuple[list[Row], StepPlan | None]:
        rows: list[Row] = []
        skipped: dict[int, str] = {}
        remaining = iter(results)
        for plan, varied in self._points:
            known: Row = {CLIENTS: plan.clients, **varied}
            if plan.clients in skipped:
                rows.append({**known, STATUS: "skipped", REASON: skipped[plan.clients]})
                continue
            result = next(remaining, None)
            if result is None:
                return rows, plan
            check_plan(plan, result)
            if result.status == "skipped":
                skipped[plan.clients] = result.reason
            rows.append({**known, **result.figures, STATUS: result.status, REASON: result.reason})
        if next(remaining, None) is not None:
            raise ValueError("there are more results than this sweep has steps")
        return rows, None
