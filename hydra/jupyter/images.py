"""Writes every plot of a page as PNG and SVG; kaleido draws them with a Chromium that it starts."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from hydra.errors import HydraError, MissingDependencyError, UsageError, pip_install

if TYPE_CHECKING:
    from hydra.jupyter.blocks import Plot

NEXT_TO_PAGE: Final = "auto"
"""The value that stands for a folder ``images`` next to the page."""
_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_NAMED_BY: Final = "BROWSER_PATH"
"""The environment variable that names another Chromium for kaleido."""
_FORMATS: Final = ("png", "svg")
_WIDTH_PX: Final = 1200
_PNG_SCALE: Final = 2
_SCRATCH: Final = "TMPDIR"
_END_S: Final = 10.0
"""Time limit for a killed Chromium to end; it ends much sooner."""


def refuse_images(folder: Path) -> None:
    """Checks before any work whether images can be drawn and written.

    Raises:
        MissingDependencyError: kaleido or Chromium is not installed.
        UsageError: the folder cannot be made or written.
    """
    if find_spec("kaleido") is None:
        raise MissingDependencyError(
            "--images needs the package kaleido, which is not installed", pip_install("kaleido>=1.0")
        )
    _chromium()
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"--images {folder}: {existing} is no folder", "name another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"--images {folder}: {existing} cannot be written", "name another folder")


def _chromium() -> str:
    """The path of a Chromium.

    Raises:
        MissingDependencyError: Chromium is not installed.
    """
    named = os.environ.get(_NAMED_BY, "")
    if named and not shutil.which(named):
        raise MissingDependencyError(f"--images: {_NAMED_BY} is {named}, which is no program", "correct or unset it")
    found = named or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        raise MissingDependencyError(
            "--images needs Chromium, which is not installed",
            f"apt-get install chromium, or set {_NAMED_BY} to your Chromium",
        )
    return found


def write_images(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Writes all plots of a page, or none, and returns the paths of the files.

    Raises:
        HydraError: Chromium failed, or the files cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(prefix=".images-", dir=folder) as drafts:
                with _scratch():
                    made = _draw(plots, Path(drafts))
                return [path.replace(folder / path.name) for path in made]
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if it is empty
    except OSError as e:
        raise HydraError(
            f"cannot write plots into {folder}: {e.strerror or e}", "free some space, or name another"
        ) from e


@contextlib.contextmanager
def _scratch() -> Iterator[None]:
    """Removes what libraries start and write in its block: an interrupted kaleido leaves Chromium running."""
    others = set(psutil.Process().children(recursive=True))
    before, variable = tempfile.tempdir, os.environ.get(_SCRATCH)
    # Not in the folder of images, because the path of Chromium's socket has to be short.
    with tempfile.TemporaryDirectory(prefix="hydra-images-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = os.environ[_SCRATCH] = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
            os.environ.pop(_SCRATCH)
            if variable is not None:
                os.environ[_SCRATCH] = variable
            left = set(psutil.Process().children(recursive=True)) - others
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=_END_S)


def _draw(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Draws all plots into an empty folder."""
    import kaleido

    for library in ("choreographer", "kaleido"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # errors are raised, too
    orders: list[dict[str, Any]] = []
    names: Counter[str] = Counter()
    for plot in plots:
        names[plot.name] += 1
        file = f"{plot.name}-{names[plot.name]}" if names[plot.name] > 1 else plot.name
        figure = plot.data()
        for kind in _FORMATS:
            opts = {"format": kind, "width": _WIDTH_PX, "height": figure["layout"]["height"]}
            scale = {"scale": _PNG_SCALE} if kind == "png" else {}
            orders.append({"fig": figure, "path": folder / f"{file}.{kind}", "opts": {**opts, **scale}})
    try:
        kaleido.write_fig_from_object_sync(orders, kopts={"path": _chromium()})
    except OSError:
        raise
    except Exception as e:  # kaleido and its libraries have no common base of their errors
        error = " ".join(str(e).split()) or type(e).__name__
        raise HydraError(f"Chromium could not draw the plots: {error}", "run it by hand: chromium --headless") from e
    if missing := [order["path"].name for order in orders if not order["path"].is_file()]:
        raise HydraError(f"Chromium did not draw {', '.join(missing)}", "run it by hand: chromium --headless")
    return [order["path"] for order in orders]
