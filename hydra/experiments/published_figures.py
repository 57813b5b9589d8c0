"""Published figures beside measured ones: the lines of a published table that belong to a row, and the ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from hydra.config.experiment_file import Expressions, PublishedEntry
from hydra.errors import ConfigError
from hydra.experiments.expression import Scope, parsed
from hydra.measure.column import Column
from hydra.model import Evidence, Figure
from hydra.report.reference_files import parsed as table_of
from hydra.report.reference_files import text_of
from hydra.system.experiment import ratio

Row = Mapping[str, Figure]

PUBLISHED: Final = "_published"
RATIO: Final = "_ratio"
"""Suffixes of the columns for the published figure, and for measured / published."""


@cache
def published(file: str) -> tuple[Row, ...]:
    """The rows of a published table; errors as for ``text_of``."""
    return table_of(text_of(file))[1]


def lines_of(file: str, where: Expressions, scope: Scope) -> list[Row]:
    """The lines of a published table with these values."""
    values = {name: parsed(text).value(scope) for name, text in where.items()}
    return [row for row in published(file) if all(row[name] == value for name, value in values.items())]


def published_row(entry: PublishedEntry, compared: Expressions, scope: Scope) -> Row | None:
    """The published figures of a row; None if there are none.

    Args:
        entry: where they are.
        compared: the expressions of the columns with published figures, which are computed from the lines.
        scope: the names of the row.
    """
    if entry.values:
        return entry.values
    if entry.where:
        return next(iter(lines_of(entry.file, entry.where, scope)), None)
    lines = {name: lines_of(entry.file, where, scope) for name, where in entry.lines.items()}
    return figures_of(compared, {**scope, **lines}) if any(lines.values()) else None


def figures_of(expressions: Expressions, scope: Scope) -> dict[str, Figure]:
    """The values of expressions by name."""
    return {name: figure_of(name, parsed(text).value(scope)) for name, text in expressions.items()}


def figure_of(name: str, value: object) -> Figure:
    """A value as the figure of a column.

    Raises:
        ConfigError: it is none, such as a list.
    """
    if value is None or isinstance(value, str | int | float | Evidence):
        return value
    raise ConfigError(f"{value!r} is no figure of the column {name}", "correct the experiment's file")


def with_published_columns(columns: Sequence[Column], compared: Sequence[str]) -> Iterator[Column]:
    """The columns; those with published figures are followed by the columns of these and of the ratio."""
    for column in columns:
        yield column
        if column.name in compared:
            name = column.name
            yield Column(f"{name}{PUBLISHED}", column.unit, "the published figure", "published", column.digits)
            yield Column(f"{name}{RATIO}", "", "measured / published", "ratio")


def with_published(measured: Row, published_: Row | None, figures: Sequence[str]) -> dict[str, Figure]:
    """A measured row, extended by the published figures and the ratios.

    Args:
        measured: figures by name.
        published_: the published row with the same keys; None: there is none.
        figures: names of the published figures.
    """
    row = dict(measured)
    for name in figures:
        published_value = (published_ or {}).get(name)
        row[f"{name}{PUBLISHED}"] = published_value
        row[f"{name}{RATIO}"] = ratio(measured.get(name), published_value)
    return row
