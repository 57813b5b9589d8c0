"""Folders of runs: recognises, chooses and locks them, and writes complete files. Imports nothing that is slow."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, TypeVar

import msgspec

from hydra.errors import HydraError, RunDirectoryError, UsageError

DATABASE: Final = "run.db"
"""The file that marks the folder of a run."""
RECORD: Final = "experiment.json"
"""The file that marks the folder of an experiment."""


def database(directory: Path) -> Path:
    """The database of a run.

    Raises:
        RunDirectoryError: the directory holds no run.
    """
    path = directory / DATABASE
    if path.exists() and not path.is_file():
        raise RunDirectoryError(f"{directory} holds no run: {DATABASE} is no file", "see the runs with `hydra runs`")
    if not path.is_file():
        raise RunDirectoryError(f"{directory} holds no run: there is no {DATABASE}", "see the runs with `hydra runs`")
    return path


def is_experiment(folder: Path) -> bool:
    """Whether a folder holds an experiment."""
    return (folder / RECORD).is_file()


def refuse_no_folder(folder: Path) -> None:
    """Rejects a path that is no folder.

    Raises:
        RunDirectoryError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no folder {folder}", "name the folder that holds your runs")


def refuse_run_in(directory: Path) -> None:
    """Rejects a folder that holds a run.

    Raises:
        RunDirectoryError: the folder holds a run.
    """
    if (directory / DATABASE).exists():
        raise RunDirectoryError(f"{directory} already holds a run", "choose another folder with --out")


def check_folder(out: Path) -> None:
    """Rejects a run directory that cannot be made, before anything starts.

    Raises:
        RunDirectoryError: its name is missing or too long, its parent cannot be written, or it holds a run.
    """
    try:
        # Path.resolve() has an error of its own for links that form a loop.
        if not Path(os.path.realpath(out)).name:
            raise RunDirectoryError(f"{out} is no folder of its own", "choose another folder with --out")
        if out.is_symlink() and not out.is_dir():
            raise RunDirectoryError(f"{out} is a link that leads to no folder", "choose another folder with --out")
        refuse_run_in(out)
        there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    except OSError as e:
        raise RunDirectoryError(f"{out}: {e.strerror}", "choose another folder with --out") from e
    try:
        # Permissions are no proof: root has them in /proc and on a file system that is read-only.
        Path(mkdtemp(prefix=".hydra-", dir=there)).rmdir()
    except OSError as e:
        raise RunDirectoryError(
            f"{out}: {there} is no folder that can be written ({e.strerror})", "choose another folder with --out"
        ) from e


def refuse_unwritable(file: Path, flag: str) -> None:
    """Refuses a file that cannot be written, before the work is done that it will hold.

    Raises:
        UsageError: its folder does not exist or cannot be written, or the file itself.
    """
    if not file.parent.is_dir():
        raise UsageError(f"{flag} {file}: there is no folder {file.parent}", "name a file in a folder that exists")
    if file.is_dir():
        raise UsageError(f"{flag} {file}: it is a folder", "name a file")
    if file.exists() and not file.is_file():  # a new file would replace a device
        raise UsageError(f"{flag} {file}: it is no regular file", "name another file")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {file}: the folder {file.parent} cannot be written", "name a file in another folder")


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
    """The folder in which a command starts or continues.

    Args:
        name: name of the scenario or experiment.
        flags: the values of ``options.run_flags``.
    """
    folder: Path | None = resumed_folder(flags) or flags["out"]
    return folder or fresh_folder(name)


def fresh_folder(name: str) -> Path:
    """The default folder for a new run of this name."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"  # local time


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Prevents other commands from writing the run in this directory; the lock ends with the process at the latest.

    The directory itself is locked, so no lock file is needed. On a file system without locks nothing is locked.

    Raises:
        RunDirectoryError: another command is writing the run.
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
    """Writes a file, which gets its final name only when it is complete; returns its path.

    A link stays, and what it leads to is replaced.

    Raises:
        HydraError: the file cannot be written; the error has this remedy.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.rename(target)
    except OSError as e:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise HydraError(f"cannot write {path}: {e.strerror or e}", remedy) from e
    return path


def json_of(value: object) -> str:
    """A record as the text of a JSON file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def read_json(path: Path, kind: type[T]) -> T:
    """Reads a record of this kind from a JSON file.

    Raises:
        RunDirectoryError: the file cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, ValueError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "it is damaged, or of another version of Hydra") from e


ROWS: Final = "rows.json"
NOTEBOOK: Final = "report.ipynb"
PAGE: Final = "report.html"
IMAGES: Final = "images"
"""The default folder for the images of a page, next to the page."""
