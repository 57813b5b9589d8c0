"""What folders hold, told by their files: a run, an experiment, or runs. Imports nothing that takes long."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from hydra.errors import RunDirectoryError

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
