"""The plot of `hydra fit`: measured throughput, the law with its prediction interval, and the end of the evidence."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.colors import qualitative

from hydra.analysis.scaling_models import ThroughputLaw
from hydra.jupyter.drawing import finish, line
from hydra.measure.traffic_columns import AGGREGATE, CLIENTS


def drawn(laws: Mapping[str, ThroughputLaw]) -> str:
    """A page that needs no network, with the laws by the settings to which they belong."""
    figure = go.Figure()
    for (name, law), color in zip(laws.items(), qualitative.D3 * len(laws), strict=False):
        _draw(figure, name, law, color)
    finish(figure, "subscribers", ["messages/s of all subscribers together"])
    page: str = figure.to_html(include_plotlyjs=True, full_html=True)
    return page


def _draw(figure: go.Figure, name: str, law: ThroughputLaw, color: str) -> None:
    at = [prediction.clients for prediction in law.curve]
    spans = [prediction.throughput for prediction in law.curve]
    limits = [
        (clients, s.low, s.high) for clients, s in zip(at, spans, strict=True) if s.high is not None and s.low > 0
    ]
    label = f"{name}, " if name else ""
    figure.add_trace(
        go.Scatter(
            x=[x for x, _, _ in limits] + [x for x, _, _ in reversed(limits)],
            y=[high for _, _, high in limits] + [low for _, low, _ in reversed(limits)],
            fill="toself",
            fillcolor=color,
            opacity=0.15,
            line={"width": 0},
            hoverinfo="skip",
            name=f"{label}95 % of new measurements",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=at,
            y=[s.estimate for s in spans],
            mode="lines",
            line={"color": color, "width": 1.5, "dash": "dot"},
            name=f"{label}estimate ({law.better})",
        )
    )
    points = zip(law.counts, law.throughputs, strict=True)
    line(
        figure,
        [({CLIENTS: clients, AGGREGATE: x}, "") for clients, x in points],
        CLIENTS,
        AGGREGATE,
        f"{label}measured",
        color,
        joined=False,
    )
    figure.add_vline(x=law.largest, line={"dash": "dash", "color": color, "width": 1})
