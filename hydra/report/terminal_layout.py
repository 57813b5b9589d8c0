"""Texts and tables as wide as the terminal that they go to; what files and pipes get is left as it is."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Final

from rich.cells import cell_len, set_cell_size
from tabulate import tabulate

from hydra.events.formatting import number

_PIECES: Final = re.compile(r"\s+|[^\s_;/]*[_;/]+|[^\s_;/]+")
"""What a cell may be broken into: words, and names behind their underscores."""
_LONGEST: Final = 40
"""Of a piece that keeps its line, characters."""
_LEAST: Final = 4
_GAPS: Final = (2, 1)
"""Between columns; the smaller one where the larger leaves too little."""


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def tabled(
    rows: Sequence[Mapping[str, object]], width: int | None = None, *, floats: str = "g", as_text: bool = False
) -> str:
    """Rows with the same keys as a table.

    Args:
        rows: the cells by heading.
        width: of the terminal; None: the table is as wide as it gets.
        floats: the format of floats.
        as_text: whether figures are texts already, and are not to be formatted once more.
    """
    if width is None or not rows:
        return tabulate(
            [list(row.values()) for row in rows],
            list(rows[0]) if rows else (),
            floatfmt=floats,
            disable_numparse=as_text,
        )
    right = [all(isinstance(row[key], int | float) for row in rows) for key in rows[0]]
    body = [[_cell(value, floats) for value in row.values()] for row in rows]
    return "\n".join(grid(list(rows[0]), body, right, width))


def fitted(markdown: str, width: int | None = None) -> str:
    """A text for people, its tables and lines not wider than a terminal.

    Args:
        markdown: the text, its tables those of ``tabulate``'s format ``pipe``.
        width: of the terminal; None: the text is left as it is.
    """
    if width is None:
        return markdown
    found: list[str] = []
    for is_table, each in groupby(markdown.split("\n"), lambda line: line.startswith("|")):
        lines = list(each)
        found += _table(lines, width) if is_table else _prose(lines, width)
    return "\n".join(found)


def grid(heads: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> Iterator[str]:
    """The lines of a table, cells folded where it would be too wide.

    Args:
        heads: of the columns.
        body: the cells of each row.
        right: whether a column stands at its right edge.
        width: columns of the terminal.
    """
    columns = list(zip(heads, *body, strict=True))
    least = [max(min(cell_len(p), _LONGEST) for cell in c for p in _PIECES.findall(cell) or [""]) for c in columns]
    gaps = len(heads) - 1
    gap = next((g for g in _GAPS if sum(least) + g * gaps <= width), _GAPS[-1])
    widths = _widths(columns, least, width - gap * gaps)
    for number_, row in enumerate([heads, *body]):
        folded = [_folded(cell, room) for cell, room in zip(row, widths, strict=True)]
        for line in range(max(map(len, folded))):
            cells = (
                _padded(lines[line] if line < len(lines) else "", room, to_right=at_right)
                for lines, room, at_right in zip(folded, widths, right, strict=True)
            )
            yield (" " * gap).join(cells).rstrip()
        if not number_:
            yield (" " * gap).join("─" * room for room in widths)


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], room: int) -> list[int]:
    """A width for each column: that one gives a character which makes the table least higher, the widest of those.

    Words are cut only when nothing else is left.
    """
    natural = [max(map(cell_len, column)) for column in columns]
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
    """The lines of a table whose columns are so wide."""
    lines = ([len(_folded(cell, room)) for cell in column] for column, room in zip(columns, widths, strict=True))
    return sum(map(max, zip(*lines, strict=True)))


@cache
def _folded(cell: str, room: int) -> tuple[str, ...]:
    """A cell in lines of at most so many columns."""
    lines = [""]
    for piece in _PIECES.findall(cell):
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


def _table(lines: Sequence[str], width: int) -> Iterable[str]:
    """The lines of a pipe table, fitted; as they are if they are none."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return lines
    heads, marks, *body = rows
    return grid(heads, body, [mark.endswith(":") and not mark.startswith(":") for mark in marks], width)


def _prose(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        plain = line.lstrip("#").strip() if line.startswith("#") else line.replace("**", "")
        indent = " " * (len(plain) - len(plain.lstrip())) + ("  " if plain.lstrip().startswith("- ") else "")
        fits = cell_len(plain) <= width
        wrapped = textwrap.wrap(plain, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        yield from [plain] if fits else wrapped
