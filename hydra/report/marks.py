"""The marks of rows and runs: which one each has, and the line below a table that explains them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hydra.events.value_formatting import MARK
from hydra.model import Figure
from hydra.sweep.cleanness import flaws
from hydra.sweep.host_trouble import host_trouble

NOTED: Final = "*"
"""The mark of a clean row with a warning, or of a run with such a row."""

OF_ROWS: Final[Mapping[str, str]] = {
    MARK: "the row is not clean: read its warnings before you use its figures",
    NOTED: "the row is clean, but read its warning",
}
OF_RUNS: Final[Mapping[str, str]] = {
    MARK: "a row of the run is not clean, or it is not shown that the run kept its objectives",
    NOTED: "other processes, or a host without free CPU, may have changed the figures of a row",
}
"""What each mark means beside a row, and beside a run."""


def mark_of_row(row: Mapping[str, Figure], *, warned: bool = False) -> str:
    """The mark of a row, "" if it has none; ``warned`` is whether it has a warning about anything but its hosts."""
    return MARK if flaws(row) else NOTED if warned or host_trouble(row) else ""


def marks_line(marks: Iterable[str], meanings: Mapping[str, str] = OF_ROWS, quote: str = "") -> str:
    """The line below a table that explains its marks; "" if it has none.

    Args:
        marks: the marks in the table.
        meanings: what each of them means.
        quote: stands before and behind a mark: a Markdown reader would take a star at the beginning for a list.
    """
    used = set(marks)
    return "; ".join(f"{quote}{mark}{quote} {meaning}" for mark, meaning in meanings.items() if mark in used)
