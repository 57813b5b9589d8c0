"""The choice of the next step from the steps so far; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, Final

from hydra.measure.column import Column, SystemColumns
from hydra.model import FieldError, Scenario, SweepSpec
from hydra.sweep.interface import RepeatTurn, Row, Sweep
from hydra.sweep.kind import SweepKind, kind_of

_KINDS: Final = {
    "points": "hydra.sweep.points:PointSweep",
    "vary": "hydra.sweep.grid:GridSweep",
    "held": "hydra.sweep.held:HeldSweep",
    "search": "hydra.sweep.search:SearchSweep",
}
"""Each kind by its key, imported when a scenario has the key. A scenario's sweep is of the first kind whose key the
table ``[sweep]`` has, and a grid if it has none."""
_UNSET: Final[Mapping[str, object]] = {"points": (), "vary": {}, "held": None, "search": None}
"""The value of each key in scenarios of other kinds; None: the key is a table."""
KEYS: Final = tuple(_KINDS)
"""The keys of all kinds, in their order."""
TABLES: Final = tuple(key for key, unset in _UNSET.items() if unset is None)
"""The keys that are tables."""
_SHARED: Final = {of.name: None if of.default is MISSING else of.default for of in fields(SweepSpec)}
NAMES: Final = tuple(dict.fromkeys(("duration_s", "clients", *KEYS, *_SHARED)))
"""The names in the table ``[sweep]`` of a scenario's file, with those of all kinds."""


def kind_named(key: str) -> type[SweepKind]:
    """The kind with this key, one of ``KEYS``."""
    module, _, name = _KINDS[key].partition(":")
    kind: type[SweepKind] = getattr(import_module(module), name)
    return kind


def kinds() -> Iterator[type[SweepKind]]:
    """All kinds."""
    return map(kind_named, KEYS)


def kind_with(written: Collection[str]) -> type[SweepKind]:
    """The kind of a table ``[sweep]`` in which these keys are written."""
    return kind_named(next((key for key in KEYS if key in written), "vary"))


def kind_of_table(written: Collection[str]) -> type[SweepKind]:
    """The kind of a table ``[sweep]`` in which these keys have a value.

    Raises:
        FieldError: keys exclude each other.
    """
    kind = kind_with(written)
    others = [name for name in ("clients", *KEYS) if name in written and name not in kind.uses]
    if others:
        raise FieldError(kind.against(others, KEYS), kind.key, *others)
    return kind


def as_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a sweep, by name, with the keys of all kinds: the stored form."""
    unset = {**_SHARED, **_UNSET}
    return {**{name: unset[name] for name in NAMES}, **values}


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
