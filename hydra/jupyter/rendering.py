"""A run directory → ``report.ipynb``, and ``report.html``, one file that needs no network."""

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
"""The file of plotly.js that pages share, by its version: a page goes on with the one that it was made for."""
_ROOM: Final = "free some space, or move what is in the way"
_PLOT: Final[dict[str, Any]] = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}


def render(run: Path, *, shared: bool = False, pictures: Path | None = None) -> list[Path]:
    """Writes both files of a run, or of an experiment, each at once or not at all.

    Args:
        run: the folder.
        shared: plotly.js is a file beside the run's folder, which all pages there share, and not a part of the page.
        pictures: the folder for images of all plots; None makes none.

    Raises:
        RunDirectoryError: the directory holds neither.
        HydraError: it cannot be written.
    """
    _refuse_unwritable(run)
    title, cells = cells_of(run)
    written = write_whole(run / NOTEBOOK, notebook(title, cells), _ROOM)
    return [written, *write_page(page_of(title, cells), run / PAGE, run.resolve().parent if shared else None, pictures)]


def write_page(page: Page, path: Path, shared: Path | None, pictures: Path | None) -> list[Path]:
    """Writes a page, and images of its plots; returns the paths, the page's first.

    Args:
        page: the one.
        path: where to.
        shared: the folder of plotly.js, which pages share: that of the page or the one above; None: it is in the page.
        pictures: see :func:`render`.

    Raises:
        HydraError: something cannot be written or drawn.
    """
    library = ""
    if shared is not None:
        library = LIBRARY if shared == path.resolve().parent else f"../{LIBRARY}"
        if not (shared / LIBRARY).exists():
            write_whole(shared / LIBRARY, get_plotlyjs(), _ROOM)
    written = [write_whole(path, html(page, library), _ROOM)]
    return written if pictures is None else [*written, *write_images(page.plots, pictures)]


def cells_of(run: Path) -> tuple[str, list[NotebookCell]]:
    """What the report of a run, or of an experiment, is called, and the cells of its notebook.

    Raises:
        RunDirectoryError: the directory holds neither.
    """
    if is_experiment(run):
        found = experiment.load(run)
        return f"Hydra: {found.record.experiment}", list(experiment.REPORT.cells(found))
    loaded = report.load(run)
    return f"Hydra: {loaded.metadata.get('name', run.name)}", list(report.REPORT.cells(loaded))


def page_of(title: str, cells: list[NotebookCell]) -> Page:
    """What cells show, without their code."""
    return Page(title, [block for cell in cells for block in cell.blocks])


def html(page: Page, library: str = "", nonce: str = "") -> str:
    """A page as HTML.

    Args:
        page: the one.
        library: where the page finds plotly.js; "" puts it into the page.
        nonce: what every script of the page carries, for a server whose content security policy lets no other one run.
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
    """A block as HTML, a plot as an element that the page's one plotly.js draws."""
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
    # Its data has no "<": every one of these begins a script of plotly's.
    return element.replace("<script", f'<script nonce="{nonce}"') if nonce else element


def _refuse_unwritable(run: Path) -> None:
    """A folder that cannot be written is told before the work, not after it."""
    try:
        with tempfile.TemporaryFile(dir=run):
            pass
    except OSError as e:
        raise RunDirectoryError(
            f"cannot write a report into {run}: {e.strerror or e}", "copy the run to where you may write, and try there"
        ) from e
