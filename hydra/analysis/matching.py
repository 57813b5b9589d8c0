"""Which rows of runs have the same settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.analysis.compared_runs import Row, Side, SideRow
from hydra.errors import UsageError
from hydra.measure.column_names import CLIENTS, PAYLOAD, POINT, PUBLISHERS
from hydra.model import Figure

_WORKLOAD: Final = (
    *(POINT, CLIENTS, PUBLISHERS, "rate", "message_size", "message_size_min"),
    *(PAYLOAD, "payload_ratio", "payload_file", "messages"),
)
"""What a row asks of any system: rows that differ in one of these are never the same row. A setting that differs
beside these and what runs vary is what is compared."""

Key = tuple[tuple[str, Figure], ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """A row that all sides have.

    Attributes:
        name: what tells it from the others.
        settings: what all sides have in common of it.
        rows: of each side, in their order.
    """

    name: str
    settings: Row
    rows: Sequence[SideRow]


@dataclass(frozen=True, slots=True)
class Matching:
    """Rows that all sides have, and by a side's name those that not all have."""

    rows: Sequence[Matched]
    unmatched: Mapping[str, Sequence[str]]


def match(sides: Sequence[Side]) -> Matching:
    """Lays the rows of runs beside each other.

    Args:
        sides: two or more.

    Raises:
        UsageError: the runs measured different systems or searched for different things, or have no row in common.
    """
    base = sides[0]
    for side in sides[1:]:
        if side.system != base.system:
            raise UsageError(
                f"{base.name} measured {base.system} and {side.name} {side.system}: their rows are not the same",
                "compare runs of one system",
            )
        if side.searches != base.searches:
            told = [f"{each.name} {each.searches or 'searches for nothing'}" for each in (base, side)]
            raise UsageError(f"these are different experiments: {', '.join(told)}", "compare runs of one kind")
    names = tuple(dict.fromkeys((*_WORKLOAD, *(name for side in sides for name in side.varied))))
    found = [{_key(row, names): row for row in side.rows} for side in sides]
    common = [key for key in found[0] if all(key in rows for rows in found)]
    every = [key for rows in found for key in rows]
    if not common:
        raise UsageError(f"no row stands in all of these runs: {_why(sides, found, names)}", "measure the same rows")
    unmatched = {
        side.name: [_name(key, every) for key in rows if key not in common]
        for side, rows in zip(sides, found, strict=True)
    }
    return Matching(
        [Matched(_name(key, common), dict(key), [rows[key] for rows in found]) for key in common],
        {name: rows for name, rows in unmatched.items() if rows},
    )


def _key(row: SideRow, names: Sequence[str]) -> Key:
    return tuple((name, row.settings.get(name)) for name in names)


def _name(key: Key, every: Sequence[Key]) -> str:
    """``60 clients, msg_batch 200``: the client count, and what not all of the rows share."""
    row = dict(key)
    if row.get(POINT):
        return str(row[POINT])
    differing = [
        f"{name} {value}"
        for name, value in key
        if name != CLIENTS and value is not None and len({dict(other).get(name) for other in every}) > 1
    ]
    return ", ".join([f"{row.get(CLIENTS)} clients", *differing])


def _why(sides: Sequence[Side], found: Sequence[Mapping[Key, SideRow]], names: Sequence[str]) -> str:
    """The settings of which two runs have no value in common."""
    if empty := [side.name for side, rows in zip(sides, found, strict=True) if not rows]:
        return f"{' and '.join(empty)} has none"
    texts = []
    for name in names:
        values = [list(dict.fromkeys(dict(key).get(name) for key in rows)) for rows in found]
        if any(not set(values[0]) & set(other) for other in values[1:]):
            told = "; ".join(f"{side.name} {', '.join(map(str, its))}" for side, its in zip(sides, values, strict=True))
            texts.append(f"{name}: {told}")
    return " — ".join(texts) or "each has other combinations of settings"
