"""Runs as rows of repeats: matches rows, finds other differences, and orders interleaved turns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from hydra.errors import UsageError
from hydra.events.value_formatting import counted
from hydra.measure.column import POINT, Column
from hydra.measure.passing_columns import PAYLOAD
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import PUBLISHERS, Figure, RunSetup

Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class RowRepeat:
    """One repeat of a row, which is one sample.

    Attributes:
        figures: figures by column; empty if the repeat could not be measured.
        below: names of latencies below the bound of the clocks.
        problem: why the repeat was not measured; "" if it was.
        passed_over: whether the user skipped it, or the run ended before, so it did not fail.
    """

    figures: Row
    below: frozenset[str] = frozenset()
    problem: str = ""
    passed_over: bool = False

    @property
    def failed(self) -> bool:
        """Whether the repeat failed; a failed repeat counts as the worst one."""
        return bool(self.problem) and not self.passed_over


@dataclass(frozen=True, slots=True)
class RowSlice:
    """A part of a step, a second or longer; it is only plotted, and never a sample.

    Attributes:
        at_s: begin in seconds since the start of the step.
        received_pps: copies per second that all subscribers received.
        p99_us: 99th percentile of the latency in µs; None if nothing arrived.
    """

    at_s: float
    received_pps: float
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of a run.

    Attributes:
        settings: client count, rate and all other settings by name.
        repeats: the repeats in the order of measurement.
        shown: the row in the run's own table.
        notes: the warnings of the row.
        not_clean: why the row is not clean; "" if it is.
        slices: the slices of each step whose time series was stored, in the order of measurement.
    """

    settings: Row
    repeats: Sequence[RowRepeat]
    shown: Row = field(default_factory=dict)
    notes: Sequence[str] = ()
    not_clean: str = ""
    slices: Sequence[Sequence[RowSlice]] = ()


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run that is compared.

    Attributes:
        name: a name that distinguishes it from the other runs.
        directory: the run directory.
        system: name of the measured system.
        searches: what it searches for, as text; "" if it does not search.
        varied: the settings that vary between its rows.
        rows: the rows in the order of its table.
        columns: columns of the figures of a repeat, by name.
        primary: the default primary figures, in order of preference.
        facts: facts about the measurement (hosts, versions, settings) as JSON values.
        apart: what the comparison gave to this run and not to the others, by dotted key, as text.
        guarantees: what the system acknowledges and what it keeps, as a sentence without its subject.
        setup: what the run measured.
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
    apart: Mapping[str, str] = field(default_factory=dict)
    guarantees: str = ""
    setup: RunSetup = field(default_factory=RunSetup)


_TRAFFIC: Final = ("message_sizes", "topics", "topic_skew", "topics_per_client")
_OF_ANY_SYSTEM: Final = (CLIENTS, PUBLISHERS, "rate", "message_size", *_TRAFFIC)
"""The settings in which the same rows of two systems agree: each other setting may mean something else there."""
_WORKLOAD: Final = (
    *(POINT, CLIENTS, PUBLISHERS, "rate", "message_size", "message_size_min"),
    *(PAYLOAD, "payload_ratio", "payload_file", "messages", *_TRAFFIC, "keys", "key_skew"),
)
"""The workload of a row, for any system: rows that differ in one of these columns are different rows. Other settings
that the runs do not vary may differ: their effect is what a comparison shows."""

Key = tuple[tuple[str, Figure], ...]


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row that all runs have.

    Attributes:
        name: a name that distinguishes it from the other rows.
        settings: the settings that all runs have in common in this row.
        rows: the row in each run, in the order of the runs.
    """

    name: str
    settings: Row
    rows: Sequence[ComparedRow]


@dataclass(frozen=True, slots=True)
class RowMatching:
    """The rows that all runs have, and by a run's name those that not all runs have."""

    rows: Sequence[MatchedRow]
    unmatched: Mapping[str, Sequence[str]]


