"""What the cells of ``report.ipynb`` call: one function a section, each gives what the cell shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import plotly.graph_objects as go
from IPython.display import display

from hydra.jupyter import latency_plots, loss_plot, rate_plots
from hydra.jupyter import loss_heatmap as its_losers
from hydra.jupyter import time_series_plot as its_course
from hydra.jupyter.cells import Html, block
from hydra.jupyter.markup import comparison, facts, table, title, warnings
from hydra.jupyter.overlapping_curves import PUBLISHED
from hydra.jupyter.run_data import Run, load
from hydra.jupyter.summary import summary
from hydra.report.slo_text import answered, events_table, objectives_table, remarks

__all__ = [
    "answer",
    "batches",
    "course",
    "facts",
    "latency",
    "load",
    "losers",
    "loss",
    "over_time",
    "percentiles",
    "published",
    "rates",
    "summary",
    "table",
    "title",
    "warnings",
]

PLOTLY: Final = "application/vnd.plotly.v1+json"


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as Jupyter draws it itself, without a copy of plotly.js in every notebook; ``name`` is a file's."""

    figure: go.Figure
    name: str

    def data(self) -> dict[str, Any]:
        """The plot as Jupyter knows it; the ``meta`` of its layout is its name."""
        drawn: dict[str, Any] = json.loads(self.figure.to_json())
        drawn["layout"]["meta"] = self.name
        return drawn

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        return {PLOTLY: self.data(), "text/plain": "a plot: open it with JupyterLab, or read report.html"}


def file_name(title: str) -> str:
    """The name of a plot's file, of its title: ``Loss by rate`` → ``loss-by-rate``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "plot"


def rates(run: Run) -> Plot | None:
    """Tx, Rx and aggregate rates, or the rates that were searched for."""
    figure = rate_plots.rates(run)
    dotted = figure is not None and any(trace.meta == PUBLISHED for trace in figure.data)
    hint = "Click a name in the legend to hide or show it."
    return _shown("Rates", f"Dotted: as published. {hint}" if dotted else hint, figure)


def loss(run: Run) -> Plot | None:
    """Loss with its intervals by rate, or by client count where there is one rate."""
    found = loss_plot.loss(run)
    return _shown("Loss", found.remark, found.figure) if found else None


def losers(run: Run) -> Plot | None:
    """Who lost messages when."""
    found = its_losers.losers(run)
    return _shown("Who lost when", found.remark, found.figure) if found else None


def latency(run: Run) -> Plot | None:
    """Latency percentiles by client count."""
    return _shown("Latency", "", latency_plots.latency(run))


def percentiles(run: Run) -> Plot | None:
    """Latency at every percentile, a curve a row."""
    of = "the fastest step that passed, for each client count" if run.scenario.sweep.search else "each row"
    return _shown(
        "Latency at every percentile", f"Of {of}: all messages of all subscribers.", latency_plots.percentiles(run)
    )


def over_time(run: Run) -> Plot | None:
    """How late messages were in the course of each row's window."""
    text = "The median subscriber, and dotted the slowest, in twenty parts of each row's window (of repeats: the last)."
    return _shown("Latency over time", text, latency_plots.over_time(run))


def batches(run: Run) -> Plot | None:
    """The effect of the batch by client count, where it varies."""
    return _shown("Effect of the batch", "", rate_plots.batches(run))


def published(run: Run) -> Html | None:
    """The table beside the published one, where rows of the two match."""
    found = comparison(run)
    if found is not None:
        _head("Beside the published table")
    return found


def answer(run: Run) -> Html | None:
    """Whether the last step whose seconds were kept has kept its objectives, and what its events have done."""
    if not run.answers or not run.scenario.slo.objectives():
        return None
    found = run.answers[max(run.answers)]
    said = [f"<p><strong>{escape(answered(found))}</strong></p>", objectives_table(found.objectives, "html")]
    said += [f'<p class="below">{escape(note)}</p>' for note in remarks(found)]
    if found.consequences:
        said.append(events_table(found, "html"))
    _head("Does it hold?")
    return block("".join(said).replace("<table>", '<table class="rows">'))


def course(run: Run) -> Plot | None:
    """The last step second by second, with its events."""
    return _shown("Second by second", "The last step whose seconds were kept.", its_course.course(run))


def _shown(title: str, text: str, figure: go.Figure | None) -> Plot | None:
    """A plot below its heading; nothing at all where there is nothing to plot."""
    if figure is None:
        return None
    _head(title, text)
    return Plot(figure, file_name(title))


def _head(title: str, text: str = "") -> None:
    """Shows a heading above what the cell shows."""
    below = f'<div class="text_cell"><p>{text}</p></div>' if text else ""
    display(Html(f"<h2>{title}</h2>{below}"))  # type: ignore[no-untyped-call]
