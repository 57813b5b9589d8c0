"""How long a sweep still takes, learned from the steps so far; pure."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.model import Scenario, StepPlan, StepResult
from hydra.sweep.interface import QUICK_DRAIN_S, Sweep, usual_s


class Pace:
    """What steps of this run took beside what they take when nothing is backlogged.

    Args:
        scenario: the one.
        sweep: its sweep.
    """

    def __init__(self, scenario: Scenario, sweep: Sweep) -> None:
        self._scenario = scenario
        self._sweep = sweep
        self._expected_s = 0.0
        self._took_s = 0.0

    def took(self, plan: StepPlan, seconds: float) -> None:
        """A step is done: all that it took, its deployment included."""
        self._expected_s += self._usual_s(plan)
        self._took_s += seconds

    def left_s(self, results: Sequence[StepResult], plan: StepPlan) -> float:
        """About how many seconds the sweep still takes: steps to come are as slow as those that were watched.

        Args:
            results: all of the sweep so far, those of an earlier part of a resumed run as well.
            plan: the step that begins now, which is to come at least.
        """
        spent_s = sum(self._usual_s(result.plan) for result in results)
        ahead_s = max(self._sweep.expected_s() - spent_s, self._usual_s(plan))
        return ahead_s * (self._took_s / self._expected_s if self._expected_s else 1.0)

    def _usual_s(self, plan: StepPlan) -> float:
        return plan.rest_s + usual_s(self._scenario, plan) + QUICK_DRAIN_S
