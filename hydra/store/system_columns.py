"""Columns and sweeps of a scenario, with what its system adds: the pure rooms are told here what is registered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hydra.config.plugins import system
from hydra.errors import ConfigError
from hydra.measure import column_table
from hydra.measure.column import Column
from hydra.measure.step_columns import BATCH, SystemColumns, step_columns
from hydra.model import Scenario
from hydra.sweep import Sweep, for_scenario
from hydra.system import Held


def added_by(name: str) -> SystemColumns:
    """What the system of this name has of columns.

    Raises:
        ConfigError: it is not installed, or has a column by the name of one that every system has.
    """
    spec = system(name)
    own = (*([] if spec.batch == BATCH else [spec.batch]), *spec.columns)
    if taken := {column.name for column in own} & {column.name for column in step_columns()}:
        raise ConfigError(
            f"the system {name!r} has columns by names that every system's rows have: {', '.join(sorted(taken))}",
            "rename them in its specification",
        )
    return SystemColumns(spec.batch, tuple(spec.columns))


def columns_of(scenario: Scenario) -> dict[str, Column]:
    """See :func:`hydra.measure.column_table.columns_of`."""
    return column_table.columns_of(scenario, added_by(scenario.system))


def published_columns(scenario: Scenario) -> tuple[Column, ...]:
    """See :func:`hydra.measure.column_table.published_columns`."""
    return column_table.published_columns(scenario, added_by(scenario.system))


def in_order(scenario: Scenario, rows: Iterable[Mapping[str, object]]) -> list[Column]:
    """See :func:`hydra.measure.column_table.in_order`."""
    return column_table.in_order(scenario, added_by(scenario.system), rows)


def held_by(scenario: Scenario) -> Held | None:
    """What waits for a slow subscriber before messages are lost; None: the system does not say."""
    return system(scenario.system).held(scenario)


def sweep_of(scenario: Scenario) -> Sweep:
    """The sweep that a scenario asks for."""
    return for_scenario(scenario, columns_of(scenario))
