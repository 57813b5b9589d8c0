"""Compares run directories: the comparison as text and as JSON, and the ``--fail-if`` conditions that hold."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import Any, Final

from hydra.analysis.compared_figures import measured_columns
from hydra.analysis.compared_runs import ComparedRow, ComparedRun, EnvironmentDifference, MatchedRow, are_systems
from hydra.analysis.comparison import (
    LEAST_REPEATS,
    NO_DIFFERENCE,
    NO_SPREAD,
    NO_VERDICT,
    STATED,
    Comparison,
    FigureComparison,
    compare,
    family,
)
from hydra.analysis.statistics import MOST
from hydra.events.value_formatting import MARK, UNKNOWN, counted, number
from hydra.measure.column import CLEAN, NOT_CLEAN_WHY, Column
from hydra.model import Figure, merged
from hydra.report.comparison_input import load_sides
from hydra.report.fail_conditions import Condition, conditions_met, numbers, parse
from hydra.report.figure_texts import NOTED
from hydra.report.run_setup import setup_line, setup_object
from hydra.report.table import Document, PartedLine, Table, TableCell, TableRow, plain, without_empty_columns

_HEADS: Final = ("row", "run", "figure", "base", "run's", "difference", "95 % interval", "p", "repeats", "verdict")
_RIGHT: Final = (*[False] * 3, *[True] * 6, False)
DEFAULT: Final = "the default"
"""The value of a key that the comparison does not give to a run."""
_WORST: Final = 1000.0
"""Ratios from this value on are shown as larger than it."""


def document(comparison: Comparison, *, whole: bool = False) -> Document:
    """The comparison as a document.

    Args:
        comparison: the comparison.
        whole: whether the table of other figures also has figures without a difference.
    """
    shown = [c for c in comparison.others if whole or c.differs]
    alone = ["run"] if len(comparison.sides) == 2 else []  # the title names it already
    parts: list[str | PartedLine | Table] = [
        f"# {' against '.join(side.name for side in (*comparison.sides[1:], comparison.sides[0]))}",
        measured_line(comparison),
        "\n".join(f"- {text}" for text in apart(comparison)),
        method(comparison),
        *(f"- {MARK} {text}" for text in warnings(comparison)),
        f"## {comparison.primary.name}",
        table(comparison, comparison.first, _figure, ["figure", *alone]),
        "\n".join(f"- {text}" for text in what_would_show(comparison)),
        "## Other figures" if comparison.others else "",
        table(comparison, shown, _figure, alone) if shown else "",
        "" if whole else _rest(comparison),
        "## What else differs" if what_else(comparison) else "",
        environment(comparison) if what_else(comparison) else "",
        _listed("Rows that are missing in some runs", _unmatched(comparison)),
        _listed("Warnings of single rows", _noted(comparison)),
    ]
    return [part for part in parts if part]


def measured_line(comparison: Comparison) -> PartedLine:
    """What all runs together measured."""
    return setup_line(merged(side.setup for side in comparison.sides))


def apart(comparison: Comparison) -> Iterator[str]:
    """What differs between the runs on purpose, and what each of several systems acknowledges and keeps."""
    sides = comparison.sides
    keys = dict.fromkeys(key for side in sides for key in side.apart)
    values = {key: [f"{side.apart.get(key, DEFAULT)} ({side.name})" for side in sides] for key in keys}
    parts = [f"{key.removeprefix('settings.')}: {', '.join(its)}" for key, its in values.items()]
    if are_systems(sides):
        parts.insert(0, f"system: {', '.join(f'{side.system} ({side.name})' for side in sides)}")
    if parts:
        yield f"What differs: {'; '.join(parts)}."
    if are_systems(sides):
        yield " ".join(f"{side.name} {side.guarantees or 'does not state what it acknowledges'}." for side in sides)


def method(comparison: Comparison) -> str:
    """How the runs were compared, in two sentences."""
    how = "pairs of interleaved repeats" if comparison.paired else "repeats as independent samples"
    better = comparison.primary.better
    unit = ", ".join(filter(None, [comparison.primary.unit, f"{better} is better" if better else ""]))
    return (
        f"Base: {comparison.sides[0].name}. Compared: {how}. Primary figure: {comparison.primary.name}"
        f"{f' ({unit})' if unit else ''}; p and intervals are adjusted among its rows, and "
        "among all other figures: all intervals of one of these sets contain the true values with 95 % confidence."
    )


def warnings(comparison: Comparison) -> Iterator[str]:
    """The warnings about the comparison as a whole."""
    if not comparison.paired:
        yield (
            "the runs were not interleaved: other changes between them (neighbours, temperature, caches) count as a "
            "difference, and no run is called better; measure them with --compare, or with hydra compare --run"
        )
    few = {each.name: min(len(row.repeats) for row in each.rows) for each in comparison.sides if each.rows}
    if alone := [name for name, count in few.items() if count < LEAST_REPEATS]:
        yield (
            f"{', '.join(alone)}: fewer than {LEAST_REPEATS} repeats do not show the spread, so there is no verdict; "
            "measure with --repeat"
        )


def table(
    comparison: Comparison,
    compared: Sequence[FigureComparison],
    text: Callable[[Column, Figure], str],
    left_out: Sequence[str] = (),
) -> Table:
    """A table with a row for each compared figure, without columns that are empty in all rows.

    ``MARK`` stands beside a row that is not clean in a run, ``NOTED`` beside other rows with warnings.

    Args:
        comparison: the comparison.
        compared: the compared figures to show.
        text: formats a figure.
        left_out: heads of columns that are not shown.
    """
    body = [
        (
            each.row,
            each.other,
            each.column.name,
            text(each.column, each.base_shown),
            text(each.column, each.other_shown),
            change(each),
            interval(each),
            probability(each.p_adjusted),
            samples(each, paired=comparison.paired),
            TableCell(verdict(each), strong=each.differs),
        )
        for each in compared
    ]
    kept = [head not in left_out for head in _HEADS]
    marks = {matched.name: _mark(matched) for matched in comparison.rows}
    rows = [
        TableRow(list(compress(cells, kept)), marks.get(each.row, ""))
        for each, cells in zip(compared, body, strict=True)
    ]
    return without_empty_columns(Table(list(compress(_HEADS, kept)), rows, list(compress(_RIGHT, kept))))


def what_would_show(comparison: Comparison) -> Iterator[str]:
    """For each row whose primary figure shows no difference, what its repeats can show, and how many it needs."""
    for each in comparison.first:
        if each.verdict != NO_DIFFERENCE or each.shown_from is None or not math.isfinite(each.shown_from):
            continue
        few = counted(min(each.repeats), "pair" if comparison.paired else "repeat")
        yield (
            f"{each.row}, {each.other}: by the measured spread, {few} show a difference of "
            f"{_changed(each, each.shown_from).removeprefix('+')} (in four of five comparisons); {_more_repeats(each)}"
        )


def _more_repeats(compared: FigureComparison) -> str:
    size, needed = f"a difference of {100 * STATED:g} %", compared.repeats_needed
    if needed is None:
        base_is_0 = compared.kind == "difference" and not compared.level
        return "of a base of 0 there is no percentage" if base_is_0 else f"{size} needs more than {MOST:,} repeats"
    if needed <= min(compared.repeats):
        return f"so {size} is improbable" if compared.kind == "ratio" else f"{size} of the base is improbable"
    return f"{size} needs about {needed:,} repeats (--repeat {needed})"


def _mark(matched: MatchedRow) -> str:
    if any(row.not_clean for row in matched.rows):
        return MARK
    return NOTED if any(row.notes for row in matched.rows) else ""


def _figure(_: Column, value: Figure) -> str:
    return UNKNOWN if value is None else number(value)


def change(compared: FigureComparison) -> str:
    """The change as text: ``+3.2 %``, or a difference in the figure's unit."""
    return _changed(compared, compared.change)


