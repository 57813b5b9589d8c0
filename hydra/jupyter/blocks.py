"""The blocks of a page, and its notebook, whose cells of code already have headings, HTML and plots as outputs."""

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

from hydra.events.value_formatting import UNKNOWN, number
from hydra.measure.column import Column
from hydra.model import Figure, RunSetup
from hydra.report.interval_display import whole_rate
from hydra.report.run_setup import setup_line
from hydra.report.table import Table, TableCell, TableRow

if TYPE_CHECKING:
    import plotly.graph_objects as go


_LEAST_OF_TWO_DECIMALS: Final = 0.005
"""Smaller figures would be 0 with two decimals."""
_PLOTLY: Final = "application/vnd.plotly.v1+json"


class Block(ABC):
    """A part of a page."""

    __slots__ = ()

    @abstractmethod
    def bundle(self) -> dict[str, Any]:
        """The block's content by MIME type."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.bundle()


@dataclass(frozen=True, slots=True)
class Html(Block):
    """A block of HTML."""

    text: str

    def bundle(self) -> dict[str, Any]:
        """The HTML as it is."""
        return {"text/html": self.text}


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A heading, with HTML below it."""

    title: str
    below: str = ""

    def bundle(self) -> dict[str, Any]:
        """The heading as HTML, with an id for links."""
        below = f'<div class="text_cell"><p>{self.below}</p></div>' if self.below else ""
        name = escape(self.title.replace(" ", "-"))
        return {"text/html": f'<h2 id="{name}">{escape(self.title)}</h2>{below}'}


@dataclass(frozen=True, slots=True)
class Plot(Block):
    """A plot; a notebook stores its data without a copy of plotly.js. ``name`` is for files."""

    figure: go.Figure
    name: str

    def data(self) -> dict[str, Any]:
        """The plot's data for plotly.js; the ``meta`` of its layout is the plot's name."""
        drawn: dict[str, Any] = json.loads(self.figure.to_json())
        drawn["layout"]["meta"] = self.name
        return drawn

    def bundle(self) -> dict[str, Any]:
        """The plot's data, and a text that names where to see it."""
        return {_PLOTLY: self.data(), "text/plain": "a plot: open it with JupyterLab, or read report.html"}


class Section(tuple[Block, ...]):
    """Blocks below each other; an empty section shows nothing."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        from IPython.display import display  # only in the kernel of a notebook

        display(*self)


@dataclass(frozen=True, slots=True)
class Page:
    """A page; ``title`` is the title of its window."""

    title: str
    blocks: Sequence[Block]

    @property
    def plots(self) -> list[Plot]:
        """The plots of the page, in order."""
        return [block for block in self.blocks if isinstance(block, Plot)]


def titled(title: str, figure: go.Figure | None, below: str = "") -> Section:
    """A plot below its heading; an empty section if there is no plot."""
    return Section() if figure is None else Section((Heading(title, below), Plot(figure, file_name(title))))


def file_name(title: str) -> str:
    """The name of a plot's file, made from its title: ``Loss by rate`` → ``loss-by-rate``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "plot"


def measured(setup: RunSetup) -> str:
    """The line about what was measured, as HTML; a browser breaks it between its parts."""
    parts = (f"<span>{escape(part)}</span>" for part in setup_line(setup).parts)
    return f'<p class="setup">{" · ".join(parts)}</p>'


def style() -> str:
    """The style sheet of the blocks, as an HTML element."""
    css = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def figure(column: Column, value: Figure) -> str:
    """A figure as text, with grouped thousands; large figures have no digits after the point."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column.digits == "six":
            return f"{value:.6g}"
        if column.digits == "rate":
            return whole_rate(value, grouped=True)
        if column.digits == "all":
            return f"{value:,.12g}"
        if 0 < abs(value) < _LEAST_OF_TWO_DECIMALS:
            return number(value)
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 10_000 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def scrolling(table: str) -> str:
    """A table in an element that scrolls if the table is wider than the page."""
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
    """The title attribute of an element, which browsers show under the pointer."""
    return f' title="{escape(text)}"' if text else ""


def facts_table(facts: Mapping[str, str]) -> Html:
    """A table of facts (HTML) by name; empty facts are left out."""
    body = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in facts.items() if text)
    return block(f'<table class="facts"><tbody>{body}</tbody></table>')


def block(inner: str) -> Html:
    """A part of a page, with the style of :func:`style`."""
    return Html(f'<div class="hydra">{inner}</div>')


T = TypeVar("T")

_METADATA: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell of a notebook: its code, and the blocks that the code shows; without code it is a heading."""

    source: str
    blocks: Sequence[Block] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportNotebook(Generic[T]):
    """The contents of a notebook.

    Attributes:
        module: the module of ``hydra.jupyter`` that its code calls; it has ``load`` and the sections.
        parameter: the variable that names the folder, and a comment about it.
        variable: the variable for the result of ``load``.
        sections: its headings, and a function for each section.
    """

    module: str
    parameter: tuple[str, str]
    variable: str
    sections: Sequence[Heading | Callable[[T], Html | Section]]

    def cells(self, loaded: T) -> Iterator[NotebookCell]:
        """The cells, made from the result of ``load``."""
        name, what = self.parameter
        yield NotebookCell(f'{name} = "."  # {what}; report.ipynb is in it', tags=("parameters",))
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
    cells_ = [{"id": f"cell-{number:02}", **_cell_object(cell)} for number, cell in enumerate(cells)]
    body = {"cells": cells_, "metadata": {**_METADATA, "title": title}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _cell_object(cell: NotebookCell) -> dict[str, Any]:
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
