"""`hydra report`: writes the report of a run. Imports nothing of Jupyter before it knows that it is there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra.errors import MissingDependencyError, RunDirectoryError, UsageError
from hydra.results.files import write_whole
from hydra.results.folders import database, is_experiment
from hydra.results.interleaved import is_interleaved

if TYPE_CHECKING:
    from hydra.compare.comparison import Comparison

NEEDED: Final = ("ipykernel", "nbclient", "nbconvert", "nbformat", "plotly")
"""Packages, as they are imported and as pip knows them."""


def write_report(run: Path, *, shared: bool = False) -> list[Path]:
    """Writes ``report.ipynb`` and ``report.html`` into a run directory and returns their paths.

    ``shared`` is told of in ``rendering.render``.

    Raises:
        MissingDependencyError: packages of Jupyter are not installed.
        RunDirectoryError: the directory holds no run, or several, which is told before a second of imports.
        HydraError: it cannot be written, or the notebook failed.
    """
    require_packages()
    if is_interleaved(run):
        raise RunDirectoryError(
            f"{run} holds several runs", "name one of them, or lay them together: hydra compare --html"
        )
    if not is_experiment(run):
        database(run)
    # Imports that take a second, and an error without the packages above.
    from hydra.jupyter.rendering import render

    return render(run, shared=shared)


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Writes the page of a comparison and returns its path.

    Raises:
        MissingDependencyError: packages of Jupyter are not installed.
        UsageError: there is no such folder.
        HydraError: it cannot be written.
    """
    require_packages()
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}", "name a file in a folder that exists")
    from hydra.jupyter.comparing import notebook
    from hydra.jupyter.rendering import page

    return write_whole(path, page(notebook(comparison)), "free some space, or name another place")


def require_packages() -> None:
    """Refuses to begin where packages of Jupyter are missing.

    Raises:
        MissingDependencyError: some are not installed.
    """
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise MissingDependencyError(
            f"a report needs packages that are not installed: {', '.join(missing)}",
            f"pip install {' '.join(missing)}",
        )
