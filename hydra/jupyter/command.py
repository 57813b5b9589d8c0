"""`hydra report`: writes the report of a run. Imports the code for plots only after it has found a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra.store.interleaved_record import is_interleaved
from hydra.store.run_folders import IMAGES, PAGE, database, is_experiment

if TYPE_CHECKING:
    from hydra.analysis.comparison import Comparison

_MOST_NAMED: Final = 3
"""The maximum number of runs, after the first one, in the name of a comparison's page."""


def write_report(run: Path, *others: Path, shared: bool = False, images: str = "") -> list[Path]:
    """Writes ``report.ipynb`` and ``report.html`` into a run directory and returns the paths of all files.

    For several runs it writes the page of their comparison, next to the folder of the first run; for a folder of
    interleaved runs, it writes that page into the folder.

    Args:
        run: the run directory, or the folder of an experiment or of interleaved runs; the base of a comparison.
        others: run directories to compare with it.
        shared: whether plotly.js is a file next to the run's folder, which all pages there share, instead of a part of
            the page.
        images: the folder for each plot as PNG and SVG; "auto" is ``images`` next to the page, "" writes none.

    Raises:
        MissingDependencyError: what images need is not installed.
        UsageError: the runs cannot be compared, or the folder for images cannot be written.
        RunDirectoryError: the directory holds no run; this is checked before slow imports.
        HydraError: the report cannot be written.
    """
    several = bool(others) or is_interleaved(run)
    if not several and not is_experiment(run):
        database(run)
    page = run / PAGE
    if others:
        name = "-".join(each.resolve().name for each in (run, *others[:_MOST_NAMED]))
        page = run.resolve().parent / f"compare-{name}.html"
    pictures = _images(page, images)
    if several:
        from hydra.report.comparison_report import compare_runs

        compared, _ = compare_runs([run, *others], "", ())
        return _compared(compared, page, shared=shared, pictures=pictures)
    # These imports take a second.
    from hydra.jupyter.rendering import render

    return render(run, shared=shared, pictures=pictures)


def _images(page: Path, images: str) -> Path | None:
    """The folder for images; raises the same exceptions as :func:`write_report`."""
    if not images:
        return None
    from hydra.jupyter.images import NEXT_TO_PAGE, refuse_images

    folder = page.parent / IMAGES if images == NEXT_TO_PAGE else Path(images)
    refuse_images(folder)
    return folder


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Writes the page of a comparison and returns its path.

    Raises:
        HydraError: the page cannot be written.
    """
    return _compared(comparison, path)[0]


def _compared(comparison: Comparison, path: Path, *, shared: bool = False, pictures: Path | None = None) -> list[Path]:
    from hydra.jupyter.comparison_page import page as its_page
    from hydra.jupyter.rendering import write_page

    return write_page(its_page(comparison), path, path.parent if shared else None, pictures)
