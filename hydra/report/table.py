"""Tables and texts as Markdown, or fitted to a terminal's width; ``blocks.py`` makes HTML of them."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress, zip_longest
from typing import Final

from rich.cells import cell_len, set_cell_size
from tabulate import tabulate

from hydra.events.value_formatting import MARK, UNKNOWN, number
from hydra.report.figure_texts import marks_line


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: its text, a note such as an interval, and whether it is emphasised."""

    text: str
    note: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its cells, its mark (``MARK`` if it is not clean, or ``NOTED``), the texts of its warnings, its status."""

    cells: Sequence[TableCell | str]
    mark: str = ""
    hint: str = ""
    status: str = ""

    def texts(self, joint: str = " ") -> list[str]:
        """The cells as texts; the mark follows the first one."""
        cells = [TableCell(cell) if isinstance(cell, str) else cell for cell in self.cells]
        texts = [f"{cell.text}{joint}{cell.note}" if cell.note else cell.text for cell in cells]
        return [f"{texts[0]} {self.mark}", *texts[1:]] if self.mark else texts


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        heads: the heads of the columns.
        rows: the rows, with a cell for each column.
        right: whether each column is aligned to the right; empty: no column is.
        hints: the explanation of each head; empty: there is none.
        spare: whether a terminal that is too narrow leaves a column out; empty: none is left out.
    """

    heads: Sequence[str]
    rows: Sequence[TableRow]
    right: Sequence[bool] = ()
    hints: Sequence[str] = ()
    spare: Sequence[bool] = ()

    @property
    def marks(self) -> list[str]:
        """The marks of the rows."""
        return [row.mark for row in self.rows]


