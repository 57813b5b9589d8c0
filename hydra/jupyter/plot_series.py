"""The rows and steps of a run that form the lines of plots, with their labels and colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from plotly.colors import qualitative, sample_colorscale

from hydra.events.value_formatting import counted
from hydra.jupyter.drawing import Marked
from hydra.jupyter.run_data import RunData
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Figure, Settings, names_of, number, value_of
from hydra.report.tables import headings, name_of
from hydra.sweep import rows_of, steps_of
from hydra.sweep.steps import rate_of


def across(run: RunData) -> str:
    """The column of the horizontal axis: the client count, or the row's name if the sweep lists points.

    If the run has one client count and one varied setting, and all its values are above zero, it is that setting.
    """
    sweep = run.scenario.sweep
    if len(sweep.counts) == len(sweep.crossed) == 1:
        values = [number(value) for value in run.scenario.values_of(sweep.crossed[0])]
        if len(values) > 1 and all(value is not None and value > 0 for value in values):
            return sweep.crossed[0]
    return rows_of(run.scenario).across


def of_lines(run: RunData) -> tuple[str, ...]:
    """The varied settings that distinguish lines: those that are not on the horizontal axis."""
    return tuple(name for name in run.scenario.sweep.crossed if name != across(run))


def marked(run: RunData) -> Marked:
    """All rows in the order of the horizontal axis, each with its warnings as one text."""
    found = [(row, "; ".join(note.text for note in notes)) for row, notes in zip(run.rows, run.notes, strict=True)]
    x = across(run)
    return sorted(found, key=lambda pair: number(pair[0].get(x)) or 0.0)


def has(rows: Marked, column: str) -> bool:
    """Whether a row has a figure in this column."""
    return any(number(row.get(column)) is not None for row, _ in rows)


# --- rows that a line goes through -----------------------------------------------------------------------------------


def groups(run: RunData, rows: Marked) -> list[tuple[str, str, Marked]]:
    """(label, colour, rows) for every combination of the varied settings that are not on the horizontal axis."""
    varied = of_lines(run)
    return [("", qualitative.D3[0], rows)] if not varied else together(run, rows, varied)


def together(run: RunData, rows: Marked, names: Sequence[str]) -> list[tuple[str, str, Marked]]:
    """(label, colour, rows) for every combination of these columns."""
    keys = list(dict.fromkeys(tuple(row.get(v) for v in names) for row, _ in rows))
    titles = headings(run.scenario)
    return [
        (
            ", ".join(_named(name, titles.get(name, name), value) for name, value in zip(names, key, strict=True)),
            color,
            [(r, n) for r, n in rows if tuple(r.get(v) for v in names) == key],
        )
        for key, color in zip(keys, scale(len(keys)), strict=True)
    ]


def _named(name: str, title: str, value: Figure) -> str:
    return counted(value, "subscriber") if name == CLIENTS and isinstance(value, int) else f"{title} {value}"


def by_clients(rows: Marked) -> list[tuple[str, str, Marked]]:
    """(label, colour, rows) for every client count."""
    counts = sorted({count for row, _ in rows if (count := number(row.get(CLIENTS))) is not None})
    colors = scale(len(counts))
    return [
        (counted(count, "subscriber"), color, [(r, n) for r, n in rows if r.get(CLIENTS) == count])
        for count, color in zip(counts, colors, strict=True)
    ]


def scale(count: int) -> list[str]:
    """Colours for ``count`` lines: a few lines get distinct colours, many lines an ordered scale."""
    if count <= len(qualitative.D3):
        return list(qualitative.D3[:count])
    return list(sample_colorscale("Viridis", shades(count)))


def shades(count: int) -> list[float]:
    """The part of a colour scale that is visible on white paper and on a dark page."""
    return [0.25 + 0.6 * i / max(count - 1, 1) for i in range(count)]


# --- steps -----------------------------------------------------------------------------------------------------------


def shown_steps(run: RunData) -> list[tuple[str, str, list[StepResult]]]:
    """(label, colour, steps) for each line of a plot of single steps."""
    found = steps_of(run.scenario).shown_steps(run.rows, run.results, partial(name_of, run.scenario))
    return [(label, color, steps) for (label, steps), color in zip(found, scale(len(found)), strict=True)]


@dataclass(frozen=True, slots=True)
class SearchCurve:
    """All steps of a search, slowest first, that differ in the rate only.

    Rows have their figures; rows of steps that did not pass are marked.
    """

    clients: int
    settings: Settings
    label: str
    color: str
    steps: list[StepResult]

    @property
    def rows(self) -> Marked:
        """The figures of each step, slowest first."""
        return [
            (dict(step.figures.cells), "" if step.figures.passing.passed else "did not pass") for step in self.steps
        ]


def tried(run: RunData) -> list[SearchCurve]:
    """The steps of a search without a cohort, by client count and all settings except the rate."""
    found: dict[tuple[int, Settings], list[StepResult]] = {}
    for r in sorted(run.results, key=rate_of):
        if r.status == "ok" and r.plan.cohort.kind == "none":
            key = (r.plan.clients, replace(r.plan.settings, rate="max"))
            found.setdefault(key, []).append(r)
    names = dict.fromkeys(name for _, settings in found for name in names_of(settings))
    varied = [name for name in names if len({value_of(settings, name) for _, settings in found}) > 1]
    order = sorted(found, key=lambda key: (key[0], [_rank(value_of(key[1], name)) for name in varied]))
    return [
        SearchCurve(
            clients,
            settings,
            f"{counted(clients, 'subscriber')}{_set_to(settings, varied)}",
            color,
            found[clients, settings],
        )
        for (clients, settings), color in zip(order, scale(len(order)), strict=True)
    ]


def _rank(value: Figure) -> tuple[bool, Any]:
    """The sort key of a setting's value; None comes first."""
    return value is not None, value


def _set_to(settings: Settings, names: Iterable[str]) -> str:
    """The settings that distinguish steps, as text: ``, sndhwm 1,000, nodrop``; settings that are off are left out."""
    values = [(name, value_of(settings, name)) for name in names]
    texts = [
        name if value is True else f"{name} {value:,}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in values
        if value is not None and value is not False
    ]
    return "".join(f", {text}" for text in texts)
