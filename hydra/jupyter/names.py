"""The names of the files that a report is: known before anything of Jupyter is imported."""

from __future__ import annotations

from typing import Final

NOTEBOOK: Final = "report.ipynb"
PAGE: Final = "report.html"
IMAGES: Final = "images"
"""The folder of images beside a page, unless another is named."""
