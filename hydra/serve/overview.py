"""The runs of a folder with what is told of each; one that has not changed is read once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

import msgspec

import hydra
from hydra.errors import HydraError
from hydra.jupyter.run_data import load
from hydra.jupyter.summary import HeadlineFigure, numbers
from hydra.report.experiment_folder import TABLE
from hydra.report.run_catalog import UNREADABLE, directories, entry
from hydra.store import interleaved_record
from hydra.store.interleaved_record import is_interleaved
from hydra.store.run_folders import DATABASE, RECORD, is_experiment, write_whole

# A run that goes on writes into the second of these first.
_OF_A_RUN: Final = (DATABASE, f"{DATABASE}-wal")
_OF_SEVERAL: Final = (RECORD, TABLE, interleaved_record.RECORD)

_SOURCES: Final = (".py", ".j2", ".css")


def stamp(directories: Iterable[Path]) -> str:
    """Changes when one of the runs does, or one of the runs in it."""
    told = sha256()
    for directory in directories:
        own = [directory / name for name in (*_OF_A_RUN, *_OF_SEVERAL)]
        for path in [*own, *(part for name in _OF_A_RUN for part in sorted(directory.glob(f"*/{name}")))]:
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            # A reader leaves an empty file beside the database for a moment.
            if found.st_size:
                told.update(os.fsencode(path) + f" {found.st_mtime_ns} {found.st_size}\n".encode())
    return told.hexdigest()[:16]


@cache
def code() -> int:
    """The newest change of Hydra's own files: a page is made anew by newer code, also where the version is the same."""
    files = (path for path in Path(hydra.__file__).parent.rglob("*") if path.suffix in _SOURCES)
    return max(path.stat().st_mtime_ns for path in files)


Kind = Literal["run", "experiment", "together", "unreadable"]
"""A run, an experiment of several, runs that were measured together, or what cannot be read."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What is told of a run.

    Attributes:
        name: its path in the folder.
        kind: what it is.
        scenario, system, client: what was measured; "" where that is not one thing.
        counts: the subscriber counts, such as ``30 to 120``.
        steps, bad: how many there are (parts of an experiment, turns), and how many of these were not measured.
        numbers: the figures that its report begins with.
        began: when, as it was recorded.
        ended: ``finished``, ``interrupted``, ``failed``, ``unfinished`` or ``unreadable``.
        why: the reason, where there is one.
    """

    name: str
    kind: Kind
    scenario: str
    system: str
    client: str
    counts: str
    steps: str
    bad: str
    numbers: tuple[HeadlineFigure, ...]
    began: str
    ended: str
    why: str

    @property
    def is_comparable(self) -> bool:
        """Whether it can be chosen for a comparison: a form cannot send a name back that is no UTF-8."""
        return self.kind in ("run", "together") and self.name.isprintable()


class Overview:
    """What is known of the runs in a folder.

    Args:
        folder: holds them.
        cache: where that is kept, so that the next server need not read them all.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder: Final = folder
        self._file: Final = cache / f"list-{sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}.json"
        self._known: dict[str, tuple[str, RunEntry]] = _kept(self._file)
        self._lock: Final = Lock()  # of what is known: a page is asked for by several threads

    def entries(self, within: str = "") -> list[RunEntry]:
        """The runs in the folder, or in one of its folders, newest first."""
        folder = self._folder / within if within else self._folder
        with self._lock:
            before = dict(self._known)
            found = [self._entry(directory) for directory in directories(folder)]
            self._known = {name: each for name, each in self._known.items() if (self._folder / name).is_dir()}
            if self._known != before:
                _keep(self._file, self._known)
        return sorted(found, key=lambda entry: (entry.began, entry.name), reverse=True)

    def holds(self, run: str) -> bool:
        """Whether a name is that of something that :meth:`entries` lists, here or one folder below.

        Everything that is opened is looked up here first: a name is one of a list, and no path.
        """
        parent, _, name = run.rpartition("/")
        if parent and not (self.holds(parent) and _is_folder_of_runs(self._folder / parent)):
            return False
        folder = self._folder / parent if parent else self._folder
        return name in {directory.name for directory in directories(folder)}

    def _entry(self, directory: Path) -> RunEntry:
        name = str(directory.relative_to(self._folder))
        now = f"{stamp([directory])} {code()}"
        before = self._known.get(name)
        if before is None or before[0] != now:
            before = self._known[name] = now, _read(name, directory)
        return before[1]


def _kept(file: Path) -> dict[str, tuple[str, RunEntry]]:
    """What was kept; nothing where that cannot be read, or is of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[str, RunEntry]])
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}


def _keep(file: Path, known: Mapping[str, tuple[str, RunEntry]]) -> None:
    # A name that is no UTF-8 has no place in JSON, and a full disk is no reason to show no list.
    with contextlib.suppress(HydraError):
        sound = {name: each for name, each in known.items() if name.isprintable()}
        write_whole(file, msgspec.json.encode(sound).decode(), "")


def _is_folder_of_runs(folder: Path) -> bool:
    return is_experiment(folder) or is_interleaved(folder)


def _read(name: str, directory: Path) -> RunEntry:
    told = entry(directory)
    if told["ended"] == UNREADABLE:
        return _unreadable(name, told)
    if not (directory / DATABASE).is_file():
        return _made(name, "experiment" if is_experiment(directory) else "together", told)
    try:
        run = load(directory)
    except HydraError as e:
        return _unreadable(name, told | {"why": e.what})
    counts = [f"{count:,}" for count in run.scenario.sweep.counts]
    shown = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(counts)
    return _made(name, "run", told, run.scenario.system, shown, tuple(numbers(run)))


def _made(
    name: str,
    kind: Kind,
    told: dict[str, Any],
    system: str = "",
    counts: str = "",
    figures: tuple[HeadlineFigure, ...] = (),
) -> RunEntry:
    return RunEntry(
        name=name,
        kind=kind,
        scenario=str(told["scenario"]),
        system=system,
        client=str(told["client"]),
        counts=counts,
        steps=str(told["steps"]),
        bad=str(told["not ok"] or ""),
        numbers=figures,
        began=str(told["began"]),
        ended=str(told["ended"]),
        why=str(told["why"]),
    )


def _unreadable(name: str, told: dict[str, Any]) -> RunEntry:
    return _made(name, "unreadable", dict.fromkeys(told, "") | {"ended": UNREADABLE, "why": told["why"]})
