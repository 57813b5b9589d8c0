"""Checks of an experiment's file beyond its types: its expressions, their names, and the columns of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from string import Formatter

from hydra.config.experiment_file import ExperimentFile, TableEntry, Values
from hydra.config.validation import refusals_in
from hydra.errors import ConfigError, Key, RefusedError
from hydra.experiments.columns import is_known
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
        RefusedKeyError: an expression cannot be read, or names something unknown; a column is not defined.
    """
    known = {*ALWAYS, *_OF_ROWS, *_names(file)}
    with refusals_in(file.path):
        _check_functions(file)
        for key, text in (*_of_parts(file), *_of_tables(file)):
            try:
                names = parsed(text).names
            except ValueError as error:
                raise RefusedError(key, str(error), "write arithmetic and calls of functions") from error
            for name in sorted(names - known):
                raise _unknown(key, name, known)
        for n, table in enumerate(file.tables):
            for name in (*table.columns, *table.optional, *table.compared, *table.y):
                if not is_known(name, file.columns):
                    raise _unknown(("tables", n, "columns"), name, file.columns)


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
            yield from (name for _, name, _, _ in Formatter().parse(pattern) if name)


def _of_values(key: Key, values: object) -> Iterator[tuple[Key, str]]:
    """The expressions among values, also within lists and tables."""
    if isinstance(values, str) and values.startswith("="):
        yield key, values[1:]
    elif isinstance(values, Mapping):
        for name, value in values.items():
            yield from _of_values((*key, name), value)
    elif isinstance(values, list | tuple):
        for n, value in enumerate(values):
            yield from _of_values((*key, n), value)


def _of_text(key: Key, text: str) -> Iterator[tuple[Key, str]]:
    yield from ((key, expression) for expression in in_text(text))


def _of_parts(file: ExperimentFile) -> Iterator[tuple[Key, str]]:
    values: Mapping[str, Values] = {"let": file.let, "scenario": file.scenario, "settings": file.settings}
    yield from _of_values((), values)
    for n, part in enumerate(file.parts):
        key: Key = ("parts", n)
        yield from _of_values(key, {"each": part.each, "scenario": part.scenario, "settings": part.settings})
        yield from (*_of_text((*key, "name"), part.name), *_of_text((*key, "about"), part.about))
        if part.needs:
            yield (*key, "needs"), part.needs
        for m, series in enumerate(part.series):
            yield from _of_values((*key, "series", m), {"each": series.each, "points": list(series.points)})
            for point in series.points:
                yield from _of_text((*key, "series", m, "points", "name"), str(point.get("name")))


def _of_tables(file: ExperimentFile) -> Iterator[tuple[Key, str]]:
    yield from ((("columns", name, "value"), of.value) for name, of in file.columns.items() if of.value)
    for n, table in enumerate(file.tables):
        yield from _of_table(("tables", n), table)


def _of_table(key: Key, table: TableEntry) -> Iterator[tuple[Key, str]]:
    single = {"only": table.only, "when": table.when}
    yield from (((*key, name), text) for name, text in single.items() if text)
    yield from _of_values((*key, "each"), table.each)
    several = {"let": table.let, "values": table.values, "marks": table.marks}
    if table.published is not None:
        several |= {"published.where": table.published.where}
        several |= {f"published.lines.{name}": where for name, where in table.published.lines.items()}
    for listed in table.listed:
        yield from (((*key, "listed", name), text) for name, text in listed.items() if name != "runs")
    for group, expressions in several.items():
        yield from (((*key, group, name), text) for name, text in expressions.items())
    for note in table.notes:
        yield from (*_of_text((*key, "notes"), note.text), *_of_text((*key, "notes"), note.each))
        if note.only:
            yield (*key, "notes"), note.only
