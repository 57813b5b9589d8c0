"""The style of plots: lines, axes, hollow points for warnings, and overlapping curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hydra.events.value_formatting import counted, duration_us
from hydra.measure.column import HIGH, INTERVAL, LOW, MICROSECONDS
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Figure, number
from hydra.report.figure_texts import at_most, bounded_text, error_text, margin
from hydra.sweep import Row

_TEMPLATE: Final = "plotly_white"
_INK: Final = "#1f2933"
_LEGEND_PX: Final = 1100
"""The minimum width of a plot's legend, in pixels."""
_LETTER_PX: Final = 7
_SIGN_PX: Final = 60
"""The width of an entry of a legend in pixels; ``_LETTER_PX`` is added for each letter."""
_LINE_PX: Final = 20
_MOST_LEGEND_PX: Final = 400
_AXIS_PX: Final = 58
"""The height of the texts of a horizontal axis, in pixels."""


def apply_style(figure: go.Figure, height: int = 460) -> None:
    """Sets the style of a plot: font, margins, and a legend below the panels, which makes the plot higher.

    Args:
        figure: the plot with all lines.
        height: height without the legend, in pixels.
    """
    names = [str(trace.name) for trace in figure.data if trace.showlegend is not False]
    widest = max(map(len, names), default=0) * _LETTER_PX + _SIGN_PX
    lines = math.ceil(len(names) / max(_LEGEND_PX // widest, 1))
    below = min(lines * _LINE_PX, _MOST_LEGEND_PX)
    figure.update_layout(
        template=_TEMPLATE,
        height=height + below,
        margin={"l": 70, "r": 20, "t": 64, "b": 60 + below},
        font={"family": "system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif", "size": 13, "color": _INK},
        legend={"orientation": "h", "yanchor": "top", "y": -_AXIS_PX / (height - 124), "x": 0},
        hovermode="closest",
        showlegend=True,
    )


PUBLISHED: Final = "published"
"""The ``meta`` of a line of published figures, which is dotted, and does not affect the range of axes."""
_PUBLISHED_NAME: Final = "published (dotted, same colour)"
_LAST_RANK: Final = 2000
"""The rank of a legend's last entry; other entries have 1000."""
_SAME: Final = 0.006
"""Points overlap if their distance is below this share of the (logarithmic) span of all figures of a panel."""
_WIDER_PX: Final = 4
_LARGER_PX: Final = 6
_WIDEST_PX: Final = 12
_LARGEST_PX: Final = 18
_DASHES: Final = ("dash", "dot", "dashdot")


def distinguish_overlaps(figure: go.Figure) -> None:
    """Makes overlapping curves visible in each panel: lower curves become wider, and upper curves dashed.

    If a curve equals another one in all panels, its entry in the legend names that curve.
    """
    traces = [trace for trace in figure.data if trace.type == "scatter" and trace.meta != PUBLISHED]
    panels: dict[str, list[Any]] = {}
    for trace in traces:
        panels.setdefault(trace.yaxis or "y", []).append(trace)
    same: dict[str, list[str]] = {}
    for of_panel in panels.values():
        for lowest, *others in _stacks(of_panel):
            for below, trace in enumerate((lowest, *others)):
                _widen(trace, len(others) - below, below, len(others))
            for trace in others:
                same.setdefault(trace.name, []).append(lowest.name)
    everywhere = {
        name: lowest[0]
        for name, lowest in same.items()
        if len(set(lowest)) == 1 and len(lowest) == sum(trace.name == name for trace in traces)
    }
    for trace in traces:
        if trace.name in everywhere:
            trace.name = f"{trace.name} (same as {everywhere[trace.name]})"


def _stacks(traces: list[Any]) -> list[list[Any]]:
    """Groups of overlapping curves of a panel, each in drawing order: the lowest first."""
    points = [
        {x: float(y) for x, y in zip(trace.x, trace.y, strict=True) if y is not None and y > 0} for trace in traces
    ]
    found = [math.log10(y) for of_trace in points for y in of_trace.values()]
    near = _SAME * max(max(found, default=0.0) - min(found, default=0.0), 0.5)
    stacks: list[list[int]] = []
    for curve, own in enumerate(points):
        stack = next((stack for stack in stacks if _alike(points[stack[0]], own, near)), None)
        if stack is None:
            stacks.append([curve])
        else:
            stack.append(curve)
    return [[traces[curve] for curve in stack] for stack in stacks if len(stack) > 1]


def _alike(first: Mapping[Any, float], second: Mapping[Any, float], near: float) -> bool:
    """Whether two curves have the same x values and overlap at all of them."""
    if not first or first.keys() != second.keys():
        return False
    return all(abs(math.log10(first[x] / second[x])) <= near for x in first)


def _widen(trace: Any, above: int, below: int, most: int) -> None:
    """Sets the width and dash of a curve with ``above`` overlapping curves above it and ``below`` ones below it.

    The lowest curve has ``most`` curves above it; its width is limited.
    """
    size = trace.marker.size
    if size is not None:
        trace.marker.size = size + min(_LARGER_PX, _LARGEST_PX / most) * above
    if "lines" in trace.mode:
        trace.line.width = trace.line.width + min(_WIDER_PX, _WIDEST_PX / most) * above
        if below:
            trace.line.dash = _DASHES[(below - 1) % len(_DASHES)]


Marked = list[tuple[Row, str]]
"""Rows, each with its warnings as one text; "" if there are none."""
Interval = Callable[[Row], tuple[Figure, Figure]]
"""A function that returns the limits of a row's figure."""

_MOST_TICKS: Final = 14
_TICKS_APART_PX: Final = 8
_GRID: Final = "#e5e9ee"
_LEVEL: Final = "#52606d"
_NARROWEST: Final = 0.5
"""The minimum range of an axis, in decades."""
_DIGITS: Final = ((4.0, (1,)), (2.0, (1, 3)), (0.9, (1, 2, 5)), (0.0, (1, 1.5, 2, 3, 4, 5, 6, 8)))
"""The ticks in a decade, by the number of decades that the axis shows."""


def panels(titles: Sequence[str]) -> go.Figure:
    """A plot with panels side by side."""
    # The space between panels, as a share of the width, fits the texts of an axis, in print, too.
    between = min(0.1, 0.35 / max(len(titles) - 1, 1))
    return make_subplots(rows=1, cols=len(titles), subplot_titles=list(titles), horizontal_spacing=between)


class ZeroLossLevel:
    """The place of a loss of 0 on a logarithmic axis: below the smallest loss, with the label 0."""

    def __init__(self, rows: Marked, columns: Sequence[str]) -> None:
        found = [v for c in columns for row, _ in rows if (v := number(row.get(c))) is not None]
        limits = [v for c in columns for row, _ in rows if (v := number(row.get(c + HIGH)))]
        losses = [v for v in found if v]
        self.zero = len(losses) < len(found)
        self.value = 10.0 ** ((math.floor(math.log10(min(losses or limits))) if losses or limits else -1) - 1)
        self.highest = max([*losses, *limits], default=1.0)

    def __call__(self, value: float) -> float:
        """The plotted value of a loss, or of a limit of its interval."""
        return max(value, self.value)

    def axis(self) -> dict[str, Any]:
        """Ticks and range of the axis, from the place of 0 to the decade above the highest loss."""
        lowest, top = round(math.log10(self.value)), max(math.ceil(math.log10(self.highest)), 0)
        exponents = range(lowest + (0 if self.zero else 1), top + 1)
        texts = ["0" if e == lowest else f"{10.0**e:g}" for e in exponents]
        return {"tickvals": [10.0**e for e in exponents], "ticktext": texts, "range": [exponents[0] - 0.2, top + 0.2]}


def line(
    figure: go.Figure,
    rows: Marked,
    x: str,
    y: str,
    name: str,
    color: str,
    *,
    place: Callable[[float], float] | None = None,
    panel: int = 1,
    interval: Interval | None = None,
    joined: bool = True,
) -> None:
    """Adds a line through rows; a row with a warning has a hollow point, and a row without the figure leaves a gap.

    A latency below the bound of the clocks is a hollow point at its largest possible value; the error bars of other
    latencies include the bound of the clocks in addition to the range of the repeats.

    Args:
        figure: the plot; nothing is added if no row has both figures.
        rows: the rows in the order of the line.
        x: the column of the horizontal axis; texts are placed side by side.
        y: the column of the vertical axis.
        name: the name in the legend; lines with one name are shown and hidden together.
        color: the colour of the line and its points.
        place: converts a value to its plotted value; None: no conversion.
        panel: number of the panel, from 1.
        interval: limits for error bars, if rows have no 95 % interval; None: the range of a repeated row.
        joined: whether lines join the points.
    """
    points = [(at, _upwards(row, y), row, note) for row, note in rows if (at := _at(row.get(x))) is not None]
    if all(value is None for _, value, _, _ in points):
        return
    trace = go.Scatter(
        x=[at for at, _, _, _ in points],
        y=[value if value is None or place is None else place(value) for _, value, _, _ in points],
        name=name,
        legendgroup=name,
        showlegend=not any(drawn.legendgroup == name for drawn in figure.data),
        mode="lines+markers" if joined and not any(isinstance(at, str) for at, *_ in points) else "markers",
        line={"color": color, "width": 2},
        marker={
            "size": 8,
            "color": color,
            "symbol": [
                "circle-open" if note or at_most(row, y) is not None else "circle" for _, _, row, note in points
            ],
            "line": {"color": color, "width": 2},
        },
        error_y=_errors([row for _, _, row, _ in points], y, interval, place),
        customdata=[
            [_hover_text(row, x, y, interval), f"<br>⚠ {_folded(note)}" if note else ""] for _, _, row, note in points
        ],
        hovertemplate="%{customdata[0]}%{customdata[1]}<extra>%{fullData.name}</extra>",
    )
    _add(figure, trace, panel)


def dotted(figure: go.Figure, rows: Iterable[Row], x: str, y: str, name: str, color: str, panel: int) -> None:
    """Adds the published line of a figure, in the colour of the measured line ``name``.

    One entry of the legend stands for all published lines, and hides or shows them together.
    """
    points = sorted((at, value) for row in rows if (at := number(row.get(x))) and (value := number(row.get(y))))
    if not points:
        return
    trace = go.Scatter(
        x=[at for at, _ in points],
        y=[value for _, value in points],
        name=_PUBLISHED_NAME,
        legendgroup=PUBLISHED,
        showlegend=not any(drawn.meta == PUBLISHED for drawn in figure.data),
        legendrank=_LAST_RANK,
        mode="lines",
        meta=PUBLISHED,
        line={"color": color, "width": 1.5, "dash": "dot"},
        opacity=0.6,
        hovertemplate=f"%{{x}}{' subscribers' if x == CLIENTS else ''}: %{{y:,.6g}}<extra>{name}, published</extra>",
    )
    _add(figure, trace, panel)


def level(figure: go.Figure, value: float, text: str) -> None:
    """Adds a horizontal line with a text at a value of a logarithmic axis."""
    figure.add_hline(y=value, line={"dash": "dot", "color": _LEVEL, "width": 1})
    # On a logarithmic axis, shapes take the value, and texts its logarithm.
    at = {"x": 1, "xref": "paper", "xanchor": "right", "y": math.log10(value), "yanchor": "bottom"}
    figure.add_annotation(text=text, showarrow=False, font={"color": _LEVEL}, **at)


def finish(
    figure: go.Figure, across: str, upwards: Sequence[str], floor: ZeroLossLevel | None = None
) -> go.Figure | None:
    """Sets axes, legend and size of a plot; returns None if the plot is empty.

    The range of the axes is that of measured lines, so a part of published lines may be outside.

    Args:
        figure: the plot with all lines.
        across: the title of the horizontal axis.
        upwards: the title of each panel's vertical axis; an axis in µs has ticks in µs, ms or s.
        floor: the place of a loss of 0, for an axis of losses.
    """
    if not figure.data:
        return None
    apply_style(figure)
    measured = [trace for trace in figure.data if trace.meta != PUBLISHED]
    values_across = {at for trace in measured for at in trace.x}
    if any(isinstance(at, str) for at in values_across):
        figure.update_xaxes(type="category", gridcolor=_GRID)
    else:
        ends = [end for trace in measured for end in _ends(trace.x, trace.error_x)]
        ticks = _ticks_at(sorted(map(float, values_across)), ends, _LEGEND_PX / len(upwards))
        figure.update_xaxes(type="log", title_text=across, gridcolor=_GRID, **ticks)
    for panel, title in enumerate(upwards, start=1):
        name = _axis("y", panel)
        values = [end for t in measured if (t.yaxis or "y") == name for end in _ends(t.y, t.error_y)]
        in_us = title.endswith(MICROSECONDS)
        look = {
            "type": "log",
            "gridcolor": _GRID,
            "title": {"text": title.removesuffix(MICROSECONDS).removesuffix(", ") if in_us else title, "standoff": 8},
        }
        axis = floor.axis() if floor else log_axis(values, duration_us if in_us else None)
        figure.update_layout({f"yaxis{name[1:]}": look | axis})
    distinguish_overlaps(figure)
    return figure


def _at(value: Figure) -> float | str | None:
    """The horizontal place of a row."""
    return value if isinstance(value, str) else number(value)


def _upwards(row: Row, column: str) -> float | None:
    """The vertical place of a row."""
    limit = at_most(row, column)
    return number(row.get(column)) if limit is None else limit


def _axis(direction: str, panel: int) -> str:
    return direction if panel == 1 else f"{direction}{panel}"


def _add(figure: go.Figure, trace: go.Scatter, panel: int) -> None:
    trace.update(xaxis=_axis("x", panel), yaxis=_axis("y", panel))
    figure.add_trace(trace)


def _errors(
    rows: Sequence[Row], y: str, interval: Interval | None, place: Callable[[float], float] | None
) -> dict[str, Any] | None:
    halves = [number(row.get(y + INTERVAL)) or 0.0 for row in rows]
    look = {"type": "data", "thickness": 1.2, "width": 4}
    if any(halves) and place is None:
        return {**look, "array": halves}
    interval = interval or (lambda row: (row.get(y + LOW), row.get(y + HIGH)))
    place = place or float
    above, below = [], []
    for row in rows:
        value = _upwards(row, y) or 0.0
        low, high = (number(limit) for limit in interval(row))
        wrong_by = margin(row, y) or 0.0
        above.append(max(place((value if high is None else high) + wrong_by) - place(value), 0.0))
        below.append(max(place(value) - place((value if low is None else low) - wrong_by), 0.0))
    return {**look, "symmetric": False, "array": above, "arrayminus": below} if any(above + below) else None


def _hover_text(row: Row, x: str, y: str, interval: Interval | None) -> str:
    half = number(row.get(y + INTERVAL))
    low, high = map(number, interval(row)) if interval else (None, None)
    around = ""
    if half is not None and low is None:
        around = f" ± {half:,.4g}"
    elif low is not None and high is not None:
        around = f" [{low:,.4g} – {high:,.4g}]"
    at = f", {x} {row.get(x)}" if x != CLIENTS else ""
    value = (
        bounded_text(row, y) if at_most(row, y) is not None else f"{number(row.get(y)) or 0.0:,.6g}{error_text(row, y)}"
    )
    return f"{counted(row.get(CLIENTS), 'subscriber')}{at}: {escape(str(value))}{around}"


def _folded(text: str, width: int = 70) -> str:
    """Text with line breaks for a hover box, with markup escaped."""
    lines = [""]
    for word in text.replace("<", "&lt;").split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f"{word} "
    return "<br>".join(part.strip() for part in lines)


def _ends(values: Sequence[Any], error: Any) -> Iterator[float]:
    """The figures above zero that a trace shows in one direction: its points, and the ends of their error bars."""
    nothing = [0.0] * len(values)
    above = nothing if error is None or error.array is None else error.array
    below = above if error is None or error.arrayminus is None else error.arrayminus
    for value, more, less in zip(values, above, below, strict=True):
        if value is not None:
            yield from (end for end in (value, value + (more or 0), value - (less or 0)) if end > 0)


def _ticks_at(values: Sequence[float], ends: Sequence[float], width_px: float) -> dict[str, Any]:
    """A tick at each value whose label does not overlap that of the value before.

    Args:
        values: where points are, rising.
        ends: what the axis has to show, error bars included.
        width_px: of the axis.
    """
    if len(values) > _MOST_TICKS:
        return log_axis(ends)
    low, high = _log_range(ends)
    kept: list[tuple[float, str]] = []
    for value in values:
        text = f"{value:,g}" if value < 1e6 else _short(value)
        if kept:
            last, before = kept[-1]
            apart_px = width_px * math.log10(value / last) / (high - low)
            if apart_px < _LETTER_PX * (len(before) + len(text)) / 2 + _TICKS_APART_PX:
                continue
        kept.append((value, text))
    return {"tickvals": [value for value, _ in kept], "ticktext": [text for _, text in kept], "range": [low, high]}


def _log_range(values: Sequence[float]) -> list[float]:
    """The range of a logarithmic axis in decades; a narrow range is widened, so noise is not magnified."""
    low, high = math.log10(min(values)), math.log10(max(values))
    margin = max(0.08 * (high - low), (_NARROWEST - (high - low)) / 2, 0.05)
    return [low - margin, high + margin]


def log_axis(values: Sequence[float], text: Callable[[float], str] | None = None) -> dict[str, Any]:
    """Range and labelled ticks of a logarithmic axis; ``text`` makes a label, by default a short one: ``1.5k``."""
    if not values:
        return {}
    low, high = _log_range(values)
    digits = next(digits for span, digits in _DIGITS if high - low > span)
    ticks = [d * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for d in digits]
    shown = [t for t in ticks if low <= math.log10(t) <= high]
    return {"range": [low, high], "tickvals": shown, "ticktext": [(text or _short)(t) for t in shown]}


def _short(value: float) -> str:
    """A short text for a number: 1500 → 1.5k."""
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"