def interval(compared: FigureComparison) -> str:
    """The interval of the change as text: ``+1.0 … +5.4 %``."""
    if compared.low is None or compared.high is None:
        return UNKNOWN
    low, high = _changed(compared, compared.low), _changed(compared, compared.high)
    unit = low.partition(" ")[2]
    return f"{low.removesuffix(f' {unit}') if unit and high.endswith(unit) else low} … {high}"


def _changed(compared: FigureComparison, value: float | None) -> str:
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value) or (compared.kind == "ratio" and value <= -1):
        return "no limit"
    if compared.kind == "difference":
        unit = f" {compared.column.unit}" if compared.column.unit else ""
        sign = "-" if value < 0 else "+"
        return f"{sign}{number(abs(value))}{' points' if compared.column.unit == '%' else unit}"
    if value + 1 >= _WORST:
        return f"> {_WORST:g}×"
    digits = 2 if abs(value) < 0.001 else 1 if abs(value) < 1 else 0
    return f"{100 * value:+.{digits}f} %"


def probability(p: float | None) -> str:
    """A p value as text."""
    return UNKNOWN if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def samples(compared: FigureComparison, *, paired: bool) -> str:
    """The number of repeats, and how many were left out."""
    a, b = compared.repeats
    text = f"{a} pairs" if paired else f"{a} and {b}"
    return f"{text} ({compared.left_out})" if compared.left_out else text


