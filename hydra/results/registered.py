"""Columns and sweeps of a scenario, with what its system adds: the pure rooms are told here what is registered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hydra.columns import Column, table
from hydra.columns.step import SystemColumns
from hydra.model import Scenario
from hydra.plugins import system
from hydra.sweep import Sweep, for_scenario


def added_by(name: str) -> SystemColumns:
    """What the system of this name has of columns; errors as for :func:`hydra.plugins.system`."""
    spec = system(name)
    return SystemColumns(spec.batch, tuple(spec.columns))


def columns_of(scenario: Scenario) -> dict[str, Column]:
    """See :func:`hydra.columns.table.columns_of`."""
    return table.columns_of(scenario, added_by(scenario.system))


def published_columns(scenario: Scenario) -> tuple[Column, ...]:
    """See :func:`hydra.columns.table.published_columns`."""
    return table.published_columns(scenario, added_by(scenario.system))


def in_order(scenario: Scenario, rows: Iterable[Mapping[str, object]]) -> list[Column]:
    """See :func:`hydra.columns.table.in_order`."""
    return table.in_order(scenario, added_by(scenario.system), rows)


def sweep_of(scenario: Scenario) -> Sweep:
    """The sweep that a scenario asks for."""
    return for_scenario(scenario, columns_of(scenario))
