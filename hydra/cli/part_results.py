"""What a run directory tells of a part of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from hydra.config.resolved import ResolvedScenario
from hydra.measure.column_names import CLIENTS, POINT
from hydra.model import Figure, Scenario, StepResult, value_of
from hydra.store.client_rows import client_figures
from hydra.store.database import RunStore
from hydra.sweep import Row
from hydra.system import Done, Part

_Key = TypeVar("_Key", int, str)


def done_of(part: Part, resolved: ResolvedScenario, store: RunStore) -> Done:
    """A part with its rows and what its clients and servers did in each.

    Args:
        part: what was asked for.
        resolved: what was run.
        store: the run's.
    """
    results = store.results()
    scenario, rows = resolved.scenario, resolved.sweep.rows(results)
    steps = steps_of_rows(scenario, rows, results)
    return Done(
        part,
        scenario,
        rows,
        publishers=[_clients(of_row, store, "publisher") for of_row in steps],
        subscribers=[_clients(of_row, store, "subscriber") for of_row in steps],
        servers=[mean_of([store.servers(step.epoch) for step in of_row]) for of_row in steps],
    )


def _clients(steps: Sequence[StepResult], store: RunStore, role: str) -> list[Mapping[str, Figure]]:
    """What each client of a role did in these steps: of repeats the mean; where and when in the last one."""
    told: list[Mapping[int, Mapping[str, float]]] = []
    last: dict[int, dict[str, Figure]] = {}
    for step in steps:
        clients = [client for client in store.clients(step.epoch) if client["role"] == role]
        start_ns, _ = store.window_ns(step.epoch)
        told.append(client_figures(clients))
        last |= {c["client"]: {"agent": c["agent"], "began_ns": start_ns + (c["first_ns"] or 0)} for c in clients}
    means = mean_of(told)
    return [{**last[client], **means.get(client, {})} for client in sorted(last)]


def mean_of(repeats: Sequence[Mapping[_Key, Mapping[str, float]]]) -> dict[_Key, dict[str, Figure]]:
    """The mean of every figure over the repeats that have it, by whom it is of."""
    found: dict[_Key, dict[str, list[float]]] = {}
    for repeat in repeats:
        for whose, figures in repeat.items():
            for name, value in figures.items():
                found.setdefault(whose, {}).setdefault(name, []).append(value)
    return {whose: {name: fmean(values) for name, values in of.items()} for whose, of in found.items()}


def steps_of_rows(scenario: Scenario, rows: Sequence[Row], results: Sequence[StepResult]) -> list[list[StepResult]]:
    """The measured steps that each row was made of: one, or one for each repeat."""
    varied = scenario.sweep.varied
    steps: dict[tuple[Figure, ...], list[StepResult]] = {}
    for result in results:
        plan = result.plan
        key = (plan.point or None, plan.clients, *(value_of(plan.settings, name) for name in varied))
        if result.status == "ok":
            steps.setdefault(key, []).append(result)
    return [steps.get((row.get(POINT), row.get(CLIENTS), *(row.get(name) for name in varied)), []) for row in rows]
