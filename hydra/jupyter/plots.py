"""The report's plots: which figures of a run are drawn against what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import plotly.graph_objects as go
from plotly.colors import qualitative, sample_colorscale

from hydra.columns import Column, searched
from hydra.columns.column import MICROSECONDS
from hydra.columns.names import AGGREGATE, AGGREGATE_MAX, AVG_RX, AVG_TX, CLIENTS, LOSS, POINT, REQUESTED, SHORTFALL
from hydra.columns.step import DUE, SENT, latency_columns, step_columns
from hydra.jupyter.drawing import Floor, Interval, Marked, dotted, finish, level, line, panels
from hydra.jupyter.recorded import Run
from hydra.model import SHARED, Figure, SearchSpec, Settings, StepResult, number, value_of
from hydra.results.registered import added_by, columns_of
from hydra.results.tables import headings
from hydra.sweep import Row

STEP: Final = {column.name: column for column in step_columns()}
RATES: Final = (AVG_TX, AVG_RX, AGGREGATE)
NOT_LOST: Final = ("late_pct", "undrained_pct", "unknown_pct")
"""What did not come in the window and is no loss."""


def rates(run: Run) -> go.Figure | None:
    """Rates against the client count, the published ones dotted; a panel a figure where settings vary."""
    search = run.scenario.sweep.search
    if search:
        return _two(run, list(searched.rates(search).values()), AGGREGATE_MAX)
    if not run.scenario.sweep.vary:
        return _two(run, RATES[:2], AGGREGATE)
    return _by_settings(run, [STEP[c] for c in RATES])


def latency(run: Run) -> go.Figure | None:
    """Latency percentiles against the client count; for a search, of the fastest step within its figure."""
    rows = _passing(run) if run.scenario.sweep.search else _marked(run)
    percentiles = next((columns for columns in map(latency_columns, (DUE, SENT)) if _has(rows, columns[0].name)), None)
    if percentiles is None:
        return None
    if run.scenario.sweep.vary:
        return _by_settings(run, [column for column in percentiles if column.title in ("p50", "p99", "max")])
    figure = go.Figure()
    shades = _shades(len(percentiles))
    for column, color in zip(percentiles, sample_colorscale("Plasma", shades), strict=True):
        line(figure, rows, across(run), column.name, column.title, color)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [percentiles[0].axis_title])


def loss(run: Run) -> go.Figure | None:
    """Loss against the client count; for a search, what fell short in each step against its rate.

    Where one line is enough for it, what came late, still waited or is unknown stands beside it.
    """
    if run.scenario.sweep.search is not None:
        return _shortfall(run, run.scenario.sweep.search)
    groups = _groups(run, _marked(run))
    everything = [row for _, _, group in groups for row in group]
    parts = [LOSS, *(c for c in NOT_LOST if len(groups) == 1 and any(number(row.get(c)) for row, _ in everything))]
    floor, figure = Floor(everything, parts), go.Figure()
    for label, color, group in groups:
        for part, its in zip(parts, (color, *qualitative.D3[1:]), strict=False):
            name = label if label and part == LOSS else STEP[part].title
            line(figure, group, across(run), part, name, its, place=floor)
    upwards = "% of what was due" if len(parts) > 1 else STEP[LOSS].axis_title
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [upwards], floor)


def _shortfall(run: Run, search: SearchSpec) -> go.Figure | None:
    """A point a step: whether one loses anything is chance, so no line is drawn from each to the next."""
    groups = _tried(run)
    everything = [row for _, _, group in groups for row in group]
    # Steps of earlier versions have their loss only.
    column = SHORTFALL if _has(everything, SHORTFALL) else LOSS
    floor, figure = Floor(everything, [column]), go.Figure()
    for label, color, group in groups:
        line(figure, group, REQUESTED, column, label, color, place=floor, joined=False)
    if figure.data and column == SHORTFALL:
        target = 100 * search.target
        level(figure, target, f"target {target:g} %")
    return finish(figure, STEP[REQUESTED].axis_title, [STEP[column].axis_title], floor)


def batches(run: Run) -> go.Figure | None:
    """What the size of a batch does, a line a client count; None where it does not vary."""
    rows = _marked(run)
    columns = [STEP[c] for c in (*RATES[:2], *(f"{p}_p99_us" for p in (DUE, SENT))) if _has(rows, c)]
    batch = added_by(run.scenario.system).batch
    if batch.name not in run.scenario.sweep.vary or not columns:
        return None
    figure = panels([f"Latency {c.title}" if c.unit == MICROSECONDS else c.title for c in columns])
    for panel, column in enumerate(columns, start=1):
        for label, color, group in _by_clients(rows):
            line(figure, group, batch.name, column.name, label, color, panel=panel)
    return finish(figure, batch.axis_title, [column.unit for column in columns])


def _two(run: Run, each: Sequence[str], together: str) -> go.Figure | None:
    """Rates of a client on the left, of all clients together on the right."""
    rows = _marked(run)
    sides = {"per client": [c for c in each if _has(rows, c)], "all clients together": [together]}
    sides = {title: columns for title, columns in sides.items() if any(_has(rows, c) for c in columns)}
    if not sides:
        return None
    figure, known = panels(list(sides)), columns_of(run.scenario)
    places = [(c, panel) for panel, columns in enumerate(sides.values(), start=1) for c in columns]
    for (column, panel), color in zip(places, qualitative.D3, strict=False):
        name = known.get(column, Column(column)).title
        line(figure, rows, across(run), column, name, color, panel=panel, interval=_interval(run, column))
        dotted(figure, run.published.rows if run.published else (), column, name, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [STEP[AVG_RX].unit] * len(sides))


def _by_settings(run: Run, shown: Sequence[Column]) -> go.Figure | None:
    """One panel a column; a line for every combination of the settings that vary."""
    rows = _marked(run)
    shown = [column for column in shown if _has(rows, column.name)]
    if not shown:
        return None
    figure = panels([column.title for column in shown])
    for panel, column in enumerate(shown, start=1):
        for label, color, group in _groups(run, rows):
            line(figure, group, across(run), column.name, label, color, panel=panel)
            dotted(figure, _published(run, group[0][0]), column.name, label, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [column.unit for column in shown])


def across(run: Run) -> str:
    """The column that figures are drawn against: the client count, or the name of the row where a sweep lists them."""
    return POINT if run.scenario.sweep.points else CLIENTS


# --- rows ----------------------------------------------------------------------------------------------------------


def _marked(run: Run) -> Marked:
    return [(row, "; ".join(note.text for note in notes)) for row, notes in zip(run.rows, run.notes, strict=True)]


def _has(rows: Marked, column: str) -> bool:
    return any(number(row.get(column)) is not None for row, _ in rows)


def _published(run: Run, like: Row) -> list[Row]:
    """Published rows with the same settings; a table that does not know them has none."""
    rows = run.published.rows if run.published else ()
    return [row for row in rows if all(row.get(v) == like.get(v) for v in run.scenario.sweep.vary)]


def _passing(run: Run) -> Marked:
    """For every client count the figures of the fastest step without a cohort that passed.

    Chance lets steps pass far above the rate that was found: where there is one, at most it counts.
    """
    limits = {row.get(CLIENTS): _found(run, row) for row in run.rows}
    best: dict[int, StepResult] = {}
    for result in run.results:
        held = best.get(result.plan.clients)
        passed = result.status == "ok" and result.figures.get("passed") and result.plan.cohort.kind == "none"
        within = _rate(result) <= limits.get(result.plan.clients, math.inf)
        if passed and within and (held is None or _rate(result) >= _rate(held)):
            best[result.plan.clients] = result
    return [({CLIENTS: clients, **best[clients].figures}, "") for clients in sorted(best)]


def _found(run: Run, row: Row) -> float:
    """The highest rate (messages/s) that a search without a cohort vouches for; infinite where there is none."""
    search = run.scenario.sweep.search
    names = searched.prefixes(search) if search else {}
    rates = [
        number(row.get(column))
        for column, name in names.items()
        if name.startswith("loss") and f"{name}_high_pps" in row
    ]
    return max((rate for rate in rates if rate is not None), default=math.inf)


def _rate(result: StepResult) -> float:
    rate = result.plan.settings.rate
    return math.inf if rate == "max" else rate


def _tried(run: Run) -> list[tuple[str, str, Marked]]:
    """(label, colour, figures of all steps, slowest first) for every client count and all settings but the rate.

    A step that did not pass is marked.
    """
    groups: dict[tuple[int, Settings], Marked] = {}
    for r in sorted(run.results, key=_rate):
        if r.status == "ok" and r.plan.cohort.kind == "none":
            key = (r.plan.clients, replace(r.plan.settings, rate="max"))
            groups.setdefault(key, []).append((dict(r.figures), "" if r.figures.get("passed") else "did not pass"))
    names = dict.fromkeys(name for _, settings in groups for name in (*SHARED, *settings.system))
    varied = [name for name in names if len({value_of(settings, name) for _, settings in groups}) > 1]
    order = sorted(groups, key=lambda key: (key[0], [_rank(value_of(key[1], name)) for name in varied]))
    return [
        (f"{clients:,} clients{_set_to(settings, varied)}", color, groups[clients, settings])
        for (clients, settings), color in zip(order, _scale(len(order)), strict=True)
    ]


def _rank(value: Figure) -> tuple[bool, Any]:
    """Sorts the values of one setting; one that is not set comes first."""
    return value is not None, value


def _set_to(settings: Settings, names: Iterable[str]) -> str:
    """What tells steps apart: ``, sndhwm 1,000, nodrop``; a setting that is off is not named."""
    values = [(name, value_of(settings, name)) for name in names]
    texts = [
        name if value is True else f"{name} {value:,}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in values
        if value is not None and value is not False
    ]
    return "".join(f", {text}" for text in texts)


def _groups(run: Run, rows: Marked) -> list[tuple[str, str, Marked]]:
    """(label, colour, rows) for every combination of the settings that vary."""
    varied = list(run.scenario.sweep.vary)
    if not varied:
        return [("", qualitative.D3[0], rows)]
    keys = list(dict.fromkeys(tuple(row.get(v) for v in varied) for row, _ in rows))
    titles, groups = headings(run.scenario), []
    for key, color in zip(keys, _scale(len(keys)), strict=True):
        label = ", ".join(f"{titles.get(v, v)} {value}" for v, value in zip(varied, key, strict=True))
        groups.append((label, color, [(r, n) for r, n in rows if tuple(r.get(v) for v in varied) == key]))
    return groups


def _by_clients(rows: Marked) -> list[tuple[str, str, Marked]]:
    """(label, colour, rows) for every client count."""
    counts = sorted({count for row, _ in rows if (count := number(row.get(CLIENTS))) is not None})
    colors = _scale(len(counts))
    return [
        (f"{count:g} clients", color, [(r, n) for r, n in rows if r.get(CLIENTS) == count])
        for count, color in zip(counts, colors, strict=True)
    ]


def _scale(count: int) -> list[str]:
    """Colours that rise with what they stand for."""
    return list(sample_colorscale("Viridis", _shades(count)))


def _shades(count: int) -> list[float]:
    """Of a colour scale what can be told from white paper and from a dark page."""
    return [0.25 + 0.6 * i / max(count - 1, 1) for i in range(count)]


def _interval(run: Run, column: str) -> Interval | None:
    """The 95 % interval of a rate that was searched for."""
    search = run.scenario.sweep.search
    name = searched.prefixes(search).get(column) if search else None
    if name is None:
        return None
    return lambda row: (row.get(f"{name}_low_pps"), row.get(f"{name}_high_pps"))