def match(sides: Sequence[ComparedRun]) -> RowMatching:
    """Matches the rows of runs.

    Args:
        sides: two or more runs.

    Raises:
        UsageError: the runs searched for different things, have no row in common, or are of two systems and one has
            several rows where the other one has one.
    """
    base = sides[0]
    for side in sides[1:]:
        if side.searches != base.searches:
            searches = [f"{each.name} {each.searches or 'searches for nothing'}" for each in (base, side)]
            raise UsageError(f"these are different experiments: {', '.join(searches)}", "compare runs of one kind")
    names = key_names(sides)
    found = [{tuple((name, row.settings.get(name)) for name in names): row for row in side.rows} for side in sides]
    for side, rows in zip(sides, found, strict=True):
        if len(rows) < len(side.rows):
            raise UsageError(
                f"{side.name} has several rows with the same {', '.join(_OF_ANY_SYSTEM)}: another system has no rows "
                "that match them one by one",
                "measure it with one value of each other setting",
            )
    common = [key for key in found[0] if all(key in rows for rows in found)]
    every = [key for rows in found for key in rows]
    if not common:
        raise UsageError(f"no row is in all of these runs: {_why(sides, found, names)}", "measure the same rows")
    unmatched = {
        side.name: [_name(key, every) for key in rows if key not in common]
        for side, rows in zip(sides, found, strict=True)
    }
    return RowMatching(
        [MatchedRow(_name(key, common), dict(key), [rows[key] for rows in found]) for key in common],
        {name: rows for name, rows in unmatched.items() if rows},
    )


def key_names(sides: Sequence[ComparedRun]) -> tuple[str, ...]:
    """The settings in which the same rows of these runs agree."""
    if are_systems(sides):
        return _OF_ANY_SYSTEM
    apart = {key.rpartition(".")[2] for side in sides for key in side.apart if not key.startswith("sweep.")}
    names = dict.fromkeys((*_WORKLOAD, *(name for side in sides for name in side.varied)))
    return tuple(name for name in names if name not in apart)


def are_systems(sides: Sequence[ComparedRun]) -> bool:
    """Whether runs of several systems are compared."""
    return len({side.system for side in sides}) > 1


def _name(key: Key, every: Sequence[Key]) -> str:
    """The name of a row, such as ``60 subscribers, msg_batch 200``: the client count, and settings that differ."""
    row = dict(key)
    if row.get(POINT):
        return str(row[POINT])
    differing = [
        f"{name} {value}"
        for name, value in key
        if name != CLIENTS and value is not None and len({dict(other).get(name) for other in every}) > 1
    ]
    return ", ".join([counted(row.get(CLIENTS), "subscriber"), *differing])


def _why(sides: Sequence[ComparedRun], found: Sequence[Mapping[Key, ComparedRow]], names: Sequence[str]) -> str:
    """The settings for which two runs have no common value, as text."""
    if empty := [side.name for side, rows in zip(sides, found, strict=True) if not rows]:
        return f"{' and '.join(empty)} has none"
    texts = []
    for name in names:
        values = [list(dict.fromkeys(dict(key).get(name) for key in rows)) for rows in found]
        if any(not set(values[0]) & set(other) for other in values[1:]):
            values_text = "; ".join(
                f"{side.name} {', '.join(map(str, its))}" for side, its in zip(sides, values, strict=True)
            )
            texts.append(f"{name}: {values_text}")
    return " — ".join(texts) or "each has other combinations of settings"


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """A fact that differs between runs: its dotted key, and its value in each run as text, "" if unknown."""

    what: str
    values: tuple[str, ...]


def differences(facts: Sequence[Mapping[str, object]], *, shared_only: bool = False) -> list[EnvironmentDifference]:
    """Every fact that differs, in the order of the facts.

    Args:
        facts: the facts of each run, as nested JSON objects.
        shared_only: whether facts that only some of the runs have are left out.
    """
    flat = [dict(_flat(of_run)) for of_run in facts]
    keys = dict.fromkeys(key for of_run in flat for key in of_run)
    if shared_only:
        keys = dict.fromkeys(key for key in keys if all(key in of_run for of_run in flat))
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
    """The order of the alternatives in each block; every block has each alternative once, by its number.

    With N alternatives, each N consecutive blocks are the rotations of a random order, in random order: each
    alternative has each place equally often, so effects of a place affect all alike, and no order coincides with
    regular events on the machine.

    Args:
        alternatives: number of alternatives.
        blocks: number of blocks.
        seed: seed of the random numbers.
    """
    random = Random(seed)  # noqa: S311  # nothing here is secret
    found: list[tuple[int, ...]] = []
    while len(found) < blocks:
        first = random.sample(range(alternatives), alternatives)
        rotations = [tuple(first[turn:] + first[:turn]) for turn in range(alternatives)]
        found += random.sample(rotations, alternatives)
    return found[:blocks]
