#!/usr/bin/env python3
"""Writes the tables of columns in ``docs/`` anew, from their records: what all have, and what each system adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from hydra.config import plugins
from hydra.measure.column import Column
from hydra.measure.step_columns import BATCH, PUBLISHED, step_columns
from hydra.sweep.search_columns import FAILED, LENGTH, beside, published
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.system import SystemSpec

DOCS = Path(__file__).resolve().parents[1] / "docs"
SERIES: tuple[SearchSeries, ...] = ("max_rate", "nodrop", "loss", "reconnecting", "slow")
_PART = re.compile(r"(<!-- columns: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def pages() -> Mapping[Path, Mapping[str, Iterable[Column]]]:
    """The columns of each table, by its name, of each page: a system that adds some has them on a page of its own."""
    own = {spec.name: [*([] if spec.batch == BATCH else [spec.batch]), *spec.columns] for spec in systems()}
    return {
        DOCS / "measurements.md": generic(),
        **{DOCS / f"{name}.md": {name: columns} for name, columns in own.items() if columns},
    }


def systems() -> list[SystemSpec]:
    """Those of Hydra's own."""
    return [spec for spec in plugins.systems().values() if (DOCS / f"{spec.name}.md").exists()]


def generic() -> Mapping[str, Iterable[Column]]:
    """The columns of every system's rows, by the name of their table."""
    names = {column.name for column in PUBLISHED}
    every = {column.name: column for series in SERIES for column in beside("<series>", series)}
    return {
        "published": PUBLISHED,
        "searched": published(SearchSpec(series=(*SearchSpec().series, "nodrop")))[1:],
        "step": [column for column in step_columns() if column.name not in names],
        "beside": [*every.values(), LENGTH, FAILED],
    }


def table(columns: Iterable[Column]) -> str:
    """A table of Markdown; columns side by side that share all but their name share a line."""
    lines = ["| in `table.csv` | unit | definition | repeated |", "|---|---|---|---|"]
    for (unit, text, repeats), same in groupby(columns, lambda c: (c.unit, c.help, c.repeats)):
        lines.append(f"| {', '.join(f'`{column.name}`' for column in same)} | {unit} | {text} | {repeats} |")
    return "\n".join(lines) + "\n"


def renewed(page: str, parts: Mapping[str, Iterable[Column]]) -> str:
    """The page with its tables made anew.

    Raises:
        ValueError: it has not each of them once.
    """
    tables = {name: table(columns) for name, columns in parts.items()}
    if sorted(found[1] for found in _PART.findall(page)) != sorted(tables):
        raise ValueError(f"the page must have each of {', '.join(tables)} once")
    return _PART.sub(lambda part: part[1] + tables[part[2]] + part[3], page)


if __name__ == "__main__":
    for path, parts in pages().items():
        path.write_text(renewed(path.read_text(encoding="utf-8"), parts), encoding="utf-8")
