"""Compares measured rows with the published table of the same experiment, with the ratio for every cell.

Pure, except :func:`published_for`, which reads the published table from ``conf/reference``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.events import value_formatting
from hydra.model import Figure, Scenario, number, setting_of, value_of
from hydra.report.figure_texts import mark_of_row
from hydra.report.reference_files import parsed, text_of
from hydra.sweep import Row, plan_of
from hydra.system import Reference
from hydra.system.experiment import ratio

Side = Literal["both", "measured", "published"]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A published table: its columns in order, and its rows."""

    reference: Reference
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class CellComparison:
    """A measured and a published figure; ``ratio`` is measured / published, None if unknown or the latter is 0."""

    measured: Figure
    published: Figure
    ratio: float | None


@dataclass(frozen=True, slots=True)
class RowComparison:
    """A row of the comparison.

    Attributes:
        key: the client count, and the settings that the experiment or the run varies.
        side: the tables that have such a row.
        cells: by column, in the published order.
        mark: the mark of the measured row; "" if there is none.
    """

    key: Mapping[str, Figure]
    side: Side
    cells: Mapping[str, CellComparison]
    mark: str = ""


def published_for(resolved: ResolvedScenario) -> PublishedTable | None:
    """The published table of the experiment that a scenario repeats; None if there is none.

    Raises:
        ConfigError: the file is missing in the installation.
    """
    scenario = resolved.scenario
    reference = None if plan_of(scenario).aims is None else resolved.system.published.reference(scenario)
    if reference is None:
        return None
    return parse(reference, text_of(reference.file))


def parse(reference: Reference, text: str) -> PublishedTable:
    """A published table from its CSV text."""
    return PublishedTable(reference, *parsed(text))


def compare(rows: Sequence[Row], published: PublishedTable, varied: Iterable[str] = ()) -> list[RowComparison]:
    """Compares every measured and every published row, in ascending order of the client count.

    Args:
        rows: measured rows; rows without a published counterpart are kept.
        published: the published table; its rows that were not measured are kept, too.
        varied: settings that the run varies; they are part of a line's key even if published rows do not have them.
    """
    keys = published.reference.keys
    names = tuple(dict.fromkeys((*keys, *varied)))
    columns = [c for c in published.columns if c not in names]
    counterparts = {_key(row, keys): row for row in published.rows}
    found = {_key(row, keys) for row in rows}
    lines = [_line(names, columns, row, counterparts.get(_key(row, keys))) for row in rows]
    lines += [_line(names, columns, None, row) for key, row in counterparts.items() if key not in found]
    return sorted(lines, key=lambda line: [number(line.key[name]) or 0.0 for name in keys])


def _key(row: Row, keys: Iterable[str]) -> tuple[Figure, ...]:
    return tuple(row.get(key) for key in keys)


def _line(names: Iterable[str], columns: Iterable[str], measured: Row | None, published: Row | None) -> RowComparison:
    own, other = measured or {}, published or {}
    cells = {c: CellComparison(own.get(c), other.get(c), ratio(own.get(c), other.get(c))) for c in columns}
    side: Side = "both" if measured and published else "measured" if measured else "published"
    key = {name: (own or other).get(name) for name in names}
    return RowComparison(key, side, cells, mark_of_row(measured) if measured else "")


_OF_EVERY_SYSTEM: Final = ("rate", "message_size", "message_size_min", "payload")


def published_scenario(published: PublishedTable) -> ResolvedScenario:
    """The scenario that repeats the published experiment.

    Raises:
        ConfigError: the scenario's file is missing in the installation.
    """
    return resolve(published.reference.experiment, {"published": True})


def differences(scenario: Scenario, of: ResolvedScenario) -> list[str]:
    """The settings that differ from another scenario, one text each; they affect a ratio of the figures, too."""
    other = of.scenario
    pairs: dict[str, tuple[object, object]] = {
        "system": (scenario.system, other.system),
        "client": (scenario.client, scenario.client if scenario.client == "native" else other.client),
        "duration_s": (scenario.sweep.duration_s, other.sweep.duration_s),
        "publishers": (scenario.publishers, other.publishers),
    }
    same_system = scenario.system == other.system
    if not same_system:
        del pairs["client"]
    own = [each.name for each in fields(of.system.settings.step) if setting_of(each).compared] if same_system else []
    names = (*_OF_EVERY_SYSTEM, *own)
    for name in names:
        if name not in (*scenario.sweep.varied, *other.sweep.varied):
            pairs[name] = (value_of(scenario.settings, name), value_of(other.settings, name))
    own_aims, other_aims = plan_of(scenario).aims or {}, plan_of(other).aims or {}
    pairs |= {name: (own_aims[name], other_aims[name]) for name in own_aims if name in other_aims}
    return [f"{name} {_text(a)} instead of {_text(b)}" for name, (a, b) in pairs.items() if a != b]


def _text(value: object) -> str:
    return (
        value_formatting.number(value, 6)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else str(value)
    )
