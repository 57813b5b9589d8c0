"""The page of a comparison: verdicts, plots with all runs, and other differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import plotly.graph_objects as go
from plotly.colors import qualitative
from plotly.subplots import make_subplots

from hydra.analysis.comparison import Comparison, FigureComparison
from hydra.events.value_formatting import counted
from hydra.jupyter.blocks import Heading, Html, Page, block, figure, html, measured, scrolling, style, titled
from hydra.jupyter.drawing import Marked, apply_style, finish, line, panels
from hydra.measure.column import MICROSECONDS, POINT
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import merged, number
from hydra.report.comparison_report import (
    apart,
    change,
    environment,
    interval,
    method,
    row_warning_lines,
    table,
    verdict,
    warnings,
    what_else,
    what_would_show,
)
from hydra.report.figure_texts import marks_line

_MOST_PANELS: Final = 3
_MOST_ROWS: Final = 6
"""The maximum number of rows whose repeats are plotted; more panels side by side cannot be read."""


def page(comparison: Comparison) -> Page:
    """The page of a comparison."""
    base, *others = (side.name for side in comparison.sides)
    names = f"{' and '.join(others)} against {base}"
    setup = merged(side.setup for side in comparison.sides)
    differs = "".join(f'<p class="lead">{escape(text)}</p>' for text in apart(comparison))
    cautions = "".join(f"<li>{escape(text)}</li>" for text in warnings(comparison))
    above = f"<h1>{escape(names)}</h1>{measured(setup)}{differs}"
    head = f'<div class="hydra">{above}<p class="lead">{escape(method(comparison))}</p>'
    cautions = f'<ul class="cautions">{cautions}</ul>' if cautions else ""
    every = comparison.unmatched.items()
    unmatched = [f"{row}: in {name}, but not in all runs" for name, rows in every for row in rows]
    blocks = (
        Html(f"{style()}{head}{cautions}</div>"),
        Heading(f"The primary figure: {comparison.primary.name}"),
        _table(comparison, comparison.first),
        *([_list(power)] if (power := list(what_would_show(comparison))) else []),
        *titled("Difference of each row, with its 95 % interval", changes(comparison)),
        *titled("All runs", overlaid(comparison)),
        *titled("Every repeat: one point is one sample", repeats(comparison)),
        *titled("Second by second: drawn, and never counted as samples", slices(comparison)),
        Heading("Other figures"),
        _table(comparison, comparison.others),
        Heading("What else differs"),
        _environment(comparison),
        Heading("Warnings of single rows"),
        _list([*row_warning_lines(comparison), *unmatched]),
    )
    return Page(f"Hydra: {names}", blocks)


def _table(comparison: Comparison, compared: Sequence[FigureComparison]) -> Html:
    shown = table(comparison, compared, figure)
    marks = marks_line(shown.marks)
    return block(scrolling(html(shown)) + (f'<p class="below">{escape(marks)}</p>' if marks else ""))


def _environment(comparison: Comparison) -> Html:
    if not what_else(comparison):
        return block('<p class="all-good">No recorded fact differs.</p>')
    return block(scrolling(html(environment(comparison))))


def _list(lines: Iterable[str]) -> Html:
    items = "".join(f"<li>{escape(text)}</li>" for text in lines)
    return block(f"<ul>{items}</ul>" if items else '<p class="all-good">Nothing.</p>')


# --- plots ---------------------------------------------------------------------------------------------------------


def overlaid(comparison: Comparison) -> go.Figure | None:
    """The primary figure and first figures of other units by client count, with a line for each run."""
    known = {each.column.name: each.column for each in (*comparison.first, *comparison.others)}
    units: dict[str, str] = {}
    for name, column in known.items():
        if any(number(side.shown.get(name)) for row in comparison.rows for side in row.rows):  # not 0 everywhere
            units.setdefault(column.unit, name)  # several rates side by side show little more than one of them
    names = list(units.values())[:_MOST_PANELS]
    drawn = panels(names)
    across = POINT if any(row.settings.get(POINT) for row in comparison.rows) else CLIENTS
    for panel, name in enumerate(names, start=1):
        for number_, side in enumerate(comparison.sides):
            for label, rows in _groups(comparison, number_):
                color = qualitative.D3[number_ % len(qualitative.D3)]
                line(drawn, rows, across, name, escape(f"{side.name}{label}"), color, panel=panel)
    return finish(drawn, "subscribers", [known[name].axis_title for name in names])


def _groups(comparison: Comparison, number_: int) -> list[tuple[str, Marked]]:
    """The rows of a run for each line: rows that differ in the client count only."""
    groups: dict[str, Marked] = {}
    for matched in comparison.rows:
        row = matched.rows[number_]
        label = (
            ""
            if matched.settings.get(POINT)
            else matched.name.removeprefix(counted(matched.settings.get(CLIENTS), "subscriber"))
        )
        groups.setdefault(label, []).append((dict(row.shown), "; ".join(row.notes)))
    return list(groups.items())


def changes(comparison: Comparison) -> go.Figure | None:
    """The difference in the primary figure with its interval, for every row and run."""
    drawable = [
        each
        for each in comparison.first
        if all(value is not None and math.isfinite(value) for value in (each.change, each.low, each.high))
    ]
    kinds = {each.kind for each in drawable}
    if len(kinds) != 1:
        return None  # nothing is known, or shares and differences have no common axis
    scale, unit = (100.0, "%") if kinds == {"ratio"} else (1.0, comparison.primary.unit)
    drawn = go.Figure()
    for number_, side in enumerate(comparison.sides[1:], start=1):
        its = [each for each in drawable if each.other == side.name]
        middle = [scale * (each.change or 0.0) for each in its]
        trace = go.Scatter(
            x=middle,
            # Each of several runs has its own line, because overlapping points could not be distinguished.
            y=[each.row if len(comparison.sides) == 2 else f"{each.row}, {escape(side.name)}" for each in its],
            name=escape(side.name),
            mode="markers",
            marker={"size": 9, "color": qualitative.D3[number_ % len(qualitative.D3)]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [scale * (each.high or 0.0) - at for each, at in zip(its, middle, strict=True)],
                "arrayminus": [at - scale * (each.low or 0.0) for each, at in zip(its, middle, strict=True)],
            },
            customdata=[[escape(f"{change(each)} ({interval(each)}): {verdict(each)}")] for each in its],
            hovertemplate="%{y}: %{customdata[0]}<extra>%{fullData.name}</extra>",
        )
        drawn.add_trace(trace)
    drawn.add_vline(x=0, line={"color": "#52606d", "width": 1})
    across = f"{comparison.primary.name}: difference from {escape(comparison.sides[0].name)}, {unit}"
    height = 200 + 34 * len(drawable)
    apply_style(drawn, height)
    drawn.update_xaxes(title_text=across)
    drawn.update_yaxes(type="category", autorange="reversed")
    return drawn


def repeats(comparison: Comparison) -> go.Figure | None:
    """The primary figure of every repeat in order, with a panel for each of the first rows."""
    rows, title, scale = comparison.rows[:_MOST_ROWS], comparison.primary.axis_title, 1.0
    if comparison.primary.unit == MICROSECONDS:
        title, scale = f"{title.removesuffix(MICROSECONDS)}ms", 1e-3
    drawn = panels([escape(row.name) for row in rows])
    for panel, row in enumerate(rows, start=1):
        for number_, (side, its) in enumerate(zip(comparison.sides, row.rows, strict=True)):
            found = [number(repeat.figures.get(comparison.primary.name)) for repeat in its.repeats]
            values = [None if value is None else value * scale for value in found]
            trace = go.Scatter(
                x=list(range(1, len(values) + 1)),
                y=values,
                name=escape(side.name),
                legendgroup=side.name,
                showlegend=panel == 1,
                mode="lines+markers",
                line={"color": qualitative.D3[number_ % len(qualitative.D3)], "width": 1},
                hovertemplate="repeat %{x}: %{y:,.6g}<extra>%{fullData.name}</extra>",
            )
            drawn.add_trace(trace, row=1, col=panel)
    apply_style(drawn, 380)
    longest = max((len(its.repeats) for row in rows for its in row.rows), default=0)
    drawn.update_xaxes(title_text="repeat", dtick=max(1, longest // 10))
    drawn.update_yaxes(title_text=title, col=1)
    return drawn


def slices(comparison: Comparison) -> go.Figure | None:
    """Received rate and latency of each second, a line for each step; None if no time series was stored."""
    rows = [row for row in comparison.rows if any(its.slices for its in row.rows)][:_MOST_PANELS]
    if not rows:
        return None
    titles = [escape(row.name) for row in rows]
    drawn = make_subplots(rows=2, cols=len(rows), shared_xaxes=True, column_titles=titles, vertical_spacing=0.08)
    for panel, row in enumerate(rows, start=1):
        for number_, (side, its) in enumerate(zip(comparison.sides, row.rows, strict=True)):
            color = qualitative.D3[number_ % len(qualitative.D3)]
            for steps, slices_ in enumerate(its.slices):
                at = [each.at_s for each in slices_]
                late_ms = [None if each.p99_us is None else each.p99_us / 1000 for each in slices_]
                for height, values in enumerate(([each.received_pps for each in slices_], late_ms), start=1):
                    trace = go.Scatter(
                        x=at,
                        y=values,
                        name=escape(side.name),
                        legendgroup=side.name,
                        showlegend=panel == height == 1 and steps == 0,
                        mode="lines",
                        opacity=0.8,
                        line={"color": color, "width": 1},
                        hovertemplate=f"repeat {steps + 1}, %{{x}} s: %{{y:,.4g}}<extra>%{{fullData.name}}</extra>",
                    )
                    drawn.add_trace(trace, row=height, col=panel)
    apply_style(drawn, 520)
    drawn.update_xaxes(title_text="seconds since the start of the step", row=2)
    drawn.update_yaxes(rangemode="tozero", row=1)
    drawn.update_yaxes(type="log", row=2)
    drawn.update_yaxes(title_text="received/s, all subscribers", row=1, col=1)
    drawn.update_yaxes(title_text="latency p99, ms", row=2, col=1)
    return drawn
