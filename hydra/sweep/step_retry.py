"""Retries of steps that could not be measured: how many, and those of a search. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from math import inf
from typing import Final

from hydra.events.value_formatting import counted
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Cohort, Scenario, Settings, StepPlan
from hydra.sweep.search_spec import SearchSeries

FAILURES_IN_A_ROW: Final = 3
"""Failed steps in a row after which a client count is given up, since other rates would fail, too. If some subscribers
are dead or silent in this number of steps in a row, the rate is the cause; such steps at that rate or more count."""
MOST_FAILURES: Final = 10
"""Failed steps of one client count, for reasons other than its rate, after which it is given up."""

Steps = Generator[StepPlan, StepResult, StepResult]


class ClientCountFailedError(Exception):
    """The current client count cannot be measured.

    Attributes:
        status: the status of its row, ``skipped`` or ``failed``.
        reason: the reason of its row.
        figures: the figures of the step that was skipped.
    """

    def __init__(self, status: str, reason: str, figures: StepFigures | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.figures = figures or StepFigures()


class StepRetry:
    """Yields the steps of one client count with their retries, and counts the failed ones.

    Args:
        scenario: the scenario.
        clients: the number of subscribers of a step.
        problem_of: why a result is no evidence about its rate; "" if it is.

    Attributes:
        failed: the number of steps that could not be measured and were retried.
        step_s: the length of a step in seconds.
        clients: the number of subscribers of a step.
    """

    def __init__(self, scenario: Scenario, clients: int, problem_of: Callable[[StepResult], str] | None = None) -> None:
        self._problem_of = problem_of or unmeasured
        self.failed = 0
        self.step_s = scenario.sweep.duration_s
        self.clients = clients
        self._in_a_row = 0
        self._silencing = inf
        self._explained = 0

    def step(
        self,
        settings: Settings,
        series: SearchSeries,
        rate: float,
        cohort: Cohort = Cohort(),  # noqa: B008  # frozen
        duration_s: float | None = None,
        rest_s: float = 0.0,
    ) -> Steps:
        """Yields one step until it is measured: a failure is no evidence about its rate.

        Args:
            settings: the settings of the step, except its rate.
            series: the series that the step belongs to.
            rate: the rate in messages/s.
            cohort: the cohort of its subscribers.
            duration_s: its length in seconds; None: ``step_s``.
            rest_s: the pause before it in seconds.

        Raises:
            ClientCountFailedError: it was skipped, or failed too often.
        """
        length_s = self.step_s if duration_s is None else duration_s
        paced = dataclasses.replace(settings, rate=rate)
        plan = StepPlan(self.clients, paced, length_s, series, cohort, rest_s=rest_s)
        while True:
            result = yield plan
            if result.status == "skipped":
                raise ClientCountFailedError("skipped", result.reason, result.figures)
            problem = self._problem_of(result)
            if not problem:
                self._in_a_row = 0
                return result
            self.failed += 1
            self._in_a_row += 1
            if result.status == "ok" and result.figures.passing.bursts_s is not None:
                if self._in_a_row >= FAILURES_IN_A_ROW:
                    self._silencing = min(rate, self._silencing)
                if rate >= self._silencing:
                    # This step counts; only the tries before it were retried.
                    self.failed -= 1
                    self._explained += self._in_a_row - 1
                    self._in_a_row = 0
                    return result
            if self._in_a_row >= FAILURES_IN_A_ROW:
                raise ClientCountFailedError(
                    "failed", f"{FAILURES_IN_A_ROW} steps in a row failed, the last: {problem}"
                )
            if self.failed - self._explained >= MOST_FAILURES:
                raise ClientCountFailedError("failed", f"{MOST_FAILURES} steps failed, the last: {problem}")


def unmeasured(result: StepResult) -> str:
    """Why a step is no evidence about its rate; "" if it is.

    The figures lack the messages of a subscriber that is dead or silent, at whatever rate.
    """
    if result.status != "ok":
        return result.reason or "no reason was given"
    for what, count in result.figures.loss.unreported.items():
        if count:
            return f"{counted(count, 'subscriber')} {what}"
    if result.figures.passing.bursts_s is None:
        return "the number of expected messages is unknown"
    return ""
