"""The record in a folder of interleaved runs: the runs, the order of their turns, and how the measurement ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hydra.store.run_folders import json_of, read_json, write_whole

RECORD: Final = "interleaved.json"


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn: its block, the part and repeat of the sweep, the run, and when it began."""

    block: int
    part: int
    repeat: int
    side: str
    began: str


@dataclass(frozen=True, slots=True)
class InterleavedRecord:
    """The stored record of runs that were measured together; it contains no secrets.

    Attributes:
        scenario: the name of the common scenario.
        sides: for each run, by its folder, the values that it replaces in the scenario, by dotted key.
        interleaved: whether the repeats of the runs were measured in turns; otherwise one run after another.
        seed: seed of the order of turns.
        overrides: keys that the user replaced in all runs.
        command_line, began: how and when the command was started.
        ended: ``finished``, ``interrupted`` or ``failed``; "" while the command is running.
        error: why the command failed.
        turns: the turns that were begun, in order.
        scenarios: the scenario of each run, by its folder, if commands named the runs; empty: all have the same.
        commands: the command of each run likewise, without secrets.
    """

    scenario: str
    sides: dict[str, dict[str, Any]]
    interleaved: bool
    seed: int
    overrides: dict[str, Any]
    command_line: str
    began: str
    ended: str = ""
    error: str = ""
    turns: list[TurnRecord] = field(default_factory=list)
    scenarios: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)


def is_interleaved(folder: Path) -> bool:
    """Whether this is a folder of runs that were measured together."""
    return (folder / RECORD).is_file()


def read_record(folder: Path) -> InterleavedRecord:
    """Reads the record of the runs in a folder.

    Raises:
        RunDirectoryError: the record cannot be read.
    """
    return read_json(folder / RECORD, InterleavedRecord)


def write_record(folder: Path, record: InterleavedRecord) -> None:
    """Writes the record.

    Raises:
        HydraError: the folder cannot be written.
    """
    remedy = "free some space; every run keeps what it measured in its own folder"
    write_whole(folder / RECORD, json_of(record), remedy)


def folders_of(folders: Sequence[Path]) -> list[Path]:
    """Run directories; each folder of runs that were measured together is replaced by its runs."""
    return [
        run
        for folder in folders
        for run in ([folder / name for name in read_record(folder).sides] if is_interleaved(folder) else [folder])
    ]


def took_turns(runs: Sequence[Path]) -> bool:
    """Whether all these runs were interleaved with each other."""
    parents = {run.resolve().parent for run in runs}
    if len(parents) != 1 or not is_interleaved(parent := parents.pop()):
        return False
    record = read_record(parent)
    return record.interleaved and {run.resolve().name for run in runs} <= record.sides.keys()


def given_apart(runs: Sequence[Path]) -> dict[Path, dict[str, str]]:
    """The keys to which runs that were measured together gave different values, and each one's value as text."""
    parents = {run.resolve().parent for run in runs}
    if len(parents) != 1 or not is_interleaved(parent := parents.pop()):
        return {}
    sides = read_record(parent).sides
    its = {run: sides.get(run.resolve().name, {}) for run in runs}
    keys = dict.fromkeys(key for own in its.values() for key in own)
    apart = [key for key in keys if len({str(own.get(key)) for own in its.values()}) > 1]
    return {run: {key: _text(own[key]) for key in apart if key in own} for run, own in its.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
