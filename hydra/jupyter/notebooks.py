"""A report as a notebook: cells of code, with what they show already below them, that Jupyter opens and runs again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hydra.jupyter.blocks import Block, Heading, Html, Section

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