def verdict(compared: FigureComparison) -> str:
    """The verdict, with the reason if there is one."""
    return f"{compared.verdict}: {compared.reason}" if compared.reason else compared.verdict


def _rest(comparison: Comparison) -> str:
    """A line with the number of other figures that the table leaves out."""
    counts = Counter(each.verdict for each in comparison.others if not each.differs)
    texts = [
        f"{counts[verdict]} with {verdict}" for verdict in (NO_DIFFERENCE, NO_SPREAD, NO_VERDICT) if counts[verdict]
    ]
    return f"Not in the table: {' and '.join(texts)}; --all prints them." if texts else ""


def what_else(comparison: Comparison) -> list[EnvironmentDifference]:
    """What differs beside that which the head names."""
    named = {key for side in comparison.sides for key in side.apart}
    named |= {"name", "system"} if are_systems(comparison.sides) else set()
    return [each for each in comparison.environment if each.what.removeprefix("tables.") not in named]


def environment(comparison: Comparison) -> Table:
    """The table of facts that differ between the runs."""
    heads = ["", *(side.name for side in comparison.sides)]
    return plain(heads, ([each.what, *(value or UNKNOWN for value in each.values)] for each in what_else(comparison)))


def _unmatched(comparison: Comparison) -> list[str]:
    return [f"{name}: {row}" for name, rows in comparison.unmatched.items() for row in rows]


def row_warning_lines(comparison: Comparison) -> list[str]:
    """The warnings of single rows of each run, a line for each row and run."""
    return [
        f"{row.name}, {side.name}: {'; '.join([*_not_clean(its), *its.notes])}"
        for row in comparison.rows
        for side, its in zip(comparison.sides, row.rows, strict=True)
        if its.notes or its.not_clean
    ]


def _not_clean(row: ComparedRow) -> list[str]:
    return [f"{MARK} not clean: {row.not_clean}"] if row.not_clean else []


def _noted(comparison: Comparison) -> list[str]:
    """The same warnings, each once, after the names of the rows that have it."""
    rows: dict[str, list[str]] = {}
    for row in comparison.rows:
        for side, its in zip(comparison.sides, row.rows, strict=True):
            for note in (*_not_clean(its), *its.notes):
                rows.setdefault(note, []).append(f"{row.name}, {side.name}")
    return [f"{'; '.join(names)}: {note}" for note, names in rows.items()]


def _listed(title: str, lines: Iterable[str]) -> str:
    items = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{items}" if items else ""


