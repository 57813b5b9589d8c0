"""The choice of the next step from the steps so far; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from hydra.measure.column import Column, SystemColumns
from hydra.model import FieldError, Scenario, SweepSpec
from hydra.sweep.grid import GridSweep
from hydra.sweep.held import HeldSweep
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.interface import RepeatTurn, Row, Sweep
from hydra.sweep.kind import SweepKind, kind_of
from hydra.sweep.points import PointSweep, SweepPoint
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec

KINDS: Final[tuple[type[SweepKind], ...]] = (PointSweep, GridSweep, HeldSweep, SearchSweep)
"""All kinds. A scenario's sweep is of the first kind whose key the table ``[sweep]`` has, and a grid if it has none."""


def kind_with(written: Collection[str]) -> type[SweepKind]:
    """The kind of a table ``[sweep]`` in which these keys are written."""
    return next((kind for kind in KINDS if kind.key in written), GridSweep)


def kind_of_table(written: Collection[str]) -> type[SweepKind]:
    """The kind of a table ``[sweep]`` in which these keys have a value.

    Raises:
        FieldError: keys exclude each other.
    """
    kind, keys = kind_with(written), [each.key for each in KINDS]
    others = [name for name in ("clients", *keys) if name in written and name not in kind.uses]
    if others:
        raise FieldError(kind.against(others, keys), kind.key, *others)
    return kind


_SHARED: Final = {each.name: each for each in fields(SweepSpec)}
_OWN: Final = {each.name: each for kind in KINDS for each in fields(kind) if each.name == kind.key}
TABLE: Final[Mapping[str, Field[Any]]] = {
    **{name: _SHARED[name] for name in ("duration_s", "clients")},
    **{kind.key: _OWN[kind.key] for kind in KINDS},
    **_SHARED,
}
"""The fields of the table ``[sweep]`` of a scenario's file, with those of all kinds."""


def as_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a sweep, by name, with the keys of all kinds: the stored form."""
    unset: dict[str, Any] = {
        name: {} if of.default_factory is dict else None if of.default is MISSING else of.default
        for name, of in TABLE.items()
    }
    return {**unset, **values}


def for_scenario(scenario: Scenario, columns: Mapping[str, Column] | None = None) -> Sweep:
    """The sweep of a scenario.

    Args:
        scenario: the scenario.
        columns: the columns that its rows can have; None: the columns that all systems share.
    """
    if scenario.sweep.repeat == 1:
        return kind_of(scenario).begin(scenario)
    from hydra.sweep.repetition import RepeatedSweep  # slow to import (numpy); a rejected scenario does without
    from hydra.sweep.row_columns import columns_of

    return RepeatedSweep(scenario, columns_of(scenario, SystemColumns()) if columns is None else columns)
