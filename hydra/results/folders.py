"""What folders hold, told by their files: a run, an experiment, or runs. Imports nothing that takes long."""

from __future__ import annotations

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
