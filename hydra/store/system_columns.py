"""Columns, queues and clients of a stored scenario's system, for reports, which have the scenario only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.measure.column import Column, SystemColumns
from hydra.model import Scenario
from hydra.sweep import row_columns
from hydra.system import QueueCapacity


def added_by(scenario: Scenario) -> SystemColumns:
    """The columns that the scenario's system adds."""
    return ResolvedScenario.of(scenario).added


def columns_of(scenario: Scenario) -> dict[str, Column]:
    """See :func:`hydra.sweep.row_columns.columns_of`."""
    return ResolvedScenario.of(scenario).columns


def published_columns(scenario: Scenario) -> tuple[Column, ...]:
    """See :func:`hydra.sweep.row_columns.published_columns`."""
    return row_columns.published_columns(scenario, added_by(scenario))


def in_order(scenario: Scenario, rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """See :func:`hydra.sweep.row_columns.in_order`."""
    return row_columns.in_order(scenario, added_by(scenario), rows)


def held_by(scenario: Scenario) -> QueueCapacity | None:
    """How many messages can wait for a slow subscriber before messages are lost; None: unknown."""
    return ResolvedScenario.of(scenario).system.held(scenario)


def of_silent_groups(scenario: Scenario) -> str:
    """See :meth:`hydra.system.SystemSpec.of_silent_groups`."""
    return ResolvedScenario.of(scenario).system.of_silent_groups


def is_native(scenario: Scenario) -> bool:
    """Whether the clients are Hydra's native program."""
    return scenario.client in ResolvedScenario.of(scenario).system.natives
