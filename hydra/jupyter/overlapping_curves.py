"""Curves that lie upon each other: each of them is seen, and the legend says that they are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go

PUBLISHED: Final = "published"
"""The ``meta`` of a line of published figures: these are dotted, and axes show what was measured."""
_SAME: Final = 0.006
"""Points are not seen apart within this share of the span of all figures of a panel; its axis is logarithmic."""
_WIDER_PX: Final = 4
_LARGER_PX: Final = 6
_WIDEST_PX: Final = 12
_LARGEST_PX: Final = 18
_DASHES: Final = ("dash", "dot", "dashdot")


def tell_apart(figure: go.Figure) -> None:
    """Makes of curves with the same figures, in each panel, the lower ones wider and the upper ones broken.

    An entry of the legend says of which other curve its curve is the same in all panels.
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
    """The curves of a panel that lie upon each other, as they are drawn: the lowest first."""
    points = [_points(trace) for trace in traces]
    found = [math.log10(y) for of_trace in points for y in of_trace.values()]
    near = _SAME * max(max(found, default=0.0) - min(found, default=0.0), 0.5)
    stacks: list[list[int]] = []
    for number, mine in enumerate(points):
        stack = next((stack for stack in stacks if _alike(points[stack[0]], mine, near)), None)
        if stack is None:
            stacks.append([number])
        else:
            stack.append(number)
    return [[traces[number] for number in stack] for stack in stacks if len(stack) > 1]


def _points(trace: Any) -> dict[Any, float]:
    return {x: float(y) for x, y in zip(trace.x, trace.y, strict=True) if y is not None and y > 0}


def _alike(first: Mapping[Any, float], second: Mapping[Any, float], near: float) -> bool:
    """Whether two curves have the same places across and are not seen apart at any of them."""
    if not first or first.keys() != second.keys():
        return False
    return all(abs(math.log10(first[x] / second[x])) <= near for x in first)


def _widen(trace: Any, above: int, below: int, most: int) -> None:
    """So that a curve is seen beside so many that lie above it, and through it so many below.

    The lowest has ``most`` above it, and is no wider than can be looked at.
    """
    size = trace.marker.size
    if size is not None:
        trace.marker.size = size + min(_LARGER_PX, _LARGEST_PX / most) * above
    if "lines" in trace.mode:
        trace.line.width = trace.line.width + min(_WIDER_PX, _WIDEST_PX / most) * above
        if below:
            trace.line.dash = _DASHES[(below - 1) % len(_DASHES)]
