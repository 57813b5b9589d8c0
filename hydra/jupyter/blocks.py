"""What a page is made of, and its notebook: cells of code with headings, HTML and plots already below them."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hydra.measure.column import Column
from hydra.model import Figure
from hydra.report.table import Table, TableCell, TableRow

if TYPE_CHECKING:
    import plotly.graph_objects as go


UNKNOWN: Final = "—"
_PLOTLY: Final = "application/vnd.plotly.v1+json"


class Block(ABC):
    """A part of a page."""

    __slots__ = ()

    @abstractmethod
    def bundle(self) -> dict[str, Any]:
        """What it is, by MIME type."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.bundle()


@dataclass(frozen=True, slots=True)
class Html(Block):
    """HTML of any kind."""

    text: str

    def bundle(self) -> dict[str, Any]:
        """As it is."""
        return {"text/html": self.text}


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A title above what follows, and HTML below it."""

    title: str
    below: str = ""

    def bundle(self) -> dict[str, Any]:
        """As HTML, with a name that an address can end with."""
        below = f'<div class="text_cell"><p>{self.below}</p></div>' if self.below else ""
        name = escape(self.title.replace(" ", "-"))
        return {"text/html": f'<h2 id="{name}">{escape(self.title)}</h2>{below}'}


@dataclass(frozen=True, slots=True)
class Plot(Block):
    """A plot, of which a notebook keeps the data without a copy of plotly.js; ``name`` is a file's."""

    figure: go.Figure
    name: str

    def data(self) -> dict[str, Any]:
        """The plot as plotly.js draws it; the ``meta`` of its layout is its name."""
        drawn: dict[str, Any] = json.loads(self.figure.to_json())
        drawn["layout"]["meta"] = self.name
        return drawn

    def bundle(self) -> dict[str, Any]:
        """Its data, and where to see it."""
        return {_PLOTLY: self.data(), "text/plain": "a plot: open it with JupyterLab, or read report.html"}


class Section(tuple[Block, ...]):
    """Blocks that stand below each other; without any there is nothing to show."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        from IPython.display import display  # only in the kernel of a notebook

        display(*self)


@dataclass(frozen=True, slots=True)
class Page:
    """A page, ``title`` is the window's."""

    title: str
    blocks: Sequence[Block]

    @property
    def plots(self) -> list[Plot]:
        """Its plots in their order."""
        return [block for block in self.blocks if isinstance(block, Plot)]


def titled(title: str, figure: go.Figure | None, below: str = "") -> Section:
    """A plot below its heading; nothing at all where there is nothing to plot."""
    return Section() if figure is None else Section((Heading(title, below), Plot(figure, file_name(title))))


def file_name(title: str) -> str:
    """The name of a plot's file, of its title: ``Loss by rate`` → ``loss-by-rate``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "plot"


def style() -> str:
    """The look of the parts below, as an element."""
    css = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def figure(column: Column, value: Figure) -> str:
    """A figure as text, thousands grouped; large ones have no digits behind the point."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column.digits == "six":
            return f"{value:.6g}"
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 10_000 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def scrolling(table: str) -> str:
    """A table that is wider than the page can be moved."""
    return f'<div class="scroll">{table}</div>'


def html(table: Table, classes: str = "rows") -> str:
    """A table as HTML."""
    heads = "".join(
        f"<th{_hint(hint)}>{escape(head)}</th>" for head, hint in zip_longest(table.heads, table.hints, fillvalue="")
    )
    rows = "".join(map(_row, table.rows))
    return f'<table class="{classes}"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(row: TableRow) -> str:
    cells = [_cell(TableCell(cell) if isinstance(cell, str) else cell) for cell in row.cells]
    if row.mark:
        cells[0] = f'<span class="mark">{row.mark}</span> {cells[0]}'
    status = f' class="{escape(row.status)}"' if row.status else ""
    return f"<tr{status}{_hint(row.hint)}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _cell(cell: TableCell) -> str:
    text = f"<strong>{escape(cell.text)}</strong>" if cell.strong else escape(cell.text)
    return f'{text} <span class="interval">{escape(cell.note)}</span>' if cell.note else text


def _hint(text: str) -> str:
    """What an element says when it is pointed at."""
    return f' title="{escape(text)}"' if text else ""


def facts_table(told: Mapping[str, str]) -> Html:
    """Facts, which are HTML, by name; those of which nothing is known are left out."""
    body = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in told.items() if text)
    return block(f'<table class="facts"><tbody>{body}</tbody></table>')


def block(inner: str) -> Html:
    """Part of a page, in the look of :func:`style`."""
    return Html(f'<div class="hydra">{inner}</div>')


T = TypeVar("T")

_METADATA: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell: its code, and what that shows; without code it is the heading that it shows."""

    source: str
    blocks: Sequence[Block] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportNotebook(Generic[T]):
    """What a notebook consists of.

    Attributes:
        module: the one of ``hydra.jupyter`` that its code calls; it has ``load`` and the sections.
        parameter: the variable that names the folder, and what to say of it.
        variable: for what ``load`` gives.
        sections: its headings, and one function for each section.
    """

    module: str
    parameter: tuple[str, str]
    variable: str
    sections: Sequence[Heading | Callable[[T], Html | Section]]

    def cells(self, loaded: T) -> Iterator[NotebookCell]:
        """The cells, of what ``load`` gave."""
        name, what = self.parameter
        yield NotebookCell(f'{name} = "."  # {what}; report.ipynb lies in it', tags=("parameters",))
        yield NotebookCell(f"from hydra.jupyter import {self.module}\n\n{self.variable} = {self.module}.load({name})")
        for section in self.sections:
            if isinstance(section, Heading):
                yield NotebookCell("", (section,))
            else:
                shown = section(loaded)
                blocks = shown if isinstance(shown, Section) else (shown,)
                yield NotebookCell(f"{self.module}.{section.__name__}({self.variable})", blocks)


def notebook(title: str, cells: Iterable[NotebookCell]) -> str:
    """The text of ``report.ipynb``."""
    told = [{"id": f"cell-{number:02}", **_told(cell)} for number, cell in enumerate(cells)]
    body = {"cells": told, "metadata": {**_METADATA, "title": title}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _told(cell: NotebookCell) -> dict[str, Any]:
    match cell.blocks:
        case [Heading(title, below)] if not cell.source:
            return {"cell_type": "markdown", "metadata": {}, "source": f"## {title}\n{below}".strip()}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": cell.tags} if cell.tags else {},
        "outputs": [{"output_type": "display_data", "metadata": {}, "data": b.bundle()} for b in cell.blocks],
        "source": cell.source,
    }
