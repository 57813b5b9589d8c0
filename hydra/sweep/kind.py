"""A kind of sweep: its part of a scenario's table ``[sweep]``, the objects that answer for its scenarios, and columns.

The columns that rows can have are known before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hydra.measure.column import (
    CLEAN,
    NOT_CLEAN_WHY,
    PER_SECOND,
    PUBLISHERS,
    REASON,
    REPEATS,
    STATUS,
    TEXT,
    Column,
    SystemColumns,
    of_repeats,
    yes_no_column,
)
from hydra.model import SKIPPED_BY, FieldError, Scenario, SweepSpec, TableKind

if TYPE_CHECKING:
    from hydra.sweep.plan import SweepPlan
    from hydra.sweep.rows import SweepRows
    from hydra.sweep.steps import SweepSteps
    from hydra.sweep.texts import SweepTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepKind:
    """One kind of sweep: that of the scenarios whose table ``[sweep]`` has its key.

    Attributes:
        spec: the dataclass of the table ``[sweep]``.
        uses: the keys of ``[sweep]`` that it allows in addition to those of all kinds.
        plan: answers for what a scenario measures, before and while it is measured.
        rows: answers for the rows of a scenario: columns, names and figures.
        texts: answers for the texts about the rows.
        steps: answers for the steps that plots and tables show beside the rows.
        own: the dataclass of its key; None if the key is no table.
        tables: the kinds of table that it can have as its result.
        flags: the dotted keys whose flags a scenario of this kind has.
        read: the value of its key in a file (TOML) → the form that the field is built from; raises RefusedError.
        excludes: the error for keys of other kinds in the same table (``{others}``), with its own key (``{key}``) and
            the keys of all other kinds (``{instead}``).
    """

    spec: type[SweepSpec]
    uses: tuple[str, ...]
    plan: Callable[[Scenario], SweepPlan]
    rows: Callable[[Scenario], SweepRows]
    texts: Callable[[Scenario], SweepTexts]
    steps: Callable[[Scenario], SweepSteps]
    own: type | None = None
    tables: tuple[TableKind, ...] = ("fixed", "batch", "connections")
    flags: tuple[str, ...] = ("settings.rate",)
    read: Callable[[Any], Any] = lambda written: written
    excludes: str = "a sweep has either {key} or {others}, not both"

    @property
    def key(self) -> str:
        """Its own field, a key of ``[sweep]``; a sweep without the key of any kind is a grid."""
        return self.spec.key


class _Registered(NamedTuple):
    """A kind that is imported when a scenario has its key.

    Attributes:
        place: the module and the name of the kind.
        unset: the value of its key in scenarios of other kinds; None: the key is a table.
    """

    place: str
    unset: object = None


_KINDS: Final = {
    "points": _Registered("hydra.sweep.points:POINTS", unset=()),
    "vary": _Registered("hydra.sweep.grid:GRID", unset={}),
    "held": _Registered("hydra.sweep.held:HELD"),
    "search": _Registered("hydra.sweep.search:SEARCH"),
}
"""Each kind by its key. A scenario's sweep is of the first kind whose key the table ``[sweep]`` has, and a grid if it
has none."""
KEYS: Final = tuple(_KINDS)
"""The keys of all kinds, in their order."""
TABLES: Final = tuple(key for key, kind in _KINDS.items() if kind.unset is None)
"""The keys that are tables."""
_SHARED: Final = {of.name: None if of.default is MISSING else of.default for of in fields(SweepSpec)}
NAMES: Final = tuple(dict.fromkeys(("duration_s", "clients", *KEYS, *_SHARED)))
"""The names in the table ``[sweep]`` of a scenario's file, with those of all kinds."""


def kind_named(key: str) -> SweepKind:
    """The kind with this key, one of ``KEYS``."""
    module, _, name = _KINDS[key].place.partition(":")
    kind: SweepKind = getattr(import_module(module), name)
    return kind


def kinds() -> Iterator[SweepKind]:
    """All kinds."""
    return map(kind_named, KEYS)


def kind_with(written: Collection[str]) -> SweepKind:
    """The kind of a table ``[sweep]`` in which these keys are written."""
    return kind_named(next((key for key in KEYS if key in written), "vary"))


