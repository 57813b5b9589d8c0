"""A sweep whose client counts are scripts: generators that yield a step and receive its result. Pure.

A script that has received all results but the new ones continues with these; otherwise a new script receives all
results, so the results are the only state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hydra.measure.column import FAILED_STEPS, REASON, STATUS, STEP_S
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Scenario, StepPlan
from hydra.sweep.interface import Row, Sweep, by_clients, check_plan
from hydra.sweep.step_retry import ClientCountFailedError, StepRetry

Script = Generator[StepPlan, StepResult, None]
Found = TypeVar("Found")


@dataclass
class PlayedScript(Generic[Found]):
    """The script of a client count, with the results that it has received and the step that it asks for.

    Attributes:
        row: the row so far.
        found: what the script has found so far, one for each series.
        taken: the results.
        coming: the next step; None if the script has ended.
    """

    script: Script
    row: Row
    found: list[Found]
    taken: list[StepResult]
    coming: StepPlan | None


class ScriptedSweep(Sweep, Generic[Found]):
    """One script for every client count, ascending.

    Args:
        scenario: the scenario.
        columns: the columns that every row has from its start.
    """

    def __init__(self, scenario: Scenario, columns: Iterable[str]) -> None:
        self._scenario = scenario
        self._columns = tuple(columns)
        self._clients = sorted(scenario.sweep.clients)
        self._played: dict[int, PlayedScript[Found]] = {}

    @abstractmethod
    def _measure(self, retry: StepRetry, row: Row, found: list[Found]) -> Script:
        """All steps of one client count; fills its row, and adds what each series finds to ``found``."""

    def _known(self, played: PlayedScript[Found]) -> Row:
        """What is known of the series that have begun, if the row is not complete."""
        return {}

    def _retry(self, clients: int) -> StepRetry:
        """Yields the steps of a client count with their retries."""
        return StepRetry(self._scenario, clients)

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return next((p.coming for p in self._play(results) if p.coming is not None), None)

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return [p.row | self._known(p) for p in self._play(results)]

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """See :class:`hydra.sweep.interface.Sweep`: the step after which the row was given up."""
        return {p.taken[-1].epoch for p in self._play(results) if p.row[STATUS] == "failed"}

    def steps(self) -> int | None:
        """See :class:`hydra.sweep.interface.Sweep`: the results decide."""
        return None

    def _play(self, results: Sequence[StepResult]) -> list[PlayedScript[Found]]:
        """The scripts of the client counts that have results, and of the first count that is not complete."""
        played: list[PlayedScript[Found]] = []
        for clients, its_results in by_clients(results, self._clients).items():
            if its_results or all(p.coming is None for p in played):
                played.append(self._play_count(clients, its_results))
        return played

    def _play_count(self, clients: int, results: Sequence[StepResult]) -> PlayedScript[Found]:
        played = self._played.get(clients)
        if (
            played is None
            or len(played.taken) > len(results)
            or any(a is not b and a != b for a, b in zip(played.taken, results, strict=False))
        ):
            # What a later count begins with may be what this one finds.
            self._played = {count: each for count, each in self._played.items() if count < clients}
            row: Row = {}
            found: list[Found] = []
            script = self._script(clients, row, found)
            played = self._played[clients] = PlayedScript(script, row, found, [], next(script))
        for result in results[len(played.taken) :]:
            if played.coming is None:
                raise ValueError("there are more results than this sweep has steps")
            check_plan(played.coming, result)
            played.taken.append(result)
            try:
                played.coming = played.script.send(result)
            except StopIteration:
                played.coming = None
        return played

    def _of_last(self, results: Sequence[StepResult]) -> PlayedScript[Found]:
        """The script of the client count of the last result."""
        return next(p for p in self._play(results) if p.row[CLIENTS] == results[-1].plan.clients)

    def _script(self, clients: int, row: Row, found: list[Found]) -> Script:
        row.update(dict.fromkeys(self._columns))
        retry = self._retry(clients)
        row.update({CLIENTS: clients, STATUS: "partial", REASON: "", STEP_S: retry.step_s})
        try:
            yield from self._measure(retry, row, found)
        except ClientCountFailedError as e:
            row |= {**e.figures.cells, STATUS: e.status, REASON: e.reason}
        else:
            row[STATUS] = "ok"
        row[FAILED_STEPS] = retry.failed
