"""Steps that could not be measured are asked for again: how often, and those of a search as it asks for them. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping
from math import inf
from types import MappingProxyType
from typing import Final

from hydra.measure.column_names import BURSTS, GONE
from hydra.model import Cohort, Figure, Scenario, Settings, StepPlan, StepResult
from hydra.sweep.search_spec import SearchSeries

FAILURES_IN_A_ROW: Final = 3
"""Failed steps in a row after which a client count is given up: more rates will not mend what is broken. So many steps
in a row without some of their subscribers, and it is the rate that silences them: from there on such steps count."""
MOST_FAILURES: Final = 10
"""Failed steps of one client count, for reasons other than its rate, after which it is given up."""

GRID_TRIES: Final = 2
"""How often a step of a grid is tried at most."""

Steps = Generator[StepPlan, StepResult, StepResult]


class ClientCountFailedError(Exception):
    """The client count at hand cannot be measured.

    Attributes:
        status: of its row, ``skipped`` or ``failed``.
        reason: why.
        figures: of the step that says so.
    """

    def __init__(self, status: str, reason: str, figures: Mapping[str, Figure] = MappingProxyType({})) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.figures = figures


class StepRetry:
    """Asks for the steps of one client count, and counts those that failed.

    Attributes:
        failed: steps that could not be measured and were asked for again.
        step_s: length of a step in seconds.
        clients: subscribers of a step.
    """

    def __init__(self, scenario: Scenario, clients: int) -> None:
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
        """Asks for one step until it is measured: that it failed says nothing of its rate.

        Args:
            settings: of the step.
            series: that it belongs to.
            rate: messages/s.
            cohort: of its subscribers.
            duration_s: its length; None: as long as the others.
            rest_s: how long to wait before it, in seconds.

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
            problem = unmeasured(result)
            if not problem:
                self._in_a_row = 0
                return result
            self.failed += 1
            self._in_a_row += 1
            if result.status == "ok" and result.figures.get(BURSTS) is not None:
                if self._in_a_row >= FAILURES_IN_A_ROW:
                    self._silencing = min(rate, self._silencing)
                if rate >= self._silencing:
                    # It counts after all; only the tries before it were asked for again.
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
    """Why a step says nothing of its rate, "" if it does.

    A subscriber that died or fell silent is missed by the figures, whatever the rate was.
    """
    if result.status != "ok":
        return result.reason or "no reason was given"
    for column, what in GONE.items():
        if count := result.figures.get(column):
            return f"{count} subscribers {what}"
    if result.figures.get(BURSTS) is None:
        return "nobody knows what was to be expected"
    return ""
