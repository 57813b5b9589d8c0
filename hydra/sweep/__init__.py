"""The choice of the next step from the steps so far; pure."""

from __future__ import annotations

from collections.abc import Mapping

from hydra.measure.column import Column, SystemColumns
from hydra.model import Scenario
from hydra.sweep.interface import RepeatTurn, Row, Sweep
from hydra.sweep.kind import (
    KEYS,
    NAMES,
    TABLES,
    SweepKind,
    as_table,
    columns_of,
    kind_named,
    kind_of,
    kind_of_table,
    kind_with,
    kinds,
    plan_of,
    rows_of,
    steps_of,
    texts_of,
)


def for_scenario(scenario: Scenario, columns: Mapping[str, Column] | None = None) -> Sweep:
    """The sweep of a scenario.

    Args:
        scenario: the scenario.
        columns: the columns that its rows can have; None: the columns that all systems share.
    """
    if scenario.sweep.repeat == 1:
        return plan_of(scenario).begin()
    from hydra.sweep.repetition import RepeatedSweep  # slow to import (numpy); a rejected scenario does without

    return RepeatedSweep(scenario, columns_of(scenario, SystemColumns()) if columns is None else columns)
