"""What all plots look like, whatever they show."""

from __future__ import annotations

import math
from typing import Final

import plotly.graph_objects as go

_TEMPLATE: Final = "plotly_white"
_INK: Final = "#1f2933"
_LEGEND_PX: Final = 1100
"""Width of a page's plot that a legend surely has."""
_LETTER_PX: Final = 7
_SIGN_PX: Final = 60
"""What an entry of a legend takes, and each of its letters."""
_LINE_PX: Final = 20
_MOST_LEGEND_PX: Final = 400
_AXIS_PX: Final = 58
"""What the texts of an axis across take."""


def dress(figure: go.Figure, height: int = 460) -> None:
    """The look of every plot: letters, margins, and a legend below the panels, which makes the plot higher.

    Args:
        figure: with all its lines.
        height: of the panels and what is around them but the legend, in pixels.
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
