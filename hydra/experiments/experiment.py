"""An experiment as a command runs it: its parts in order, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from hydra.config.experiment_file import ExperimentFile, OptionEntry
from hydra.config.file_locations import experiments
from hydra.errors import UsageError
from hydra.experiments.checks import check
from hydra.experiments.measured_rows import measured
from hydra.experiments.parts import next_part, parts_of
from hydra.experiments.scope import function_of
from hydra.experiments.tables import tables_of
from hydra.system.experiment import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

Parts = Callable[[ExperimentOptions], Sequence[ExperimentPart]]
"""A function that returns all parts of an experiment, if they are known before anything is measured."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A published experiment.

    Attributes:
        name, title, source, scale, takes_s, options: see ``ExperimentFile``.
        next_part: returns the part after those that are done, None after the last one. The function is pure, so an
            interrupted experiment continues with the same call.
        views: makes the tables from the parts that are done.
        parts: returns all parts, if they are known before anything is measured.
        lines: makes the lines that are printed after the tables for scripts that parse them.
    """

    name: str
    title: str
    source: str
    scale: float
    takes_s: float
    next_part: Callable[[ExperimentOptions, Sequence[PartResult]], ExperimentPart | None]
    views: Callable[[ExperimentOptions, Sequence[PartResult]], Sequence[ExperimentTable]]
    parts: Parts | None = None
    options: Sequence[OptionEntry] = ()
    lines: Callable[[Sequence[PartResult]], Sequence[str]] = lambda _: ()


def experiment_of(file: ExperimentFile) -> Experiment:
    """The experiment of a file.

    Raises:
        RefusedKeyError: an expression of the file is wrong.
    """
    check(file)
    return Experiment(
        name=file.name,
        title=file.title,
        source=file.source,
        scale=file.scale,
        takes_s=file.takes_s,
        options=file.options,
        next_part=partial(next_part, file),
        views=partial(tables_of, file),
        parts=None if any(part.needs for part in file.parts) else lambda order: parts_of(file, order, ()),
        lines=partial(_lines, file.lines),
    )


def _lines(function: str, done: Sequence[PartResult]) -> list[str]:
    """The lines of the clients of each row, below its name."""
    lines: list[str] = []
    for row in measured(done) if function else ():
        made = function_of(function)(row.publishers, row.subscribers)
        lines += [f"# {row.name}", *(made if isinstance(made, list) else ())]
    return lines


def find(system: str, name: str) -> Experiment:
    """The experiment with this name.

    Args:
        system: name of the experiment's system; "" for any system.
        name: as the user wrote it.

    Raises:
        UsageError: there is no such experiment; the text names the nearest one, or all.
    """
    known = experiments(system)
    if not name:
        raise UsageError("no experiment is named", f"name one of {', '.join(known)}")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"no experiment {name!r}", f"{hint}known experiments: {', '.join(known)}")
    return experiment_of(known[name])
