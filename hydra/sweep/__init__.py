"""The choice of the next step from the steps so far; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, field, fields, make_dataclass
from inspect import get_annotations
from typing import Any, Final

from hydra.measure.column import Column
from hydra.measure.step_columns import SystemColumns
from hydra.model import Scenario, SweepSpec
from hydra.model.base import require
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


def of_table(table: Any) -> SweepKind:
    """The sweep that a :class:`SweepTable` describes.

    Raises:
        ValueError: the table has keys that exclude each other, or values that its kind rejects.
    """
    written, keys = [each.name for each in fields(table) if getattr(table, each.name)], [kind.key for kind in KINDS]
    kind = kind_with(written)
    others = [name for name in ("clients", *keys) if name in written and name not in kind.uses]
    require(not others, kind.against(others, keys))
    values = {each.name: getattr(table, each.name) for each in fields(kind)}
    return kind(**{name: value for name, value in values.items() if value is not None})


def as_table(sweep: SweepSpec) -> Any:
    """The :class:`SweepTable` that describes this sweep."""
    return SweepTable(**{each.name: getattr(sweep, each.name) for each in fields(sweep)})


def _field_of(kind: type[SweepKind]) -> tuple[str, Any, Any]:
    """A kind's own field in the table of all kinds; a field without a default gets None, since it may be left out."""
    own: Field[Any] = next(each for each in fields(kind) if each.name == kind.key)
    hint = get_annotations(kind, eval_str=True)[kind.key]
    if own.default_factory is not MISSING:
        return kind.key, hint, field(default_factory=own.default_factory)
    return (kind.key, hint, own.default) if own.default is not MISSING else (kind.key, hint | None, None)


def _fields() -> list[tuple[str, Any, Any]]:
    hints = get_annotations(SweepSpec, eval_str=True)
    shared = [
        (each.name, hints[each.name], field(default=each.default, metadata=each.metadata)) for each in fields(SweepSpec)
    ]
    return [*shared[:2], *map(_field_of, KINDS), *shared[2:]]


SweepTable: Final = make_dataclass("SweepSpec", _fields(), namespace={"__post_init__": of_table}, frozen=True)
"""The table ``[sweep]`` of a scenario's file, with the keys of all kinds; a run stores its sweep in this form, too."""


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
