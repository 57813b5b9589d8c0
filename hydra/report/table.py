"""A table, wherever it is shown: as Markdown here, fitted in ``terminal_layout.py``, as HTML in ``blocks.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tabulate import tabulate


@dataclass(frozen=True, slots=True)
class TableCell:
    """A text, and with it a note such as an interval; ``strong`` is what a reader looks for first."""

    text: str
    note: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its cells, a mark for one that is not to be read alone, why so, and the status of what it shows."""

    cells: Sequence[TableCell | str]
    mark: str = ""
    hint: str = ""
    status: str = ""

    def texts(self, joint: str = " ") -> list[str]:
        """The cells as texts, the mark behind the first."""
        cells = [TableCell(cell) if isinstance(cell, str) else cell for cell in self.cells]
        texts = [f"{cell.text}{joint}{cell.note}" if cell.note else cell.text for cell in cells]
        return [f"{texts[0]} {self.mark}", *texts[1:]] if self.mark else texts


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        heads: of the columns.
        rows: have a cell for each of them.
        right: whether a column stands at its right edge; without any none does.
        hints: what the heads mean; nothing is told of them without any.
    """

    heads: Sequence[str]
    rows: Sequence[TableRow]
    right: Sequence[bool] = ()
    hints: Sequence[str] = ()


Document = Sequence[str | Table]
"""A text for people: paragraphs and lists in Markdown, and tables."""


def plain(heads: Sequence[str], body: Iterable[Sequence[str]]) -> Table:
    """A table of texts."""
    return Table(heads, [TableRow(texts) for texts in body])


def markdown(document: Document) -> str:
    """A document as a file."""
    return "\n\n".join(part if isinstance(part, str) else _pipe(part) for part in document) + "\n"


def _pipe(table: Table) -> str:
    body = [row.texts() for row in table.rows]
    align = ["right" if right else "left" for right in table.right] if body else None
    # Numbers are texts already: tabulate would round and re-format them.
    return tabulate(body, table.heads, "pipe", disable_numparse=True, colalign=align or None)
