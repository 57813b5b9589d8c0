"""What a sweep is: it decides the next step from the results so far, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from hydra.model import Figure, Scenario, StepPlan, StepResult

Row = dict[str, Figure]
"""One row of the table: a figure per column name, in the table's order."""

DRAIN_SLACK_S: Final = 5.0
"""The default drain is the step's length and this."""
QUICK_DRAIN_S: Final = 1.5
"""What a step without a backlog costs beside its window."""


class Sweep(Protocol):
    """A replayable decision: the same results always lead to the same next step, so a resumed run goes on."""

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """The step after these results, in the order in which they were measured; None when the sweep is done.

        Raises:
            ValueError: the results are not those of this sweep.
        """

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """The table so far; a row that is still being measured has the status ``partial``."""

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """Epochs of failed steps; without them every row that failed is asked for once more, as a resumed run does."""

    def bound_s(self) -> float:
        """The most seconds that the steps may take, every drain to its limit included."""

    def expected_s(self) -> float:
        """About how many seconds the steps take when nothing is backlogged."""


def step_bound_s(scenario: Scenario) -> float:
    """The most seconds that one step may take: its window and its drain."""
    duration_s = scenario.sweep.duration_s
    drain_s = scenario.drain_max_s if scenario.drain_max_s is not None else duration_s + DRAIN_SLACK_S
    return duration_s + drain_s


def by_clients(results: Sequence[StepResult], counts: Sequence[int]) -> dict[int, list[StepResult]]:
    """The results of each client count in their order: a resumed run may measure an earlier count again.

    Raises:
        ValueError: there are results of other counts.
    """
    found: dict[int, list[StepResult]] = {clients: [] for clients in counts}
    for result in results:
        if result.plan.clients not in found:
            raise ValueError(
                f"step {result.epoch} measured {result.plan.clients} clients, which this sweep does not ask for: "
                "the results belong to another scenario"
            )
        found[result.plan.clients].append(result)
    return found


def check_plan(asked: StepPlan, result: StepResult) -> None:
    """Refuses a result of another plan than the one that was asked for.

    Raises:
        ValueError: they differ.
    """
    if result.plan != asked:
        raise ValueError(
            f"step {result.epoch} measured {result.plan}, where this sweep asks for {asked}: "
            "the results belong to another scenario"
        )
