"""The report's plots of rates, batches and latency: by client count, as percentile curves, and over the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import plotly.graph_objects as go
from plotly.colors import qualitative, sample_colorscale

from hydra.jupyter.drawing import Interval, apply_style, dotted, finish, line, log_axis, panels
from hydra.jupyter.plot_series import across, by_clients, groups, has, marked, of_lines, shades, shown_steps
from hydra.jupyter.run_data import RunData, histograms_of, lags_of
from hydra.measure.column import MICROSECONDS, Column
from hydra.measure.lag import Lags
from hydra.measure.latency import curve
from hydra.measure.latency_columns import DUE, SENT, latency_columns
from hydra.measure.loss_pattern import sending_s
from hydra.measure.step_result import StepResult, step_columns
from hydra.measure.traffic_columns import AGGREGATE, AVG_RX, AVG_TX, CLIENTS
from hydra.store.stored_scenario import added_by, columns_of
from hydra.sweep import Row, rows_of, steps_of

STEP: Final = {column.name: column for column in step_columns()}
RATES: Final = (AVG_TX, AVG_RX, AGGREGATE)


def rates(run: RunData) -> go.Figure | None:
    """Rates, published ones dotted; if settings distinguish lines, a panel for each figure."""
    if not of_lines(run):
        return _two(run, *rows_of(run.scenario).rates)
    return by_settings(run, [STEP[c] for c in RATES])


def batches(run: RunData) -> go.Figure | None:
    """Figures by batch size, a line for each client count; None if it does not vary, or is on each horizontal axis."""
    rows = marked(run)
    columns = [STEP[c] for c in (*RATES[:2], *(f"{p}_p99_us" for p in (DUE, SENT))) if has(rows, c)]
    batch = added_by(run.scenario).batch
    if batch.name not in of_lines(run) or not columns:
        return None
    figure = panels([f"Latency {c.title}" if c.unit == MICROSECONDS else c.title for c in columns])
    for panel, column in enumerate(columns, start=1):
        for label, color, group in by_clients(rows):
            line(figure, group, batch.name, column.name, label, color, panel=panel)
    return finish(figure, batch.axis_title, [column.unit for column in columns])


def _two(run: RunData, each: Sequence[str], together: str) -> go.Figure | None:
    """Rates per client in the left panel, and of all clients together in the right one."""
    rows = marked(run)
    sides = {"per client": [c for c in each if has(rows, c)], "all subscribers together": [together]}
    sides = {title: columns for title, columns in sides.items() if any(has(rows, c) for c in columns)}
    if not sides:
        return None
    figure, known = panels(list(sides)), columns_of(run.scenario)
    places = [(c, panel) for panel, columns in enumerate(sides.values(), start=1) for c in columns]
    for (column, panel), color in zip(places, qualitative.D3, strict=False):
        name = known.get(column, Column(column)).title
        line(figure, rows, across(run), column, name, color, panel=panel, interval=_interval(run, column))
        dotted(figure, _published(run), across(run), column, name, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [STEP[AVG_RX].unit] * len(sides))


def by_settings(run: RunData, shown: Sequence[Column]) -> go.Figure | None:
    """A panel for each column, with a line for every combination of the varied settings."""
    rows = marked(run)
    shown = [column for column in shown if has(rows, column.name)]
    if not shown:
        return None
    figure = panels([column.title for column in shown])
    for panel, column in enumerate(shown, start=1):
        for label, color, group in groups(run, rows):
            line(figure, group, across(run), column.name, label, color, panel=panel)
            dotted(figure, _published(run, group[0][0]), across(run), column.name, label, color, panel)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [column.unit for column in shown])


def _published(run: RunData, like: Row | None = None) -> list[Row]:
    """The published rows with the settings of a row; [] if the published table does not have these settings.

    If no row of the run has a published counterpart, the table belongs to another experiment, and the result is [].
    """
    if run.published is None:
        return []
    keys = run.published.reference.keys
    measured = {tuple(row.get(key) for key in keys) for row in run.rows}
    rows = run.published.rows
    if not any(tuple(row.get(key) for key in keys) in measured for row in rows):
        return []
    x = across(run)
    if x in run.scenario.sweep.crossed:  # the run has one client count
        return [row for row in rows if row.get(CLIENTS) in run.scenario.sweep.counts]
    varied = run.scenario.sweep.crossed if like is not None else ()
    return [row for row in rows if like is None or all(row.get(v) == like.get(v) for v in varied)]


def _interval(run: RunData, column: str) -> Interval | None:
    """The 95 % interval of a searched rate; None for other columns."""
    limits = rows_of(run.scenario).limits(column)
    if limits is None:
        return None
    low, high = limits
    return lambda row: (row.get(low), row.get(high))


_US_IN_MS: Final = 1000
_PERCENTS: Final = {1: "0 %", 2: "50 %"} | {10**digits: f"{100 - 100 / 10**digits:.10g} %" for digits in range(1, 10)}
"""Labels of an axis of percentiles; at the key N, one message in N is later."""
_MOST_SLOWEST: Final = 6
"""The maximum number of rows for which the slowest subscriber has a line, too."""


def latency(run: RunData) -> go.Figure | None:
    """Latency percentiles across the horizontal axis; for a search, those of the fastest step within the found rate."""
    rows = list(steps_of(run.scenario).with_latency(marked(run), run.results, ""))
    percentiles = next((columns for columns in map(latency_columns, (DUE, SENT)) if has(rows, columns[0].name)), None)
    if percentiles is None:
        return None
    if of_lines(run):
        return by_settings(run, [column for column in percentiles if column.title in ("p50", "p99", "max")])
    figure = go.Figure()
    colors = sample_colorscale("Plasma", shades(len(percentiles)))
    for column, color in zip(percentiles, colors, strict=True):
        line(figure, rows, across(run), column.name, column.title, color)
    return finish(figure, columns_of(run.scenario)[across(run)].axis_title, [percentiles[0].axis_title])


def percentiles(run: RunData) -> go.Figure | None:
    """The latency at every percentile, over all messages of all subscribers, a curve for each row."""
    figure = go.Figure()
    for label, color, steps in shown_steps(run):
        bound_us = max((step.figures.clocks.latency_bound_us or 0.0 for step in steps), default=0.0)
        points = [(x, max(us, bound_us)) for x, us in curve(histograms_of(run, [step.epoch for step in steps]))]
        points = [(x, us / _US_IN_MS) for x, us in points if us > 0]
        if not points:
            continue
        at = [x for x, _ in points]
        trace = go.Scatter(
            x=[float(f"{x:.4g}") for x in at],
            y=[float(f"{ms:.4g}") for _, ms in points],
            name=label,
            legendgroup=label,
            mode="lines",
            line={"color": color, "width": 2},
            customdata=[f"{100 - 100 / x:.7g}" for x in at],
            hovertemplate="%{customdata} % within %{y:,.4g} ms<extra>%{fullData.name}</extra>",
        )
        figure.add_trace(trace)
    drawn = finish(figure, "messages that arrived within this time", ["latency, ms"])
    if drawn is not None:
        furthest = max(float(x) for trace in drawn.data for x in trace.x)
        ticks = {at: text for at, text in _PERCENTS.items() if at <= furthest * 1.5}
        drawn.update_xaxes(
            tickvals=list(ticks),
            ticktext=list(ticks.values()),
            tickangle=0,
            range=[-0.05, np.log10(max(furthest, 10.0)) + 0.1],
        )
    return drawn


def over_time(run: RunData) -> go.Figure | None:
    """The age of the newest messages over each row's window; None if it was not stored.

    Steps with a stored time series have another plot.
    """
    lines = [(label, color, found) for label, color, steps in shown_steps(run) if (found := _lags(run, steps))]
    figure = go.Figure()
    for label, color, (seconds, lags) in lines:
        middle = np.nanmedian(lags, axis=0)
        _draw(figure, seconds, middle, label, color)
        if len(lags) > 1 and len(lines) <= _MOST_SLOWEST:
            _draw(figure, seconds, np.nanmax(lags, axis=0), label, color, slowest=True)
    if not figure.data:
        return None
    apply_style(figure)
    figure.update_xaxes(title_text="seconds since the start of the step", rangemode="tozero")
    values = [y for trace in figure.data for y in trace.y if y]
    figure.update_yaxes(type="log", title_text="age of the newest message, ms", **log_axis(values))
    return figure


def _lags(run: RunData, steps: Sequence[StepResult]) -> tuple[list[float], Lags] | None:
    """Seconds since the start, and each subscriber's lag (ms) then; for a repeated row, in the last repeat."""
    step = steps[-1]
    lags = 1000 * lags_of(run, step.epoch)
    if step.epoch in run.answers or not len(lags):
        return None
    known = np.asarray(~np.isnan(lags).all(axis=0))
    if known.sum() < 2:
        return None
    width_s = sending_s(step.plan) / len(known)
    return [round((part + 0.5) * width_s, 4) for part in np.flatnonzero(known).tolist()], lags[:, known]


def _draw(
    figure: go.Figure, seconds: Sequence[float], lags_ms: Lags, label: str, color: str, *, slowest: bool = False
) -> None:
    # A lag of 0 means less than one microsecond.
    values = [float(f"{max(ms, 0.001):.4g}") for ms in lags_ms.tolist()]
    whose = "the slowest subscriber" if slowest else "the median subscriber"
    trace = go.Scatter(
        x=seconds,
        y=values,
        name=label,
        legendgroup=label,
        showlegend=not slowest,
        mode="lines",
        line={"color": color, "width": 1 if slowest else 2, "dash": "dot" if slowest else "solid"},
        hovertemplate=f"%{{x:.4g}} s: %{{y:,.4g}} ms, {whose}<extra>%{{fullData.name}}</extra>",
    )
    figure.add_trace(trace)
