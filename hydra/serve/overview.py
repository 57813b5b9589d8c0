"""The runs of a folder with what is told of each; one that has not changed is read once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from hydra.errors import HydraError
from hydra.jupyter.run_data import load
from hydra.jupyter.summary import Number, numbers
from hydra.report.catalog import UNREADABLE, directories, entry
from hydra.serve.fingerprint import code, stamp
from hydra.serve.run_entry import Entry, Kind
from hydra.store.files import write_whole
from hydra.store.folders import DATABASE, is_experiment
from hydra.store.interleaved import is_interleaved


class Overview:
    """What is known of the runs in a folder.

    Args:
        folder: holds them.
        cache: where that is kept, so that the next server need not read them all.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder: Final = folder
        self._file: Final = cache / f"list-{sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}.json"
        self._known: dict[str, tuple[str, Entry]] = _kept(self._file)
        self._lock: Final = Lock()  # of what is known: a page is asked for by several threads

    def entries(self, within: str = "") -> list[Entry]:
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

    def _entry(self, directory: Path) -> Entry:
        name = str(directory.relative_to(self._folder))
        now = f"{stamp([directory])} {code()}"
        before = self._known.get(name)
        if before is None or before[0] != now:
            before = self._known[name] = now, _read(name, directory)
        return before[1]


def _kept(file: Path) -> dict[str, tuple[str, Entry]]:
    """What was kept; nothing where that cannot be read, or is of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[str, Entry]])
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}


def _keep(file: Path, known: Mapping[str, tuple[str, Entry]]) -> None:
    # A name that is no UTF-8 has no place in JSON, and a full disk is no reason to show no list.
    with contextlib.suppress(HydraError):
        sound = {name: each for name, each in known.items() if name.isprintable()}
        write_whole(file, msgspec.json.encode(sound).decode(), "")


def _is_folder_of_runs(folder: Path) -> bool:
    return is_experiment(folder) or is_interleaved(folder)


def _read(name: str, directory: Path) -> Entry:
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
    figures: tuple[Number, ...] = (),
) -> Entry:
    return Entry(
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


def _unreadable(name: str, told: dict[str, Any]) -> Entry:
    return _made(name, "unreadable", dict.fromkeys(told, "") | {"ended": UNREADABLE, "why": told["why"]})