def kind_of_table(written: Collection[str]) -> SweepKind:
    """The kind of a table ``[sweep]`` in which these keys have a value.

    Raises:
        FieldError: keys exclude each other.
    """
    kind = kind_with(written)
    others = [name for name in ("clients", *KEYS) if name in written and name not in kind.uses]
    if others:
        *first, last = ("clients", *(key for key in KEYS if key != kind.key))
        instead = f"{', '.join(first)} and {last}"
        text = kind.excludes.format(key=kind.key, others=" and ".join(others), instead=instead)
        raise FieldError(text, kind.key, *others)
    return kind


def kind_of(scenario: Scenario) -> SweepKind:
    """The kind of a scenario's sweep.

    Raises:
        TypeError: the sweep was made without a kind.
    """
    if not scenario.sweep.key:
        raise TypeError(f"{type(scenario.sweep).__name__} is no kind of sweep")
    return kind_named(scenario.sweep.key)


def plan_of(scenario: Scenario) -> SweepPlan:
    """What a scenario measures; raises the same exception as :func:`kind_of`."""
    return kind_of(scenario).plan(scenario)


def rows_of(scenario: Scenario) -> SweepRows:
    """The rows of a scenario; raises the same exception as :func:`kind_of`."""
    return kind_of(scenario).rows(scenario)


def texts_of(scenario: Scenario) -> SweepTexts:
    """The texts about the rows of a scenario; raises the same exception as :func:`kind_of`."""
    return kind_of(scenario).texts(scenario)


def steps_of(scenario: Scenario) -> SweepSteps:
    """The steps beside the rows of a scenario; raises the same exception as :func:`kind_of`."""
    return kind_of(scenario).steps(scenario)


def as_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a sweep, by name, with the keys of all kinds: the stored form."""
    unset = {**_SHARED, **{key: kind.unset for key, kind in _KINDS.items()}}
    return {**{name: unset[name] for name in NAMES}, **values}


_LAST: Final = (
    Column(REPEATS, "", "how often the row was measured, with `--repeat`"),
    Column(STATUS, TEXT, "`ok`, `partial` (the run ended before its last step), `failed`, or `skipped`"),
    Column(REASON, TEXT, "why the row failed or was skipped, or why it was measured a second time"),
    Column(
        SKIPPED_BY, TEXT, "`user` if the user skipped the row with the key s, although Hydra could have measured it"
    ),
    yes_no_column(CLEAN, "whether the row is clean, see *Clean rows*"),
    Column(NOT_CLEAN_WHY, TEXT, "why the row is not clean; empty for a clean row"),
)


_UNITS: Final = {"publishers": PUBLISHERS, "rate": PER_SECOND, "message_size": "bytes", "message_size_min": "bytes"}
"""Of settings that a sweep can vary, if their names do not have the unit."""


def published_columns(scenario: Scenario, system: SystemColumns) -> tuple[Column, ...]:
    """The columns of the published table of this scenario's experiment."""
    return rows_of(scenario).published(system)


def columns_of(scenario: Scenario, system: SystemColumns) -> dict[str, Column]:
    """Every column that a row of this scenario can have, by name, in the order of the table.

    The order: the published columns; varied settings; all others, each followed by those that repeats add; the status.
    """
    first, row = published_columns(scenario, system), rows_of(scenario).columns(system)
    known = {column.name: column for column in row}
    # A varied setting is chosen, not measured: repeats share it.
    varied = {name: replace(known.get(name) or _setting(name), repeats="common") for name in scenario.sweep.varied}
    others = [each for column in (*varied.values(), *row) for each in (column, *of_repeats(column))]
    columns = (*first, *others, *_LAST)
    return {column.name: varied.get(column.name, column) for column in columns}


def _setting(name: str) -> Column:
    """The column of a varied setting."""
    unit = _UNITS.get(name, "")
    return Column(name, unit, axis=f"{name}, {unit}" if unit else "")


def in_order(scenario: Scenario, system: SystemColumns, rows: Sequence[Mapping[str, object]]) -> list[Column]:
    """The published columns and all others that the rows have, in the order of the table."""
    known = columns_of(scenario, system)
    last = (STATUS, REASON, *(name for name in (CLEAN, NOT_CLEAN_WHY) if any(name in row for row in rows)))
    there = dict.fromkeys(
        [c.name for c in published_columns(scenario, system)] + [name for row in rows for name in row]
    )
    measured = [column for name, column in known.items() if name in there and name not in last]
    return [*measured, *(known[n] for n in last)]
