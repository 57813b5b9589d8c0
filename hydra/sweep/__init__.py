"""Which step comes next, given the steps so far; pure."""

from __future__ import annotations

from collections.abc import Mapping

from hydra.measure.column import Column
from hydra.measure.column_table import columns_of
from hydra.measure.step_columns import SystemColumns
from hydra.model import Scenario
from hydra.sweep.grid import Grid
from hydra.sweep.interface import Row, Sweep
from hydra.sweep.repetition import Repeated, Turn

__all__ = ["Grid", "Repeated", "Row", "Sweep", "Turn", "for_scenario"]


def for_scenario(scenario: Scenario, columns: Mapping[str, Column] | None = None) -> Sweep:
    """The sweep that a scenario asks for.

    Args:
        scenario: the one.
        columns: what its rows can have; None: what they have for every system.
    """
    if scenario.sweep.repeat == 1:
        return _once(scenario)
    return Repeated(scenario, _once, columns_of(scenario, SystemColumns()) if columns is None else columns)


def _once(scenario: Scenario) -> Sweep:
    if scenario.sweep.search is None:
        return Grid(scenario)
    from hydra.sweep.search import Search  # only who searches waits the half second for scipy

    return Search(scenario, scenario.sweep.search)
