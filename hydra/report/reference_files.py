"""The published tables of ``conf/reference``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hydra.config.file_locations import conf_dir
from hydra.errors import ConfigError
from hydra.model import Figure

if TYPE_CHECKING:  # this module imports numpy
    from hydra.sweep import Row


def text_of(file: str) -> str:
    """The text of a published table's file.

    Raises:
        ConfigError: the file is missing in the installation.
    """
    path = conf_dir() / "reference" / file
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise ConfigError(f"cannot read {path}: {e.strerror or e}", "reinstall Hydra: its conf/ is incomplete") from e


def parsed(text: str) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """The columns and the rows of a table: a cell is a number if it reads as one, and None if it is empty."""
    import csv

    reader = csv.DictReader(io.StringIO(text))
    rows = tuple({column: _figure(cell) for column, cell in row.items()} for row in reader)
    return tuple(reader.fieldnames or ()), rows


def _figure(text: str) -> Figure:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
