"""What is compared: runs as rows of repeats, which rows are the same, what else differs; and in which turn. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from hydra.errors import UsageError
from hydra.measure.column import Column
from hydra.measure.column_names import CLIENTS, PAYLOAD, POINT, PUBLISHERS
from hydra.model import Figure

Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class RowRepeat:
    """One repeat of a row: one sample.

    Attributes:
        figures: by column; empty where it could not be measured.
        below: latencies that are shorter than the clocks can tell.
        problem: why it was not measured; "": it was.
        passed_over: whether that is because somebody passed it over, or the run ended before: it did not fail.
    """

    figures: Row
    below: frozenset[str] = frozenset()
    problem: str = ""
    passed_over: bool = False

    @property
    def failed(self) -> bool:
        """Whether it could not be measured: there is no worse one."""
        return bool(self.problem) and not self.passed_over


@dataclass(frozen=True, slots=True)
class RowSlice:
    """A part of a step, a second or longer: drawn, and never a sample.

    Attributes:
        at_s: its begin, since the start of the step.
        received_pps: copies that all subscribers received, a second.
        p99_us: of their latency; None where nothing arrived.
    """

    at_s: float
    received_pps: float
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of a run.

    Attributes:
        settings: all that it was measured with, by name: client count, rate, and every other setting.
        repeats: in the order in which they were measured.
        shown: the row as the run's own table has it.
        notes: what has to be known before its figures are believed.
        slices: of each of its steps whose seconds were kept, in the order of measuring.
    """

    settings: Row
    repeats: Sequence[RowRepeat]
    shown: Row = field(default_factory=dict)
    notes: Sequence[str] = ()
    slices: Sequence[Sequence[RowSlice]] = ()


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run that is compared.

    Attributes:
        name: by which it is told from the others.
        directory: where it is.
        system: what it measured.
        searches: what it searches for, as text; "" for a run that does not.
        varied: the settings that its rows differ in.
        rows: in the order of its table.
        columns: of the figures of a repeat, by name.
        primary: the figure that such runs are usually compared by; those that follow where it is not known.
        facts: where and with what it was measured, as JSON.
    """

    name: str
    directory: str
    system: str
    rows: Sequence[ComparedRow]
    columns: Mapping[str, Column]
    searches: str = ""
    varied: Sequence[str] = ()
    primary: Sequence[str] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


_WORKLOAD: Final = (
    *(POINT, CLIENTS, PUBLISHERS, "rate", "message_size", "message_size_min"),
    *(PAYLOAD, "payload_ratio", "payload_file", "messages"),
)
"""What a row asks of any system: rows that differ in one of these are never the same row. A setting that differs
beside these and what runs vary is what is compared."""

Key = tuple[tuple[str, Figure], ...]


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row that all sides have.

    Attributes:
        name: what tells it from the others.
        settings: what all sides have in common of it.
        rows: of each side, in their order.
    """

    name: str
    settings: Row
    rows: Sequence[ComparedRow]


@dataclass(frozen=True, slots=True)
class RowMatching:
    """Rows that all sides have, and by a side's name those that not all have."""

    rows: Sequence[MatchedRow]
    unmatched: Mapping[str, Sequence[str]]


def match(sides: Sequence[ComparedRun]) -> RowMatching:
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
    return RowMatching(
        [MatchedRow(_name(key, common), dict(key), [rows[key] for rows in found]) for key in common],
        {name: rows for name, rows in unmatched.items() if rows},
    )


def _key(row: ComparedRow, names: Sequence[str]) -> Key:
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


def _why(sides: Sequence[ComparedRun], found: Sequence[Mapping[Key, ComparedRow]], names: Sequence[str]) -> str:
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


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """A fact that is not the same in all runs: its dotted key, and the value in each run as text, "" where unknown."""

    what: str
    values: tuple[str, ...]


def differences(facts: Sequence[Mapping[str, object]]) -> list[EnvironmentDifference]:
    """Every fact that differs, in the order of the runs' own.

    Args:
        facts: of each run, as JSON has them: tables in tables.
    """
    flat = [dict(_flat(of_run)) for of_run in facts]
    keys = dict.fromkeys(key for of_run in flat for key in of_run)
    values = {key: tuple(of_run.get(key, "") for of_run in flat) for key in keys}
    return [EnvironmentDifference(key, found) for key, found in values.items() if len(set(found)) > 1]


def _flat(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        if value and all(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value):
                yield from _flat(each, f"{key}.{index}")
        else:
            yield key, ", ".join(map(str, value))
    elif value is not None:
        yield key, str(value)


def orders(alternatives: int, blocks: int, seed: int) -> list[tuple[int, ...]]:
    """Who is measured when: for each block every alternative once, by its number.

    As many blocks in a row as there are alternatives are the rotations of one random order, in random order: each
    alternative stands in each place as often as the others, so that what the first of a block suffers everybody
    suffers, and no order keeps time with anything that happens regularly.

    Args:
        alternatives: how many.
        blocks: how many.
        seed: of the randomness.
    """
    random = Random(seed)  # noqa: S311  # nothing here is secret
    found: list[tuple[int, ...]] = []
    while len(found) < blocks:
        first = random.sample(range(alternatives), alternatives)
        rotations = [tuple(first[turn:] + first[:turn]) for turn in range(alternatives)]
        found += random.sample(rotations, alternatives)
    return found[:blocks]
