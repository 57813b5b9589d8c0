"""A run directory → ``report.ipynb``, executed, and ``report.html``, one file that needs no network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
import plotly.io
from nbconvert import HTMLExporter
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from hydra.errors import RunDirectoryError
from hydra.jupyter import run_data
from hydra.jupyter.images import write_images
from hydra.jupyter.names import NOTEBOOK, PAGE
from hydra.jupyter.notebooks import execute, template
from hydra.jupyter.report import PLOTLY
from hydra.report.experiments import read
from hydra.store.files import write_whole
from hydra.store.folders import is_experiment

LIBRARY: Final = f"plotly-{get_plotlyjs_version()}.min.js"
"""The file of plotly.js that pages share, by its version: a page goes on with the one that it was made for."""
_ROOM: Final = "free some space, or move what is in the way"
_PLOT: Final[dict[str, Any]] = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}


def render(run: Path, *, shared: bool = False, pictures: Path | None = None) -> list[Path]:
    """Executes the report over a run, or over an experiment, and writes both files, each at once or not at all.

    Args:
        run: the folder.
        shared: plotly.js is a file beside the run's folder, which all pages there share, and not a part of the page.
        pictures: the folder for images of all plots; None makes none.

    Raises:
        RunDirectoryError: the directory holds neither.
        HydraError: it cannot be written, or the notebook failed.
    """
    titled = title(run)
    _refuse_unwritable(run)
    notebook = executed(run, titled)
    written = write_whole(run / NOTEBOOK, nbformat.writes(notebook), _ROOM)
    return [written, *write_page(notebook, run / PAGE, run.resolve().parent if shared else None, pictures)]


def write_page(notebook: NotebookNode, path: Path, shared: Path | None, pictures: Path | None) -> list[Path]:
    """Writes the page of an executed notebook, and images of its plots; returns the paths, the page's first.

    Args:
        notebook: the one.
        path: of the page.
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
    written = [write_whole(path, page(notebook, library), _ROOM)]
    return written if pictures is None else [*written, *write_images(notebook, pictures)]


def title(run: Path) -> str:
    """What the report of a run, or of an experiment, is called.

    Raises:
        RunDirectoryError: the directory holds neither.
    """
    name = read(run).experiment if is_experiment(run) else run_data.load(run).metadata.get("name", run.name)
    return f"Hydra: {name}"


def executed(run: Path, titled: str) -> NotebookNode:
    """The report over a run, or over an experiment, as an executed notebook; nothing is written.

    Raises:
        HydraError: the notebook failed.
    """
    notebook = execute(template("experiment" if is_experiment(run) else "report"), run)
    notebook.metadata["title"] = titled
    return notebook


def page(notebook: NotebookNode, library: str = "", nonce: str = "") -> str:
    """The HTML of an executed notebook, without its code.

    Args:
        notebook: the one.
        library: where the page finds plotly.js; "" puts it into the page.
        nonce: what every script of the page carries, for a server whose content security policy lets no other one run.
    """
    exporter = HTMLExporter(
        template_name="hydra",
        extra_template_basedirs=[str(Path(__file__).with_name("template"))],
        exclude_input=True,
        exclude_output_prompt=True,
        preprocessors=[_Plots],
    )
    resources = {"plotly_js": "" if library else get_plotlyjs(), "plotly_src": library, "nonce": nonce}
    text, _ = exporter.from_notebook_node(notebook, resources)
    return str(text)


class _Plots(Preprocessor):
    """Plots as elements that the page's one plotly.js draws; in the notebook they stay data."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        for number, output in enumerate(cell.get("outputs", [])):
            figure = output.get("data", {}).pop(PLOTLY, None)
            if figure:
                html = plotly.io.to_html(
                    figure,
                    config=_PLOT,
                    include_plotlyjs=False,
                    full_html=False,
                    default_height=f"{figure['layout']['height']}px",
                    validate=False,
                    div_id=f"plot-{index}-{number}",
                )
                # Its data has no "<": every one of these begins a script of plotly's.
                marked = f'<script nonce="{resources["nonce"]}"' if resources["nonce"] else "<script"
                output.data["text/html"] = html.replace("<script", marked)
        return cell, resources


def _refuse_unwritable(run: Path) -> None:
    """A folder that cannot be written is told before the work, not after it."""
    try:
        with tempfile.TemporaryFile(dir=run):
            pass
    except OSError as e:
        raise RunDirectoryError(
            f"cannot write a report into {run}: {e.strerror or e}", "copy the run to where you may write, and try there"
        ) from e
