"""What a run directory tells of a part of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hydra.columns.names import CLIENTS
from hydra.model import Figure, Scenario, StepResult
from hydra.results.registered import sweep_of
from hydra.results.store import RunStore
from hydra.sweep import Row, Sweep
from hydra.system import Done, Part

POINT: Final = "point"
_SHOWN: Final = ("agent", "messages", "bytes")
"""What is told of every client beside the figures of its role."""


def done_of(part: Part, scenario: Scenario, store: RunStore) -> Done:
    """A part with its rows and what its clients and servers did in each.

    Args:
        part: what was asked for.
        scenario: what was run.
        store: the run's.
    """
    results = store.results()
    sweep = sweep_of(scenario)
    rows = sweep.rows(results)
    steps = steps_of_rows(scenario, sweep, rows, results)
    clients = [[client for result in of_row for client in store.clients(result.epoch)] for of_row in steps]
    return Done(
        part,
        scenario,
        rows,
        publishers=[[_figures(c) for c in of_row if c["role"] == "publisher"] for of_row in clients],
        subscribers=[[_figures(c) for c in of_row if c["role"] == "subscriber"] for of_row in clients],
    )


def _figures(client: Mapping[str, Any]) -> dict[str, Figure]:
    told = {name: client[name] for name in _SHOWN}
    return told | {k: v for k, v in client["more"].items() if isinstance(v, int | float | str)}


def steps_of_rows(
    scenario: Scenario, sweep: Sweep, rows: Sequence[Row], results: Sequence[StepResult]
) -> list[list[StepResult]]:
    """The measured steps that each row was made of: one, or one for each repeat."""
    # Figures change with repeats, what was asked for does not.
    names = (POINT, CLIENTS, *scenario.sweep.vary)
    places = {tuple(row.get(name) for name in names): index for index, row in enumerate(rows)}
    steps: list[list[StepResult]] = [[] for _ in rows]
    before: list[Row] = []
    for count, result in enumerate(results, 1):
        after = sweep.rows(results[:count])
        # A step changes the row that it belongs to, and no other one before it.
        changed = next((row for row in after if row not in before), None)
        before = after
        if result.status == "ok" and changed is not None:
            steps[places[tuple(changed.get(name) for name in names)]].append(result)
    return steps
