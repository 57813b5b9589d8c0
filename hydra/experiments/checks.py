"""Checks of an experiment's file beyond its types: its expressions, their names, and the columns of its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import get_args, get_type_hints

from hydra.config.experiment_file import ColumnEntry, ExperimentFile, Expression, PartEntry, TableEntry, Text
from hydra.config.validation import refusals_in
from hydra.errors import ConfigError, Key, RefusedError
from hydra.experiments.columns import columns_of, is_known
from hydra.experiments.expression import in_text, parsed
from hydra.experiments.scope import ALWAYS, function_of

_OF_ROWS = (
    *("name", "row", "publishers", "subscribers", "servers", "server_count", "window_s", "before", "figures"),
    *("index", "server", "runs", "part", "at", "lines", "scenarios"),
)
"""The names of rows, of parts and of points."""


def check(file: ExperimentFile) -> None:
    """Checks every expression of a file.

    Raises:
        RefusedKeyError: an expression cannot be read, or names something unknown; a column is not defined, or is
            not one of its table; a point has no name.
    """
    with refusals_in(file.path):
        known = {*ALWAYS, *_OF_ROWS, *_names(file)}
        _check_functions(file)
        for key, text in _expressions(file, ExperimentFile, ()):
            try:
                names = parsed(text).names
            except ValueError as error:
                raise RefusedError(key, str(error), "write arithmetic and calls of functions") from error
            for name in sorted(names - known):
                raise _unknown(key, name, known)
        for n, table in enumerate(file.tables):
            _check_columns(("tables", n), table, file.columns)
        for n, part in enumerate(file.parts):
            _check_points(("parts", n), part, {*file.settings, *part.settings})


def _check_columns(key: Key, table: TableEntry, defined: Mapping[str, ColumnEntry]) -> None:
    for name in (*table.columns, *table.optional, *table.compared, *table.y):
        if not is_known(name, defined):
            raise _unknown((*key, "columns"), name, defined)
    columns = columns_of(table.columns, defined)
    for of, names in {"compared": table.compared, "optional": table.optional, "y": table.y}.items():
        for name in names:
            if name not in columns:
                raise RefusedError((*key, of), f"{name!r} is no column of this table", "add it there")


def _check_points(key: Key, part: PartEntry, settings: Collection[str]) -> None:
    for m, series in enumerate(part.series):
        for n, point in enumerate(series.points):
            if "name" not in {*settings, *point}:
                raise RefusedError((*key, "series", m, "points", n), "has no name", "add it")


def _check_functions(file: ExperimentFile) -> None:
    functions: list[tuple[Key, str]] = [(("functions", name), path) for name, path in file.functions.items()]
    functions += [(("lines",), file.lines)] if file.lines else []
    for key, path in functions:
        try:
            function_of(path)
        except ConfigError as error:
            raise RefusedError(key, error.what, error.remedy) from error


def _unknown(key: Key, name: str, known: Iterable[str]) -> RefusedError:
    close = get_close_matches(name, list(known), n=1)
    return RefusedError(key, f"has an unknown name {name!r}", f"did you mean {close[0]}?" if close else "define it")


def _names(file: ExperimentFile) -> Iterator[str]:
    """The names that the file itself defines."""
    yield from (*file.functions, *file.let, *file.settings)
    for part in file.parts:
        yield from (*part.each, *part.settings)
        for series in part.series:
            yield from series.each
            for point in series.points:
                yield from point
    for document in file.documents:
        yield from document
    for table in file.tables:
        yield from (*table.each, *table.let, *table.sets, *(table.published.lines if table.published else ()))
        for pattern in table.points:
            for name in _in_text(("tables", "points"), pattern):
                if not name.isidentifier():
                    raise RefusedError(("tables", "points"), f"{name!r} in braces is no name", "write letters and _")
                yield name


def _expressions(value: object, hint: object, key: Key) -> Iterator[tuple[Key, str]]:
    """The expressions in a value of this type, each with its key."""
    if is_dataclass(value):
        hints = get_type_hints(type(value), include_extras=True)
        for of in fields(value):
            yield from _expressions(getattr(value, of.name), hints[of.name], (*key, of.name))
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _expressions(each, _type_within(hint), (*key, name))
    elif isinstance(value, list | tuple):
        for n, each in enumerate(value):
            yield from _expressions(each, _type_within(hint), (*key, n))
    elif isinstance(value, str) and value:
        if hint == Expression:
            yield key, value
        elif hint is object and value.startswith("="):
            yield key, value[1:]
        elif hint == Text or (hint is object and key[-1] == "name"):  # the name of a point
            yield from ((key, expression) for expression in _in_text(key, value))


def _in_text(key: Key, text: str) -> list[str]:
    try:
        return in_text(text)
    except ValueError as error:
        raise RefusedError(key, f"cannot be read: {error}", "write {{ for a brace") from error


def _type_within(hint: object) -> object:
    """The type of the values of a table or a list."""
    first, *others = get_args(hint) or (object,)
    return first if others in ([], [Ellipsis]) else others[0]
