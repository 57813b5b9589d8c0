"""The report's plots of rates and batches: which figures of a run are drawn against what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import plotly.graph_objects as go
from plotly.colors import qualitative

from hydra.jupyter.drawing import Interval, dotted, finish, line, panels
from hydra.jupyter.plot_series import across, by_clients, groups, has, marked
from hydra.jupyter.run_data import Run
from hydra.measure.column import MICROSECONDS, Column
from hydra.measure.column_names import AGGREGATE, AVG_RX, AVG_TX
from hydra.measure.step_columns import DUE, SENT, step_columns
from hydra.store.system_columns import added_by, columns_of
from hydra.sweep import Row, kind_of

STEP: Final = {column.name: column for column in step_columns()}
RATES: Final = (AVG_TX, AVG_RX, AGGREGATE)


def rates(run: Run) -> go.Figure | None:
    """Rates against the client count, the published ones dotted; a panel a figure where settings vary."""
    if not run.scenario.sweep.crossed:
        return _two(run, *kind_of(run.scenario).rates)
    return by_settings(run, [STEP[c] for c in RATES])


def batches(run: Run) -> go.Figure | None:
    """What the size of a batch does, a line a client count; None where it does not vary."""
    rows = marked(run)
    columns = [STEP[c] for c in (*RATES[:2], *(f"{p}_p99_us" for p in (DUE, SENT))) if has(rows, c)]
    batch = added_by(run.scenario).batch
    if batch.name not in run.scenario.sweep.crossed or not columns:
        return None
    figure = panels([f"Latency {c.title}" if c.unit == MICROSECONDS else c.title for c in columns])
    for panel, column in enumerate(columns, start=1):
        for label, color, group in by_clients(rows):
            line(figure, group, batch.name, column.name, label, color, panel=panel)
    return finish(figure, batch.axis_title, [column.unit for column in columns])


def _two(run: Run, each: Sequence[str], together: str) -> go.Figure | None:
    """Rates of a client on the left, of all clients together on the right."""
    rows = marked(run)
    sides = {"per client": [c for c in each if has(rows, c)], "all clients together": [together]}
    sides = {title: columns for title, columns in sides.items() if any(has(rows, c) for c in columns)}
    if not sides:
        return None
    figure, known = panels(list(sides)), columns_of(run.scenario)
    places = [(c, panel) for panel, columns in enumerate(sides.values(), start=1) for c in columns]
    for (column, panel), color in zip(places, qualitative.D3, strict=False):
        name = known.get(column, Column(column)).title
        line(figure, rows, across(run), column, name, color, panel=panel, interval=_interval(run, column))
        dotted(figure, _published(run), column, name, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [STEP[AVG_RX].unit] * len(sides))


def by_settings(run: Run, shown: Sequence[Column]) -> go.Figure | None:
    """One panel a column; a line for every combination of the settings that vary."""
    rows = marked(run)
    shown = [column for column in shown if has(rows, column.name)]
    if not shown:
        return None
    figure = panels([column.title for column in shown])
    for panel, column in enumerate(shown, start=1):
        for label, color, group in groups(run, rows):
            line(figure, group, across(run), column.name, label, color, panel=panel)
            dotted(figure, _published(run, group[0][0]), column.name, label, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [column.unit for column in shown])


def _published(run: Run, like: Row | None = None) -> list[Row]:
    """Published rows, with the settings of this one; a table that does not know them has none.

    Nothing unless some row of the run has a counterpart: then the table belongs to another experiment.
    """
    if run.published is None:
        return []
    keys = run.published.reference.keys
    measured = {tuple(row.get(key) for key in keys) for row in run.rows}
    rows = run.published.rows
    if not any(tuple(row.get(key) for key in keys) in measured for row in rows):
        return []
    varied = run.scenario.sweep.crossed if like is not None else ()
    return [row for row in rows if like is None or all(row.get(v) == like.get(v) for v in varied)]


def _interval(run: Run, column: str) -> Interval | None:
    """The 95 % interval of a rate that was searched for."""
    limits = kind_of(run.scenario).limits(column)
    if limits is None:
        return None
    low, high = limits
    return lambda row: (row.get(low), row.get(high))
