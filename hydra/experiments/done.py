"""What a run directory tells of a part of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hydra.columns.names import CLIENTS, POINT
from hydra.model import Figure, Scenario, StepResult, value_of
from hydra.results.registered import sweep_of
from hydra.results.store import RunStore
from hydra.sweep import Row
from hydra.system import Done, Part

BEGAN: Final = "began_ns"
_SHOWN: Final = ("agent", "messages", "bytes", BEGAN)
"""What is told of every client beside the figures of its role."""


def done_of(part: Part, scenario: Scenario, store: RunStore) -> Done:
    """A part with its rows and what its clients and servers did in each.

    Args:
        part: what was asked for.
        scenario: what was run.
        store: the run's.
    """
    results = store.results()
    rows = sweep_of(scenario).rows(results)
    steps = steps_of_rows(scenario, rows, results)
    clients = [_clients(of_row, store) for of_row in steps]
    return Done(
        part,
        scenario,
        rows,
        publishers=[[_figures(c) for c in of_row if c["role"] == "publisher"] for of_row in clients],
        subscribers=[[_figures(c) for c in of_row if c["role"] == "subscriber"] for of_row in clients],
    )


def _clients(steps: Sequence[StepResult], store: RunStore) -> list[dict[str, Any]]:
    """The clients of these steps, each with the time (ns since 1970) at which its data began."""
    found = []
    for step in steps:
        start_ns, _ = store.window_ns(step.epoch)
        found += [{**c, BEGAN: start_ns + (c["first_ns"] or 0)} for c in store.clients(step.epoch)]
    return found


def _figures(client: Mapping[str, Any]) -> dict[str, Figure]:
    told = {name: client[name] for name in _SHOWN}
    return told | {k: v for k, v in client["more"].items() if isinstance(v, int | float | str)}


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
