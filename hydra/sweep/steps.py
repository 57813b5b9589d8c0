"""The steps that plots and tables show beside the rows of a scenario: the base of the fourth of a kind's objects. Pure.

The methods here suit kinds whose rows are single steps at given settings; other kinds override them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from hydra.measure.column import POINT, REPEATS
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Figure
from hydra.sweep.interface import Row, RowName, ScenarioPart

Noted = TypeVar("Noted")


class FoundRate(NamedTuple):
    """A rate within the target with the ends of its bar (messages/s), its own settings, and a text about it."""

    low: float
    rate: float
    high: float
    settings: Mapping[str, Figure]
    text: str


class SweepSteps(ScenarioPart):
    """The steps beside the rows: those that are plotted, and those that have figures which a row has not."""

    @property
    def target(self) -> float | None:
        """The shortfall (a fraction) around which steps are tried; None: plots show rows, not steps."""
        return None

    def found(self, row: Row) -> list[FoundRate]:
        """The rates within the target that a row has."""
        return []

    def of_row(self, row: Row, results: Sequence[StepResult]) -> list[StepResult]:
        """The steps of a row, oldest first; several if the row was repeated."""
        found = [
            result
            for result in results
            if result.status == "ok"
            and (result.plan.clients, result.plan.point) == (row.get(CLIENTS), row.get(POINT) or "")
            and all(result.plan.value(name) == row.get(name) for name in self._sweep.varied)
        ]
        return found if REPEATS in row else found[-1:]

    def shown_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: RowName
    ) -> list[tuple[str, list[StepResult]]]:
        """The steps that are plotted one by one, each with its label: here the steps of every row."""
        return [(name(row), steps) for row in rows if (steps := self.of_row(row, results))]

    def with_latency(
        self, rows: Sequence[tuple[Row, Noted]], results: Sequence[StepResult], nothing: Noted
    ) -> Sequence[tuple[Row, Noted]]:
        """The rows that have latencies.

        Args:
            rows: the rows of the table, with their notes.
            results: the steps.
            nothing: the note of a step that is no row.
        """
        return rows

    def latency_row(self, row: Row, results: Sequence[StepResult]) -> Row:
        """The figures with the latencies that a table shows for a row: the row's own.

        Args:
            row: of the table.
            results: the steps.
        """
        return row

    def lossy_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: RowName, most: int
    ) -> tuple[list[tuple[str, StepResult]], int]:
        """The steps whose losses are plotted by subscriber, and the position of the one shown in detail.

        The plotted steps are the last step of each row; the step that lost most is shown in detail.

        Args:
            rows: the rows of the table.
            results: the steps.
            name: gives the name of a row.
            most: how many are plotted at most: those that lost most.
        """
        found = [(label, steps[-1]) for label, steps in self.shown_steps(rows, results, name)]
        found = sorted(found, key=lambda each: -lost_pct(each[1]))[:most] if len(found) > most else found
        at = max(range(len(found)), key=lambda n: (lost_pct(found[n][1]), found[n][1].plan.clients), default=0)
        return found, at

    def at_full_load(self, results: Sequence[StepResult]) -> list[StepResult]:
        """The measured steps at the highest load."""
        return list(results)


def lost_pct(step: StepResult) -> float:
    """The loss of a step in percent; 0 if it is not known."""
    return step.figures.totals.client_loss_pct or 0.0


def rate_of(result: StepResult) -> float:
    """The rate in the plan of a step, in messages/s; infinite for ``max``."""
    rate = result.plan.settings.rate
    return math.inf if rate == "max" else rate
