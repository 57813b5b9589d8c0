"""`hydra report`: writes the report of a run. Imports nothing of Jupyter before it knows that it is there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra.errors import MissingDependencyError, UsageError
from hydra.jupyter.names import IMAGES, PAGE
from hydra.store.folders import database, is_experiment
from hydra.store.interleaved import is_interleaved

if TYPE_CHECKING:
    from hydra.analysis.comparison import Comparison

_MOST_NAMED: Final = 3
"""Runs that the name of a comparison's page names beside the first."""
NEEDED: Final = ("ipykernel", "nbclient", "nbconvert", "nbformat", "plotly")
"""Packages, as they are imported and as pip knows them."""


def write_report(run: Path, *others: Path, shared: bool = False, images: str = "") -> list[Path]:
    """Writes ``report.ipynb`` and ``report.html`` into a run directory and returns the paths of all files.

    Of several runs, or of the folder of runs that took turns, it is the page of their comparison: beside the first run,
    or into that folder.

    Args:
        run: the run directory, or the folder of an experiment or of runs that took turns; the base of a comparison.
        others: run directories to compare with it.
        shared: plotly.js is a file beside the run's folder, which all pages there share, and not a part of the page.
        images: the folder for each plot as PNG and SVG; "auto" is ``images`` beside the page, "" makes none.

    Raises:
        MissingDependencyError: packages of Jupyter, or what images need, are not installed.
        UsageError: the runs cannot be compared, or the folder for images cannot be written.
        RunDirectoryError: the directory holds no run, which is told before a second of imports.
        HydraError: it cannot be written, or the notebook failed.
    """
    require_packages()
    several = bool(others) or is_interleaved(run)
    if not several and not is_experiment(run):
        database(run)
    page = run / PAGE
    if others:
        name = "-".join(each.resolve().name for each in (run, *others[:_MOST_NAMED]))
        page = run.resolve().parent / f"compare-{name}.html"
    pictures = _images(page, images)
    if several:
        from hydra.report.run_comparison import compare_runs

        compared, _ = compare_runs([run, *others], "", ())
        return _compared(compared, page, shared=shared, pictures=pictures)
    # Imports that take a second, and an error without the packages above.
    from hydra.jupyter.rendering import render

    return render(run, shared=shared, pictures=pictures)


def _images(page: Path, images: str) -> Path | None:
    """The folder for images; errors as of :func:`write_report`."""
    if not images:
        return None
    from hydra.jupyter.images import BESIDE, refuse_images

    folder = page.parent / IMAGES if images == BESIDE else Path(images)
    refuse_images(folder)
    return folder


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
    return _compared(comparison, path)[0]


def _compared(comparison: Comparison, path: Path, *, shared: bool = False, pictures: Path | None = None) -> list[Path]:
    from hydra.jupyter.comparison_page import notebook
    from hydra.jupyter.rendering import write_page

    return write_page(notebook(comparison), path, path.parent if shared else None, pictures)


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