@dataclass(frozen=True, slots=True)
class PartedLine:
    """A line of parts; a terminal breaks it between parts, and within a part only if one is wider than the terminal.

    Attributes:
        parts: the texts of the parts.
        before: what stands before them, such as the mark of a list.
    """

    parts: Sequence[str]
    before: str = ""

    def __str__(self) -> str:
        return self.before + _BETWEEN_PARTS.join(self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def wrapped(self, width: int) -> list[str]:
        """The line in lines of at most this many characters."""
        lines = [self.before]
        for number_, part in enumerate(self.parts):
            joint = _BETWEEN_PARTS if number_ else ""
            if number_ and cell_len(f"{lines[-1]}{joint}{part}") > width:
                lines.append(f"  {joint.lstrip()}{part}")
            else:
                lines[-1] += joint + part
        return [found for line in lines for found in _wrapped(line, width)]


_BETWEEN_PARTS: Final = " · "

Document = Sequence[str | PartedLine | Table]
"""A text to read: paragraphs and lists in Markdown, lines of parts, and tables."""


def plain(heads: Sequence[str], body: Iterable[Sequence[str]]) -> Table:
    """A table of texts."""
    return Table(heads, [TableRow(texts) for texts in body])


def without_empty_columns(table: Table) -> Table:
    """The table without the columns that have no figure and no text in any row; without rows it has all columns."""
    if not table.rows:
        return table
    kept = [any(map(_has_text, column)) for column in zip(*(row.cells for row in table.rows), strict=True)]
    return Table(
        list(compress(table.heads, kept)),
        [replace(row, cells=list(compress(row.cells, kept))) for row in table.rows],
        list(compress(table.right, kept)),
        list(compress(table.hints, kept)),
        list(compress(table.spare, kept)),
    )


def _has_text(cell: TableCell | str) -> bool:
    return (cell if isinstance(cell, str) else cell.text) not in ("", UNKNOWN)


def markdown(document: Document) -> str:
    """A document as the text of a Markdown file."""
    return "\n\n".join(text for part in document for text in _as_markdown(part)) + "\n"


def _as_markdown(part: str | PartedLine | Table) -> list[str]:
    if isinstance(part, PartedLine):
        return [str(part)]
    return [part] if isinstance(part, str) else [_pipe(part), *filter(None, [marks_line(part.marks, quote="`")])]


def _pipe(table: Table) -> str:
    body = [row.texts() for row in table.rows]
    align = ["right" if right else "left" for right in table.right] if body else None
    # Numbers are texts already; tabulate would round and format them again.
    return tabulate(body, table.heads, "pipe", disable_numparse=True, colalign=align or None)


_PIECES: Final = re.compile(r"\n|[^\S\n]+|[^\s_;/]*[_;/]+|[^\s_;/]+")
"""The pieces at which a cell may be broken: lines, words, and parts of names that end with an underscore."""
_LONGEST: Final = 40
"""The maximum length, in characters, of a piece that is kept on one line."""
_LEAST: Final = 4
_GAPS: Final = (2, 1)
"""Spaces between columns; the smaller number is used if the larger one leaves too little room."""
_MARKED: Final = "\x1b[33m{}\x1b[0m"


def terminal_width() -> int | None:
    """The width in characters of the terminal; None if standard output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def tabled(
    rows: Sequence[Mapping[str, object]], width: int | None = None, *, floats: str = "g", as_text: bool = False
) -> str:
    """Rows with the same keys as a table.

    Args:
        rows: the cells by heading.
        width: width of the terminal in characters; None: the table has its natural width.
        floats: the format of floats.
        as_text: whether figures are texts already, which are not formatted again.
    """
    if width is None or not rows:
        return tabulate(
            [list(row.values()) for row in rows],
            list(rows[0]) if rows else (),
            floatfmt=floats,
            disable_numparse=as_text,
        )
    right = [all(isinstance(row[key], int | float) for row in rows) for key in rows[0]]
    body = [TableRow([_cell(value, floats) for value in row.values()]) for row in rows]
    return "\n".join(_grid(Table(list(rows[0]), body, right), width))


def fitted(text: str | Document, width: int | None = None, *, colours: bool = False) -> str:
    """A text whose tables and lines are not wider than a terminal.

    Args:
        text: Markdown without tables, or a document.
        width: width of the terminal in characters; None: the lines are not wrapped.
        colours: whether rows with a mark are shown in another colour.
    """
    if isinstance(text, str):
        return text if width is None else _prose(text, width)
    if width is None:
        return markdown(text)
    parts: list[str] = []
    for part in text:
        if isinstance(part, str):
            parts.append(_prose(part, width))
            continue
        if isinstance(part, PartedLine):
            parts.append("\n".join(part.wrapped(width)))
            continue
        parts.append("\n".join(_grid(part, width, colours=colours)))
        parts += [_prose(line, width) for line in filter(None, [marks_line(part.marks)])]
    return "\n\n".join(parts) + "\n"


def _grid(table: Table, width: int, *, colours: bool = False) -> Iterator[str]:
    """The lines of a table: notes are below the texts of their cells, and cells are folded if the table is too wide.

    Spare columns are left out if words and numbers would be cut otherwise; a line below names them.
    """
    columns = list(zip(table.heads, *(row.texts("\n") for row in table.rows), strict=True))
    right = table.right or [False] * len(columns)
    least = [max(min(cell_len(p), _LONGEST) for cell in c for p in _PIECES.findall(cell) or [""]) for c in columns]
    if sum(least) + len(columns) - 1 > width and any(table.spare):
        kept = [not spare for spare in table.spare]
        left_out = ", ".join(head for head, spare in zip(table.heads, table.spare, strict=True) if spare)
        columns, right, least = list(compress(columns, kept)), list(compress(right, kept)), list(compress(least, kept))
    else:
        left_out = ""
    body = list(zip(*(cells[1:] for cells in columns), strict=True))
    gaps = len(columns) - 1
    gap = next((g for g in _GAPS if sum(least) + g * gaps <= width), _GAPS[-1])
    widths = _widths(columns, least, width - gap * gaps)

    def lines(row: Sequence[str], shown: str = "{}") -> Iterator[str]:
        for cells in zip_longest(*map(_folded, row, widths), fillvalue=""):
            padded = (_padded(text, room, to_right=r) for text, room, r in zip(cells, widths, right, strict=True))
            yield shown.format((" " * gap).join(padded).rstrip())

    yield from lines([head for head, *_ in columns])
    yield (" " * gap).join("─" * room for room in widths)
    for row, texts in zip(table.rows, body, strict=True):
        yield from lines(texts, _MARKED if colours and row.mark == MARK else "{}")
    if left_out:
        yield f"A wider terminal shows: {left_out}"


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], room: int) -> list[int]:
    """A width for each column; columns are narrowed by one character at a time, such that the table stays lowest.

    If several columns are equal in this, the widest is narrowed. Words are cut only if nothing else helps.
    """
    natural = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    widths = list(natural)
    for floor in (least, [min(_LEAST, width) for width in natural]):
        while sum(widths) > room:
            narrower = [n for n, width in enumerate(widths) if width > floor[n]]
            if not narrower:
                break
            heights = {n: _height(columns, [*widths[:n], widths[n] - 1, *widths[n + 1 :]]) for n in narrower}
            widths[min(narrower, key=lambda n: (heights[n], -widths[n]))] -= 1
    return widths


def _height(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> int:
    """The number of lines of a table with these column widths."""
    lines = ([len(_folded(cell, room)) for cell in column] for column, room in zip(columns, widths, strict=True))
    return sum(map(max, zip(*lines, strict=True)))


@cache
def _folded(cell: str, room: int) -> tuple[str, ...]:
    """A cell in lines of at most ``room`` characters."""
    lines = [""]
    for piece in _PIECES.findall(cell):
        if piece == "\n":
            lines.append("")
            continue
        rest = piece
        if cell_len(lines[-1]) + cell_len(rest.rstrip()) > room:
            lines.append("")
            rest = rest.lstrip()
        while cell_len(rest) > room and rest.strip():
            lines[-1] = rest[:room]
            rest = rest[room:]
            lines.append("")
        lines[-1] += rest
    return tuple(line.rstrip() for line in lines if line.strip()) or ("",)


def _padded(text: str, room: int, *, to_right: bool) -> str:
    return " " * (room - cell_len(text)) + text if to_right else set_cell_size(text, room)


def _cell(value: object, floats: str) -> str:
    if isinstance(value, float):
        return f"{value:{floats}}"
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return "" if value is None else str(value)


def _prose(text: str, width: int) -> str:
    return "\n".join(line for each in text.split("\n") for line in _wrapped(each, width))


def _wrapped(line: str, width: int) -> list[str]:
    plain = line.lstrip("#").strip() if line.startswith("#") else line.replace("**", "")
    if cell_len(plain) <= width:
        return [plain]
    indent = " " * (len(plain) - len(plain.lstrip())) + ("  " if plain.lstrip().startswith("- ") else "")
    return textwrap.wrap(plain, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
