"""A grid: every client count with every combination of the settings that vary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

from hydra.columns.names import CLIENTS, REASON, STATUS
from hydra.model import Figure, Scenario, StepPlan, StepResult, with_values
from hydra.sweep.asked import GRID_TRIES
from hydra.sweep.sweep import QUICK_DRAIN_S, Row, step_bound_s


class Grid:
    """Client counts ascending in the outer loop, then the product of ``vary`` in the order of the file.

    A skipped step skips the rest of its client count, because what did not fit is the number of clients; each of
    its points keeps a row with the reason. A failed step is tried once more, and the row is that of the last try.

    Results are told from each other by their plan, not by their order: a resumed run comes back to earlier rows.
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
                settings = with_values(scenario.settings, varied)
                self._points.append((StepPlan(clients, settings, sweep.duration_s), varied))

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[1]

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return self._replay(results)[0]

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return {tries[0].epoch for tries in self._tries(results) if _exhausted(tries)}

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return GRID_TRIES * len(self._points) * self._step_bound_s + self._warmup_s

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.sweep.Sweep`."""
        return len(self._points) * (self._duration_s + QUICK_DRAIN_S) + self._warmup_s

    def _replay(self, results: Sequence[StepResult]) -> tuple[list[Row], StepPlan | None]:
        rows: list[Row] = []
        coming: StepPlan | None = None
        skipped: dict[int, str] = {}
        for (plan, varied), tries in zip(self._points, self._tries(results), strict=True):
            known: Row = {CLIENTS: plan.clients, **varied}
            if not tries and plan.clients in skipped:
                rows.append({**known, STATUS: "skipped", REASON: skipped[plan.clients]})
                continue
            if _open(tries):
                coming = coming or plan
            if not tries:
                continue
            last = tries[-1]
            if last.status == "skipped":
                skipped[plan.clients] = last.reason
            reason = last.reason
            if last.status == "ok" and len(tries) > 1:
                reason = f"measured at the second try; the first failed: {tries[0].reason}"
            # What varies stays as it was asked for, where figures have words of their own for it.
            rows.append({**known, **last.figures, **varied, STATUS: last.status, REASON: reason})
        return rows, coming

    def _tries(self, results: Sequence[StepResult]) -> list[list[StepResult]]:
        """The results of each point, in their order.

        Raises:
            ValueError: some belong to none.
        """
        tries: list[list[StepResult]] = [[] for _ in self._points]
        of_plan: dict[StepPlan, list[list[StepResult]]] = defaultdict(list)
        for (plan, _), its_tries in zip(self._points, tries, strict=True):
            of_plan[plan].append(its_tries)
        for result in results:
            if result.plan not in of_plan:
                raise ValueError(
                    f"step {result.epoch} measured {result.plan}, which this sweep does not ask for: "
                    "the results belong to another scenario"
                )
            open_point = next((tried for tried in of_plan[result.plan] if _open(tried)), None)
            if open_point is None:
                raise ValueError("there are more results than this sweep has steps")
            open_point.append(result)
        return tries


def _open(tries: Sequence[StepResult]) -> bool:
    """Whether a point is still to be measured."""
    return not tries or (tries[-1].status == "failed" and not _exhausted(tries))


def _exhausted(tries: Sequence[StepResult]) -> bool:
    return len(tries) >= GRID_TRIES and tries[-1].status == "failed"
