"""Which step comes next, given the steps so far; pure."""

from __future__ import annotations

from hydra.model import Scenario
from hydra.sweep.grid import Grid
from hydra.sweep.repeated import Repeated
from hydra.sweep.sweep import Row, Sweep

__all__ = ["Grid", "Repeated", "Row", "Sweep", "for_scenario"]


def for_scenario(scenario: Scenario) -> Sweep:
    """The sweep that a scenario asks for."""
    return Repeated(scenario, _once) if scenario.sweep.repeat > 1 else _once(scenario)


def _once(scenario: Scenario) -> Sweep:
    if scenario.sweep.search is None:
        return Grid(scenario)
    from hydra.sweep.search import Search  # only who searches waits the half second for scipy

    return Search(scenario, scenario.sweep.search)
