"""The interface of a sweep, which decides the next step from the results so far, and its remaining time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from hydra.measure.step_result import StepResult
from hydra.model import Figure, Scenario, StepPlan

Key = TypeVar("Key", bound=Hashable)
Row = dict[str, Figure]
"""One row of the table: a figure per column name, in the table's order."""
RowName = Callable[[Row], str]
"""Gives the name that distinguishes a row from the others."""

DRAIN_SLACK_S: Final = 5.0
"""The default limit of a drain exceeds the step's length by this."""
QUICK_DRAIN_S: Final = 1.5
"""The time that a step without a backlog takes in addition to its window."""
SHARP_STEPS: Final = 20
"""Steps of a search for a threshold if losses begin at one rate: the median of simulations (docs/limits.md)."""
_USUAL_RATE: Final = 100_000.0
"""Assumed messages/s of all publishers together at full speed."""


class RepeatTurn(NamedTuple):
    """One repeat of one part of a sweep: the piece that a run measures in one turn when runs are interleaved.

    Attributes:
        part: its number in the sweep: a client count, or a point.
        repeat: the number of the repeat, from 0.
    """

    part: int
    repeat: int


class SearchProgress(NamedTuple):
    """What the last step of a search has shown, and all steps of the search so far.

    Attributes:
        target_pct: the highest shortfall (%) of a step that passes.
        shortfall_pct: the shortfall (%) of the last step; None: not known.
        parts: what the shortfall is made of, the largest part first: %, and ``lost``, ``backlog`` or ``not sent``.
        low, high: the rates (messages/s) between which the answer is; None: no limit is known.
    """

    target_pct: float
    shortfall_pct: float | None
    parts: Sequence[tuple[float, str]]
    low: float | None
    high: float | None


class LadderProgress(NamedTuple):
    """What the last step on a ladder of rates has shown, and all steps of its series so far.

    Attributes:
        step_s: how long the step sent, in seconds.
        why: why the step is not clean; "" if it is.
        parts: the shares (%) of the messages that a clean step lost or had late, above 0, and the name of each.
        low, high: the rates (messages/s) of the highest rung that is held and the lowest one that is not, by the steps
            so far; None: there is none.
    """

    step_s: float
    why: str
    parts: Sequence[tuple[float, str]]
    low: float | None
    high: float | None


class Sweep(Protocol):
    """A replayable decision: the same results always lead to the same next step, so a run can be resumed."""

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """The step after these results, in the order in which they were measured; None when the sweep is done.

        Raises:
            ValueError: the results are not those of this sweep.
        """

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """The table so far; a row that is still being measured has the status ``partial``."""

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """Epochs of the failed steps that a resumed run leaves out, so their rows are measured again."""

    def steps(self) -> int | None:
        """How many steps it has if none fails; None if the results decide that."""

    def bound_s(self) -> float:
        """The most seconds that the steps may take, every drain to its limit included."""

    def expected_s(self) -> float:
        """About how many seconds the steps take when nothing is backlogged."""

    def progress(self, results: Sequence[StepResult]) -> SearchProgress | LadderProgress | None:
        """Returns what the search of the last of these results has shown; None if that step is of no such search."""
        return None

    def repeats(self, results: Sequence[StepResult]) -> list[list[Row]]:
        """For each of :meth:`rows` the rows of its repeats, in the order in which they were measured."""
        return [[row] for row in self.rows(results)]

    @property
    def turns(self) -> Sequence[RepeatTurn]:
        """All its turns in their order: every repeat of every part; empty if no row is repeated."""
        return ()

    def turn(self, results: Sequence[StepResult]) -> RepeatTurn | None:
        """The turn of the step after these results; None if there is no such step."""
        return None


class ScenarioPart:
    """An object that answers for one scenario of its kind of sweep."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._sweep = scenario.sweep


def expected_step_s(scenario: Scenario, plan: StepPlan) -> float:
    """About how many seconds the window of a step takes; a step with a number of messages ends when all are sent."""
    settings = plan.settings
    if settings.messages is None:
        return plan.duration_s
    publishers = scenario.publishers if plan.publishers is None else plan.publishers
    rate = _USUAL_RATE / publishers if settings.rate == "max" else settings.rate
    return min(plan.duration_s, settings.messages / rate)


def connecting_s(plan: StepPlan) -> float:
    """The seconds before a step in which its subscribers are due to connect, one after the other."""
    rate = plan.settings.connect_rate
    return 0.0 if rate is None or rate == "max" else plan.clients / rate


def step_bound_s(scenario: Scenario, duration_s: float | None = None) -> float:
    """The most seconds that the window and drain of a step of this length (None: the sweep's) may take."""
    duration_s = scenario.sweep.duration_s if duration_s is None else duration_s
    drain_s = scenario.drain_max_s if scenario.drain_max_s is not None else duration_s + DRAIN_SLACK_S
    return duration_s + drain_s


def apart(
    results: Sequence[StepResult], parts: Sequence[Key], part_of: Callable[[StepPlan], Key]
) -> dict[Key, list[StepResult]]:
    """The results of each part of a sweep in their order: a resumed run may measure an earlier part again.

    Raises:
        ValueError: there are results of other parts.
    """
    found: dict[Key, list[StepResult]] = {part: [] for part in parts}
    for result in results:
        if (part := part_of(result.plan)) not in found:
            raise ValueError(
                f"step {result.epoch} measured {result.plan}, which this sweep does not ask for: "
                "the results belong to another scenario"
            )
        found[part].append(result)
    return found


def by_clients(results: Sequence[StepResult], counts: Sequence[int]) -> dict[int, list[StepResult]]:
    """The results of each client count; raises the same exceptions as :func:`apart`."""
    return apart(results, counts, lambda plan: plan.clients)


def check_plan(expected: StepPlan, result: StepResult) -> None:
    """Rejects a result of another plan than the expected one.

    Raises:
        ValueError: they differ.
    """
    if result.plan != expected:
        raise ValueError(
            f"step {result.epoch} measured {result.plan}, while this sweep asks for {expected}: "
            "the results belong to another scenario"
        )


class StepPace:
    """The ratio of the time that steps of this run took to the time of steps without a backlog.

    Args:
        scenario: the scenario of the run.
        sweep: its sweep.
    """

    def __init__(self, scenario: Scenario, sweep: Sweep) -> None:
        self._scenario = scenario
        self._sweep = sweep
        self._expected_s = 0.0
        self._took_s = 0.0
        self._counted = 0
        self._spent_s = 0.0

    def took(self, plan: StepPlan, seconds: float) -> None:
        """Records the whole time of a completed step, its deployment included."""
        self._expected_s += self._usual_s(plan)
        self._took_s += seconds

    def left_s(self, results: Sequence[StepResult], plan: StepPlan) -> float:
        """About how many seconds the sweep still takes, if its other steps are as slow as the recorded ones.

        Args:
            results: all results of the sweep, including those measured before the run was resumed, and those of the
                last call.
            plan: the step that begins now.
        """
        self._spent_s += sum(self._usual_s(result.plan) for result in results[self._counted :])
        self._counted = len(results)
        ahead_s = max(self._sweep.expected_s() - self._spent_s, self._usual_s(plan))
        return ahead_s * (self._took_s / self._expected_s if self._expected_s else 1.0)

    def _usual_s(self, plan: StepPlan) -> float:
        return plan.rest_s + expected_step_s(self._scenario, plan) + QUICK_DRAIN_S
