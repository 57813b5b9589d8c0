"""Folders of runs: told by their files, chosen, locked, files written as a whole. Imports nothing that takes long."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from hydra.errors import HydraError, RunDirectoryError, UsageError

DATABASE: Final = "run.db"
"""Of a run."""
RECORD: Final = "experiment.json"
"""Of an experiment."""


def database(directory: Path) -> Path:
    """The database of a run.

    Raises:
        RunDirectoryError: the directory holds no run.
    """
    path = directory / DATABASE
    if not path.is_file():
        raise RunDirectoryError(f"{directory} holds no run: there is no {DATABASE}", "see the runs with `hydra runs`")
    return path


def is_experiment(folder: Path) -> bool:
    """Whether a folder is that of an experiment."""
    return (folder / RECORD).is_file()


def refuse_no_folder(folder: Path) -> None:
    """Refuses what is no folder to look for runs in.

    Raises:
        RunDirectoryError: it is none.
    """
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no folder {folder}", "name the folder that holds your runs")


def refuse_run_in(directory: Path) -> None:
    """Refuses a folder that holds a run.

    Raises:
        RunDirectoryError: it does.
    """
    if (directory / DATABASE).exists():
        raise RunDirectoryError(f"{directory} already holds a run", "choose another folder with --out")


def check_folder(out: Path) -> None:
    """Refuses a run directory that cannot be made, before anything starts.

    Raises:
        RunDirectoryError: it has no name or one that is too long, is to be in what cannot be written, or holds a run.
    """
    try:
        if not out.resolve().name:
            raise RunDirectoryError(f"{out} is no folder of its own", "choose another folder with --out")
        refuse_run_in(out)
        there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    except OSError as e:
        raise RunDirectoryError(f"{out}: {e.strerror}", "choose another folder with --out") from e
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise RunDirectoryError(f"{out}: {there} is no folder that can be written", "choose another folder with --out")


def resumed_folder(flags: Mapping[str, Any]) -> Path | None:
    """The folder that ``--resume`` names.

    Raises:
        UsageError: ``--out`` names another one.
    """
    resumed: Path | None = flags["resume"]
    if resumed is not None and flags["out"] is not None:
        raise UsageError("--resume and --out name two run directories", "leave out --out")
    return resumed


def target_folder(name: str, flags: Mapping[str, Any]) -> Path:
    """Where a command goes on or begins.

    Args:
        name: what it runs.
        flags: of ``options.run_flags``.
    """
    folder: Path | None = resumed_folder(flags) or flags["out"]
    return folder or fresh_folder(name)


def fresh_folder(name: str) -> Path:
    """Where a run of this name goes unless the user says so."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"  # local time


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps other commands from writing the run in this directory; the lock ends with the process at the latest.

    The directory itself is locked, so that no file is needed. A file system that has no locks is used without.

    Raises:
        RunDirectoryError: another command is writing it.
    """
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunDirectoryError(
                f"another command is writing the run in {directory}", "wait for its end, or choose another folder"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(folder)


T = TypeVar("T")


def write_whole(path: Path, text: str, remedy: str) -> Path:
    """Writes a file under its final name only when it is whole; returns its path.

    Raises:
        HydraError: it cannot be written; the error has this remedy.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.rename(path)
    except OSError as e:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise HydraError(f"cannot write {path}: {e.strerror or e}", remedy) from e
    return path


def json_of(value: object) -> str:
    """A record as a file of its own has it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def read_json(path: Path, kind: type[T]) -> T:
    """A record of this kind.

    Raises:
        RunDirectoryError: it cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, ValueError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "it is damaged, or of another version of Hydra") from e


NOTEBOOK: Final = "report.ipynb"
PAGE: Final = "report.html"
IMAGES: Final = "images"
"""The folder of images beside a page, unless another is named."""
