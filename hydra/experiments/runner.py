"""Runs the parts of an experiment in order; finished parts are kept, and an interrupted part is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolved_from
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, DoesNotFitError, HydraError, PlacementError
from hydra.experiments.experiment import Experiment
from hydra.measure.column import POINT
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Figure, Scenario
from hydra.report.experiment_folder import ExperimentRecord, PartRecord, write_record, write_tables
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.run_metadata import continued
from hydra.run.runner import code_of
from hydra.store.client_rows import client_figures
from hydra.store.database import ENDED_KEY, FINISHED, INTERRUPTED, RunStore
from hydra.store.run_folders import DATABASE
from hydra.sweep import Row
from hydra.system.experiment import ExperimentOptions, ExperimentPart, PartResult

_Key = TypeVar("_Key", int, str)


def done_of(part: ExperimentPart, resolved: ResolvedScenario, store: RunStore) -> PartResult:
    """The result of a part: its rows, and the figures of its clients and servers in each row.

    Args:
        part: the part as the experiment defines it.
        resolved: the scenario that was run.
        store: the store of the part's run.
    """
    results = store.results()
    scenario, rows = resolved.scenario, resolved.sweep.rows(results)
    steps = steps_of_rows(scenario, rows, results)
    return PartResult(
        part,
        scenario,
        rows,
        publishers=[_clients(of_row, store, "publisher") for of_row in steps],
        subscribers=[_clients(of_row, store, "subscriber") for of_row in steps],
        servers=[mean_of([store.servers(step.epoch) for step in of_row]) for of_row in steps],
    )


def _clients(steps: Sequence[StepResult], store: RunStore, role: str) -> list[Mapping[str, Figure]]:
    """Figures of each client of a role: their means over these steps; agent and begin are those of the last step."""
    figures: list[Mapping[int, Mapping[str, float]]] = []
    last: dict[int, dict[str, Figure]] = {}
    for step in steps:
        clients = [client for client in store.clients(step.epoch) if client["role"] == role]
        start_ns, _ = store.window_ns(step.epoch)
        figures.append(client_figures(clients))
        last |= {c["client"]: {"agent": c["agent"], "began_ns": start_ns + (c["first_ns"] or 0)} for c in clients}
    means = mean_of(figures)
    return [{**last[client], **means.get(client, {})} for client in sorted(last)]


def mean_of(repeats: Sequence[Mapping[_Key, Mapping[str, float]]]) -> dict[_Key, dict[str, Figure]]:
    """The mean of every figure of each client or server over the repeats that have this figure."""
    found: dict[_Key, dict[str, list[float]]] = {}
    for repeat in repeats:
        for whose, figures in repeat.items():
            for name, value in figures.items():
                found.setdefault(whose, {}).setdefault(name, []).append(value)
    return {whose: {name: fmean(values) for name, values in of.items()} for whose, of in found.items()}


def steps_of_rows(scenario: Scenario, rows: Sequence[Row], results: Sequence[StepResult]) -> list[list[StepResult]]:
    """The measured steps behind each row: one step, or one for each repeat."""
    varied = scenario.sweep.varied
    steps: dict[tuple[Figure, ...], list[StepResult]] = {}
    for result in results:
        plan = result.plan
        key = (plan.point or None, plan.clients, *(plan.value(name) for name in varied))
        if result.status == "ok":
            steps.setdefault(key, []).append(result)
    return [steps.get((row.get(POINT), row.get(CLIENTS), *(row.get(name) for name in varied)), []) for row in rows]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an experiment that a command asks for.

    Attributes:
        experiment: the experiment.
        order: its options.
        request: the request for all parts: the experiment's folder, and the keys that every part replaces.
    """

    experiment: Experiment
    order: ExperimentOptions
    request: RunRequest

    def run(self, record: ExperimentRecord) -> tuple[int, list[PartResult]]:
        """Runs every part that is not finished yet; returns the exit code and the results of all parts.

        Ctrl-C ends the experiment; everything that was measured is kept.

        Raises:
            HydraError: the experiment could not continue; what was measured before is in the tables.
        """
        done: list[PartResult] = []
        codes: list[int] = []
        ended, error = "failed", ""
        try:
            while (part := self.experiment.next_part(self.order, done)) is not None:
                number, parts = len(done) + 1, self.experiment.parts
                label = f"part {number} of {len(parts(self.order))}: " if parts else f"part {number}: "
                self.request.show(f"{label}{part.name}")
                code, each = self._take(part, label)
                done.append(each)
                codes.append(code)
                if code == EXIT_INTERRUPTED:
                    ended = INTERRUPTED
                    break
                self._keep(record, done)
            else:
                ended = FINISHED
        except KeyboardInterrupt:
            ended = INTERRUPTED
            codes.append(EXIT_INTERRUPTED)
        except HydraError as e:
            error = str(e)
            done += [begun] if (begun := self._begun(part)) else []
            raise
        finally:
            self._keep(dataclasses.replace(record, ended=ended, error=error), done)
        return max(codes, default=EXIT_GOOD), done

    def _keep(self, record: ExperimentRecord, done: Sequence[PartResult]) -> None:
        folder = self.request.out
        parts = [PartRecord(each.part.name, _ended(folder / each.part.name), each.reason) for each in done]
        record = dataclasses.replace(record, parts=parts)
        write_record(folder, record)
        write_tables(folder, record, self.experiment.views(self.order, done))

    def _take(self, part: ExperimentPart, label: str) -> tuple[int, PartResult]:
        """Runs or resumes a part, or reads it if it is complete; its exit code and its result."""
        folder, overrides = self.request.out / part.name, self.request.overrides
        has_results = (folder / DATABASE).is_file()
        load = partial(scenario_of, self.experiment, part)
        resolved = continued(folder, load, overrides) if has_results else load(overrides)
        if has_results and (kept := _complete(part, resolved, folder)):
            return code_of([dict(row) for row in kept.rows]), kept
        try:
            end = launcher.launch(resolved, self.request.part(part.name, label))
        except (PlacementError, DoesNotFitError) as e:
            self.request.show(f"{part.name} is skipped: {e}")
            return EXIT_INCOMPLETE, PartResult(part, resolved.scenario, (), reason=str(e))
        with RunStore.open(folder) as store:
            return end.code, done_of(part, resolved, store)

    def _begun(self, part: ExperimentPart | None) -> PartResult | None:
        """The measured rows of a part that failed; None if it measured nothing."""
        if part is None or not (self.request.out / part.name / DATABASE).is_file():
            return None
        with RunStore.open(self.request.out / part.name) as store:
            return done_of(part, scenario_of(self.experiment, part, self.request.overrides), store)


def scenario_of(experiment: Experiment, part: ExperimentPart, overrides: Mapping[str, object]) -> ResolvedScenario:
    """The scenario of a part with these keys replaced; errors as for ``resolve``."""
    return resolved_from(f"{experiment.name}, part {part.name}", part.name, part.scenario, overrides)


def _complete(part: ExperimentPart, resolved: ResolvedScenario, folder: Path) -> PartResult | None:
    """The result of a part whose rows are all measured; None if there is something left to do."""
    with RunStore.open(folder) as store:
        results = store.results()
        sweep = resolved.sweep
        if store.meta(ENDED_KEY) != FINISHED or sweep.next(results) is not None or sweep.offered_again(results):
            return None
        return done_of(part, resolved, store)


def _ended(folder: Path) -> str:
    if not (folder / DATABASE).is_file():
        return ""
    with RunStore.open(folder) as store:
        return str(store.meta(ENDED_KEY, ""))