def json_text(comparison: Comparison) -> str:
    """The comparison as JSON: all figures, in full precision."""
    body = {
        "base": comparison.sides[0].name,
        "runs": [_run_object(side) for side in comparison.sides],
        "paired": comparison.paired,
        "primary": comparison.primary.name,
        "differs": list(apart(comparison)),
        "comparisons": [
            *(_figure_object(each, is_primary=True) for each in comparison.first),
            *(_figure_object(each, is_primary=False) for each in comparison.others),
        ],
        "rows": [{"row": row.name, **row.settings, **_judgement(comparison, row)} for row in comparison.rows],
        "unmatched": comparison.unmatched,
        "environment": [
            {"what": each.what, **dict(zip((side.name for side in comparison.sides), each.values, strict=True))}
            for each in comparison.environment
        ],
        "warnings": [*warnings(comparison), *row_warning_lines(comparison)],
    }
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def _run_object(side: ComparedRun) -> dict[str, Any]:
    setup = setup_object(side.setup)
    return {"name": side.name, "directory": side.directory, "system": side.system, "setup": setup}


def _judgement(comparison: Comparison, row: MatchedRow) -> dict[str, Any]:
    """Whether a row is clean in all runs, and why not, by run."""
    why = {side.name: its.not_clean for side, its in zip(comparison.sides, row.rows, strict=True) if its.not_clean}
    return {CLEAN: not why, NOT_CLEAN_WHY: why}


def _figure_object(compared: FigureComparison, *, is_primary: bool) -> dict[str, Any]:
    column: Column = compared.column
    values = {name: _finite(value) for name, value in asdict(compared).items() if name != "column"}
    return {"figure": column.name, "unit": column.unit, "primary": is_primary, **values}


def _finite(value: Figure | Sequence[int]) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def condition_lines(conditions: Sequence[Condition], comparison: Comparison) -> list[str]:
    """A line for every ``--fail-if`` condition that holds for a row of a run, or for a row compared with the base."""
    lines = [
        f"{side.name}, {line}"
        for number, side in enumerate(comparison.sides)
        for line in conditions_met(
            [condition for condition in conditions if not condition.of_base],
            [dict(row.rows[number].shown) for row in comparison.rows],
        )
    ]
    for condition in (condition for condition in conditions if condition.of_base):
        for compared in _of(comparison, condition.column):
            if compared.change is None or math.isnan(compared.change):
                lines.append(f"{compared.other}, {compared.row}: {condition}: the figure is unknown")
            elif condition.holds_for(*_against(compared)):
                lines.append(
                    f"{compared.other}, {compared.row}: {condition} holds, it is {change(compared)} "
                    f"(95 % interval {interval(compared)})"
                )
    if any(condition.of_base for condition in conditions):
        base = comparison.sides[0].name
        lines += [f"only {base} has the row {name}" for name in comparison.unmatched.get(base, ())]
    return lines


def _of(comparison: Comparison, column: str) -> Sequence[FigureComparison]:
    """The comparisons of a figure in each row and run: those of the tables if they are there."""
    known = [each for each in (*comparison.first, *comparison.others) if each.column.name == column]
    return known or family(comparison.sides, comparison.rows, [column], paired=comparison.paired)


def _against(compared: FigureComparison) -> tuple[float, float]:
    """The figure and the base's figure; if the change is a ratio, relative to the base."""
    base = 1.0 if compared.level is None else compared.level
    change_ = compared.change or 0.0
    return base + change_, base


def compare_runs(folders: Sequence[Path], figure: str, fail_if: Sequence[str]) -> tuple[Comparison, list[str]]:
    """Compares runs; returns the comparison, and a line for every condition that holds.

    Args:
        folders: run directories, the base first; or folders of interleaved runs.
        figure: name of the primary figure; "": the default.
        fail_if: conditions as users write them.

    Raises:
        UsageError: the runs cannot be compared, or there is no such figure.
        RunDirectoryError: a run cannot be read.
    """
    sides, paired = load_sides(folders)
    columns = sides[0].columns
    conditions = [parse(text, numbers(columns), measured_columns(columns)) for text in fail_if]
    comparison = compare(sides, paired=paired, figure=figure)
    return comparison, condition_lines(conditions, comparison)
