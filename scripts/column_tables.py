#!/usr/bin/env python3
"""Writes the tables of columns in ``docs/measurements.md`` anew, from the records in ``hydra/columns``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from hydra import plugins
from hydra.columns import Column
from hydra.columns.searched import FAILED, LENGTH, beside, published
from hydra.columns.step import BATCH, PUBLISHED, step_columns
from hydra.model import SearchSeries, SearchSpec

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
SERIES: tuple[SearchSeries, ...] = ("max_rate", "nodrop", "loss", "reconnecting", "slow")
_PART = re.compile(r"(<!-- columns: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def parts() -> Mapping[str, Iterable[Column]]:
    """The columns of each table of the page, by its name there."""
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


def of_systems() -> str:
    """A table of what each system adds."""
    lines = ["| of | in `table.csv` | unit | definition | repeated |", "|---|---|---|---|---|"]
    lines += [
        f"| {spec.title} | `{column.name}` | {column.unit} | {column.help} | {column.repeats} |"
        for spec in plugins.systems().values()
        for column in (*([] if spec.batch == BATCH else [spec.batch]), *spec.columns)
    ]
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """The page with its tables made anew.

    Raises:
        ValueError: it has not each of them once.
    """
    tables = {name: table(columns) for name, columns in parts().items()}
    tables["systems"] = of_systems()
    if sorted(found[1] for found in _PART.findall(page)) != sorted(tables):
        raise ValueError(f"the page must have each of {', '.join(tables)} once")
    return _PART.sub(lambda part: part[1] + tables[part[2]] + part[3], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
