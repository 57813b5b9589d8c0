"""The folder of runs that took turns: who they are, in which order they were measured, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hydra.store.run_folders import json_of, read_json, write_whole

RECORD: Final = "interleaved.json"


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn: in which block, of which part and repeat of the sweep, whose, and when it began."""

    block: int
    part: int
    repeat: int
    side: str
    began: str


@dataclass(frozen=True, slots=True)
class InterleavedRecord:
    """What is kept of runs that were measured together; no secrets.

    Attributes:
        scenario: the name of what all of them measured.
        sides: the folder of each run, and what it replaces in the scenario, by dotted key.
        interleaved: whether they took turns; otherwise one was measured after the other.
        seed: of the order.
        overrides: keys that the user replaced in all of them.
        command_line, began: how and when.
        ended: ``finished``, ``interrupted`` or ``failed``; "" while it goes on.
        error: why it failed.
        turns: those that were begun, in their order.
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


def is_interleaved(folder: Path) -> bool:
    """Whether this is a folder of runs that were measured together."""
    return (folder / RECORD).is_file()


def read_record(folder: Path) -> InterleavedRecord:
    """What is kept of the runs in a folder.

    Raises:
        RunDirectoryError: it cannot be read.
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
    """The run directories that are meant: in place of a folder of runs that were measured together, these."""
    return [
        run
        for folder in folders
        for run in ([folder / name for name in read_record(folder).sides] if is_interleaved(folder) else [folder])
    ]


def took_turns(runs: Sequence[Path]) -> bool:
    """Whether all these runs took turns with each other."""
    parents = {run.resolve().parent for run in runs}
    if len(parents) != 1 or not is_interleaved(parent := parents.pop()):
        return False
    record = read_record(parent)
    return record.interleaved and {run.resolve().name for run in runs} <= record.sides.keys()
