"""An experiment with several implementations of the clients: its parts in turn, and their rows in the same tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from hydra.errors import UsageError
from hydra.experiments.experiment import Experiment
from hydra.measure.column import TEXT, Column
from hydra.system.experiment import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

CLIENT: Final = "client"
"""The key of a scenario that names the implementation of its clients."""
_IMPLEMENTATION: Final = Column("implementation", TEXT, "what the clients are written with")


def with_alternatives(
    experiment: Experiment, overrides: Mapping[str, object]
) -> tuple[Experiment, Mapping[str, object]]:
    """The experiment and the overrides of its parts; ``client`` may name several implementations.

    Args:
        experiment: the experiment with one implementation.
        overrides: keys that are replaced in every part; ``client`` has names separated by commas.

    Raises:
        UsageError: ``client`` names an implementation twice.
    """
    names = [name.strip() for name in str(overrides.get(CLIENT, "")).split(",") if name.strip()]
    if len(names) < 2:
        return experiment, overrides
    if len(set(names)) < len(names):
        raise UsageError(f"--implementation names one twice: {','.join(names)}", "name each of them once")
    return alternatives(experiment, names), {key: value for key, value in overrides.items() if key != CLIENT}


def alternatives(experiment: Experiment, implementations: Sequence[str]) -> Experiment:
    """The experiment with each implementation in turn; every row has a column with the implementation's name."""

    def next_part(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
        nexts = ((name, experiment.next_part(order, _of(done, name))) for name in implementations)
        return next((_with(part, name) for name, part in nexts if part is not None), None)

    def parts(order: ExperimentOptions) -> Sequence[ExperimentPart]:
        known = experiment.parts(order) if experiment.parts else ()
        return [_with(part, name) for name in implementations for part in known]

    def views(order: ExperimentOptions, done: Sequence[PartResult]) -> Sequence[ExperimentTable]:
        tables: dict[str, ExperimentTable] = {}
        for name in implementations:
            for view in experiment.views(order, _of(done, name)):
                tables[view.title] = _joined(tables.get(view.title), view, name)
        return list(tables.values())

    def lines(done: Sequence[PartResult]) -> Sequence[str]:
        return [line for name in implementations for line in (f"# {name}", *experiment.lines(_of(done, name)))]

    return dataclasses.replace(
        experiment,
        takes_s=experiment.takes_s * len(implementations),
        next_part=next_part,
        views=views,
        parts=parts if experiment.parts else None,
        lines=lines,
    )


def _with(part: ExperimentPart, implementation: str) -> ExperimentPart:
    """The part with these clients; its name, and so its folder, ends with the implementation's."""
    return ExperimentPart(f"{part.name}-{implementation}", {**part.scenario, CLIENT: implementation})


def _of(done: Sequence[PartResult], implementation: str) -> list[PartResult]:
    """The results of one implementation, with the experiment's own part names."""
    end = f"-{implementation}"
    return [
        dataclasses.replace(each, part=ExperimentPart(each.part.name.removesuffix(end), each.part.scenario))
        for each in done
        if each.part.scenario[CLIENT] == implementation
    ]


def _joined(before: ExperimentTable | None, view: ExperimentTable, implementation: str) -> ExperimentTable:
    """The table with the rows of one more implementation; without a plot, which shows one implementation only."""
    first = before or ExperimentTable(view.title, [_IMPLEMENTATION], [])
    names = {column.name for column in first.columns}
    return ExperimentTable(
        view.title,
        [*first.columns, *(column for column in view.columns if column.name not in names)],
        [*first.rows, *({_IMPLEMENTATION.name: implementation, **row} for row in view.rows)],
        list(dict.fromkeys([*first.notes, *view.notes])),
    )
