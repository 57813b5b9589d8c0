"""The runs of a folder with a summary of each; a run is read again only if it has changed."""

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
from hydra.jupyter.run_data import table_of
from hydra.jupyter.summary import numbers
from hydra.model import RunSetup
from hydra.report.experiment_folder import TABLE
from hydra.report.run_catalog import SETUP, UNREADABLE, directories, entry, mark_of
from hydra.report.run_setup import setup_line
from hydra.store import interleaved_record
from hydra.store.interleaved_record import is_interleaved
from hydra.store.run_folders import DATABASE, RECORD, is_experiment, write_whole
from hydra.sweep.texts import HeadlineFigure

# A run that is still measured writes into the second of these files first.
_OF_A_RUN: Final = (DATABASE, f"{DATABASE}-wal")
_OF_SEVERAL: Final = (RECORD, TABLE, interleaved_record.RECORD)

_SOURCES: Final = (".py", ".j2", ".css")


def stamp(directories: Iterable[Path]) -> str:
    """A hash that changes when one of these runs, or a run inside one of them, changes."""
    digest = sha256()
    for directory in directories:
        own = [directory / name for name in (*_OF_A_RUN, *_OF_SEVERAL)]
        for path in [*own, *(part for name in _OF_A_RUN for part in sorted(directory.glob(f"*/{name}")))]:
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            # A reader of the database leaves an empty file next to it for a moment.
            if found.st_size:
                digest.update(os.fsencode(path) + f" {found.st_mtime_ns} {found.st_size}\n".encode())
    return digest.hexdigest()[:16]


@cache
def code() -> int:
    """The time of the newest change of Hydra's own files: newer code makes pages again, even in the same version."""
    files = (path for path in Path(hydra.__file__).parent.rglob("*") if path.suffix in _SOURCES)
    return max(path.stat().st_mtime_ns for path in files)


Kind = Literal["run", "experiment", "together", "unreadable"]
"""A run, an experiment of several runs, runs that were measured together, or a run that cannot be read."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The summary of a run in the list.

    Attributes:
        name: the run's path in the folder.
        kind: the kind of the run's folder.
        scenario, system, client: what was measured; "" if the folder has several.
        counts: the subscriber counts, such as ``30 to 120``.
        steps, bad: the number of steps (parts of an experiment, turns), and how many of them were not measured.
        numbers: the figures at the top of the run's report.
        began: the recorded start time.
        clean: whether all rows are clean; None: no row is known.
        disturbed: whether there was trouble on the hosts of a row; None: no row is known.
        slo: whether it kept its objectives, ``yes``, ``no`` or ``unknown``; "" without objectives.
        ended: ``finished``, ``interrupted``, ``failed``, ``unfinished`` or ``unreadable``.
        why: the reason for this end; "" if there is none.
        setup: the line about what was measured; "" if nothing is known.
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
    clean: bool | None
    disturbed: bool | None
    slo: str
    ended: str
    why: str
    setup: str

    @property
    def mark(self) -> str:
        """The mark of the run; "": it has none."""
        return mark_of(self.clean, self.disturbed, self.slo)

    @property
    def is_comparable(self) -> bool:
        """Whether the run can be chosen for a comparison; a form cannot send a name that is not UTF-8."""
        return self.kind in ("run", "together") and self.name.isprintable()


class Overview:
    """The list of the runs in a folder.

    Args:
        folder: the folder of the runs.
        cache: the folder where the list is stored, so the next server need not read all runs.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder: Final = folder
        self._file: Final = cache / f"list-{sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}.json"
        self._known: dict[str, tuple[str, RunEntry]] = _kept(self._file)
        self._lock: Final = Lock()  # guards _known: several threads request pages

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
        """Whether :meth:`entries` lists this name, in the folder or in one of its folders.

        Every opened run is looked up here first, so a name from a request is never used as a path.
        """
        parent, _, name = run.rpartition("/")
        folder = self._folder / parent if parent else self._folder
        if parent and not (self.holds(parent) and (is_experiment(folder) or is_interleaved(folder))):
            return False
        return name in {directory.name for directory in directories(folder)}

    def _entry(self, directory: Path) -> RunEntry:
        name = str(directory.relative_to(self._folder))
        now = f"{stamp([directory])} {code()}"
        before = self._known.get(name)
        if before is None or before[0] != now:
            before = self._known[name] = now, _read(name, directory)
        return before[1]


def _kept(file: Path) -> dict[str, tuple[str, RunEntry]]:
    """The stored list; {} if it cannot be read, or is of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[str, RunEntry]])
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}


def _keep(file: Path, known: Mapping[str, tuple[str, RunEntry]]) -> None:
    # JSON cannot hold names that are not UTF-8. If the disk is full, the list is shown without being stored.
    with contextlib.suppress(HydraError):
        sound = {name: each for name, each in known.items() if name.isprintable()}
        write_whole(file, msgspec.json.encode(sound).decode(), "")


def _read(name: str, directory: Path) -> RunEntry:
    entry_ = entry(directory)
    if entry_["ended"] == UNREADABLE:
        return _unreadable(name, entry_)
    if not (directory / DATABASE).is_file():
        return _made(name, "experiment" if is_experiment(directory) else "together", entry_)
    try:
        run = table_of(directory)
    except HydraError as e:
        return _unreadable(name, entry_ | {"why": e.what})
    counts = [f"{count:,}" for count in run.scenario.sweep.counts]
    shown = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(counts)
    return _made(name, "run", entry_, run.scenario.system, shown, tuple(numbers(run)))


def _made(
    name: str,
    kind: Kind,
    entry_: dict[str, Any],
    system: str = "",
    counts: str = "",
    figures: tuple[HeadlineFigure, ...] = (),
) -> RunEntry:
    return RunEntry(
        name=name,
        kind=kind,
        scenario=str(entry_["scenario"]),
        system=system,
        client=str(entry_["client"]),
        counts=counts,
        steps=str(entry_["steps"]),
        bad=str(entry_["not ok"] or ""),
        numbers=figures,
        began=str(entry_["began"]),
        clean=entry_["clean"],
        disturbed=entry_["disturbed"],
        slo=str(entry_["slo"]),
        ended=str(entry_["ended"]),
        why=str(entry_["why"]),
        setup=str(setup_line(entry_[SETUP])),
    )


def _unreadable(name: str, entry_: dict[str, Any]) -> RunEntry:
    return _made(
        name,
        "unreadable",
        dict.fromkeys(entry_, "")
        | {"clean": None, "disturbed": None, "ended": UNREADABLE, "why": entry_["why"], SETUP: RunSetup()},
    )
