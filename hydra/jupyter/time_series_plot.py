"""The plot of a step's time series: rates, backlog and latency, with its events marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import plotly.graph_objects as go
from plotly.colors import qualitative
from plotly.subplots import make_subplots

from hydra.jupyter.drawing import apply_style
from hydra.jupyter.run_data import RunData
from hydra.measure.event_recovery import backlog_by_interval, latency_of_span
from hydra.store.slo_results import SloResult

_EVENT: Final = "#b44d12"


def course(run: RunData) -> go.Figure | None:
    """The plot of the last step with a time series; None if there is none."""
    if not run.answers:
        return None
    answer = run.answers[max(run.answers)]
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.4, 0.25, 0.35])
    _draw(figure, answer)
    for done in answer.consequences:
        shade = {"line_width": 0, "fillcolor": _EVENT, "opacity": 0.15}
        figure.add_vrect(x0=done.at_s, x1=max(done.ended_s, done.at_s), **shade)
        figure.add_vline(x=done.at_s, line={"color": _EVENT, "width": 1, "dash": "dash"})
        figure.add_annotation(
            x=done.at_s, y=1, yref="paper", text=done.kind, showarrow=False, yanchor="bottom", xanchor="left"
        )
    apply_style(figure, 720)
    figure.update_layout(hovermode="x")
    figure.update_xaxes(title_text="seconds since the start of the step", row=3, col=1)
    return figure


def _draw(figure: go.Figure, answer: SloResult) -> None:
    facts, intervals = answer.facts, answer.course
    at = [interval.begin_s for interval in intervals]
    width = facts.interval_s
    rates = {
        "due": [i.due * facts.copies / width for i in intervals],
        "sent": [i.sent * facts.copies / width for i in intervals],
        "received": [i.received / width for i in intervals],
    }
    colors = iter(qualitative.D3)
    for name, values in rates.items():
        _line(figure, at, values, name, next(colors), 1, dash="dot" if name == "due" else "solid")
    _line(figure, at, list(backlog_by_interval(facts, intervals)), "backlog", next(colors), 2)
    if any(interval.lost for interval in intervals):
        _line(figure, at, [interval.lost for interval in intervals], "lost, by due time", next(colors), 2)
    stretches = [latency_of_span([interval]) for interval in intervals]
    latencies = {
        "p50": [s.p50_us for s in stretches],
        "p99": [s.p99_us for s in stretches],
        "max": [s.max_us for s in stretches],
    }
    for name, values_us in latencies.items():
        values_ms = [None if us is None else us / 1000 for us in values_us]
        _line(figure, at, values_ms, f"latency {name}", next(colors), 3)
    figure.update_yaxes(title_text="copies/s", row=1, col=1, rangemode="tozero")
    figure.update_yaxes(title_text="copies", row=2, col=1, rangemode="tozero")
    figure.update_yaxes(title_text="ms", type="log", row=3, col=1)


def _line(
    figure: go.Figure,
    at: Sequence[float],
    values: Sequence[float | None],
    name: str,
    color: str,
    row: int,
    dash: str = "solid",
) -> None:
    trace = go.Scatter(x=at, y=values, name=name, mode="lines", line={"color": color, "width": 1.5, "dash": dash})
    figure.add_trace(trace, row=row, col=1)
