"""`hydra report`: writes the report of a run. Imports nothing of Jupyter before it knows that it is there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from hydra.errors import MissingDependencyError

NEEDED: Final = ("ipykernel", "nbclient", "nbconvert", "nbformat", "plotly")
"""Packages, as they are imported and as pip knows them."""


def write_report(run: Path) -> list[Path]:
    """Writes ``report.ipynb`` and ``report.html`` into a run directory and returns their paths.

    Raises:
        MissingDependencyError: packages of Jupyter are not installed.
        RunDirectoryError: the directory holds no run.
        HydraError: it cannot be written, or the notebook failed.
    """
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise MissingDependencyError(
            f"a report needs packages that are not installed: {', '.join(missing)}",
            f"pip install {' '.join(missing)}",
        )
    # Half a second of imports, and an error without the packages above.
    from hydra.jupyter.rendering import render

    return render(run)
