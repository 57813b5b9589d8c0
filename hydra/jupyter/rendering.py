"""Writes ``report.ipynb`` and ``report.html`` into a run directory; the page is one file that needs no network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import plotly.io
from jinja2 import Environment, FileSystemLoader
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from hydra.errors import RunDirectoryError
from hydra.jupyter import experiment, report
from hydra.jupyter.blocks import Block, NotebookCell, Page, Plot, notebook
from hydra.jupyter.images import write_images
from hydra.store.run_folders import NOTEBOOK, PAGE, is_experiment, write_whole

LIBRARY: Final = f"plotly-{get_plotlyjs_version()}.min.js"
"""The file of plotly.js that pages share; its name has the version, so a page keeps using its own version."""
_ROOM: Final = "free some space, or move the file that is there"
_PLOT: Final[dict[str, Any]] = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}


def render(run: Path, *, shared: bool = False, pictures: Path | None = None) -> list[Path]:
    """Writes both files of a run or an experiment, each completely or not at all.

    Args:
        run: the folder.
        shared: whether plotly.js is a file next to the run's folder, which all pages there share, instead of a part of
            the page.
        pictures: the folder for images of all plots; None: no images.

    Raises:
        RunDirectoryError: the directory holds neither.
        HydraError: a file cannot be written.
    """
    _refuse_unwritable(run)
    title, cells = cells_of(run)
    written = write_whole(run / NOTEBOOK, notebook(title, cells), _ROOM)
    return [written, *write_page(page_of(title, cells), run / PAGE, run.resolve().parent if shared else None, pictures)]


def write_page(page: Page, path: Path, shared: Path | None, pictures: Path | None) -> list[Path]:
    """Writes a page, and images of its plots; returns the paths, that of the page first.

    Args:
        page: the page.
        path: the path of its file.
        shared: the folder of the shared plotly.js: that of the page or its parent; None: plotly.js is part of the page.
        pictures: see :func:`render`.

    Raises:
        HydraError: a file cannot be written, or a plot cannot be drawn.
    """
    library = ""
    if shared is not None:
        library = LIBRARY if shared == path.resolve().parent else f"../{LIBRARY}"
        if not (shared / LIBRARY).exists():
            write_whole(shared / LIBRARY, get_plotlyjs(), _ROOM)
    written = [write_whole(path, html(page, library), _ROOM)]
    return written if pictures is None else [*written, *write_images(page.plots, pictures)]


def cells_of(run: Path) -> tuple[str, list[NotebookCell]]:
    """The title of the report of a run or an experiment, and the cells of its notebook.

    Raises:
        RunDirectoryError: the directory holds neither.
    """
    if is_experiment(run):
        found = experiment.load(run)
        return f"Hydra: {found.record.experiment}", list(experiment.REPORT.cells(found))
    loaded = report.load(run)
    return f"Hydra: {loaded.metadata.get('name', run.name)}", list(report.REPORT.cells(loaded))


def page_of(title: str, cells: list[NotebookCell]) -> Page:
    """The page of what cells show, without their code."""
    return Page(title, [block for cell in cells for block in cell.blocks])


def html(page: Page, library: str = "", nonce: str = "") -> str:
    """A page as HTML.

    Args:
        page: the page.
        library: the URL of plotly.js; "" puts it into the page.
        nonce: the nonce of every script of the page, for a server whose content security policy blocks other scripts.
    """
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    return templates.get_template("page.html.j2").render(
        title=page.title,
        parts=[_part(block, number, nonce) for number, block in enumerate(page.blocks)],
        plotly_js="" if library else get_plotlyjs(),
        plotly_src=library,
        nonce=f' nonce="{nonce}"' if nonce else "",
    )


def _part(block: Block, number: int, nonce: str) -> str:
    """A block as HTML; a plot is an element that the page's plotly.js draws."""
    if not isinstance(block, Plot):
        return str(block.bundle()["text/html"])
    drawn = block.data()
    element: str = plotly.io.to_html(
        drawn,
        config=_PLOT,
        include_plotlyjs=False,
        full_html=False,
        default_height=f"{drawn['layout']['height']}px",
        validate=False,
        div_id=f"plot-{number}",
    )
    # The plot's data has no "<", so each match begins a script of plotly.
    return element.replace("<script", f'<script nonce="{nonce}"') if nonce else element


def _refuse_unwritable(run: Path) -> None:
    """Rejects a folder that cannot be written, before any work is done."""
    try:
        with tempfile.TemporaryFile(dir=run):
            pass
    except OSError as e:
        raise RunDirectoryError(
            f"cannot write a report into {run}: {e.strerror or e}",
            "copy the run to a folder that you can write, and try there",
        ) from e
