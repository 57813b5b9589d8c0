"""What the cells of ``report.ipynb`` call: one function a section, each gives what the cell shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from hydra.jupyter import plots
from hydra.jupyter.cells import Html, block
from hydra.jupyter.markup import comparison, facts, table, title, warnings
from hydra.jupyter.recorded import Run, load
from hydra.results.registered import added_by

__all__ = ["batches", "comparison", "facts", "latency", "load", "loss", "rates", "table", "title", "warnings"]

PLOTLY: Final = "application/vnd.plotly.v1+json"


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as Jupyter draws it itself, without a copy of plotly.js in every notebook."""

    figure: go.Figure

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        return {
            PLOTLY: json.loads(self.figure.to_json()),
            "text/plain": "a plot: open it with JupyterLab, or read report.html",
        }


def rates(run: Run) -> Plot | Html:
    """Tx, Rx and aggregate rates, or the rates that were searched for."""
    return _shown(plots.rates(run), "no row has a rate")


def loss(run: Run) -> Plot | Html:
    """Loss by client count, or by rate for a search."""
    return _shown(plots.loss(run), "no row has a loss")


def latency(run: Run) -> Plot | Html:
    """Latency percentiles by client count."""
    return _shown(plots.latency(run), "no row has a latency")


def batches(run: Run) -> Plot | Html:
    """The effect of the batch by client count."""
    varies = added_by(run.scenario.system).batch.name in run.scenario.sweep.vary
    return _shown(plots.batches(run), "no row has a rate" if varies else "this run has one size of batch only")


def _shown(figure: go.Figure | None, otherwise: str) -> Plot | Html:
    if figure is None:
        return block(f'<p class="empty">Nothing to plot: {otherwise}.</p>')
    return Plot(figure)
