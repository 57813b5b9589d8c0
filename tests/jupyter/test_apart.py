"""Curves that lie upon each other."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest

from hydra.jupyter.drawing import PUBLISHED, distinguish_overlaps


def figure(*curves: tuple[str, list[float | None]], panel: str = "y", meta: str | None = None) -> list[go.Scatter]:
    looks: dict[str, Any] = {"mode": "lines+markers", "line": {"width": 2}, "marker": {"size": 8}}
    return [go.Scatter(x=[1, 2, 3], y=y, name=name, yaxis=panel, meta=meta, **looks) for name, y in curves]


def told(*traces: go.Scatter) -> list[tuple[str, float, str | None]]:
    drawn = go.Figure(list(traces))
    distinguish_overlaps(drawn)
    return [(trace.name, trace.line.width, trace.line.dash) for trace in drawn.data]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1, 10, 100], [1, 10, 100], True),
        ([1, 10, 100], [1, 10.1, 100], True),  # not seen apart
        ([1, 10, 100], [1, 11, 100], False),
        ([1, 10, 100], [1, 10, None], False),  # a curve that continues is seen
        ([None, None, None], [None, None, None], False),
        ([1, None, 100], [1, None, 100], True),
        ([0, 10, 100], [0, 10, 100], True),
    ],
)
def test_what_cannot_be_seen_apart_is_told(first: list[float | None], second: list[float | None], same: bool) -> None:
    assert told(*figure(("a", first), ("b", second))) == (
        [("a", 6, None), ("b (same as a)", 2, "dash")] if same else [("a", 2, None), ("b", 2, None)]
    )


def test_of_three_each_is_seen() -> None:
    found = told(*figure(("a", [1, 2, 3]), ("b", [1, 2, 3]), ("c", [1, 2, 3])))
    assert found == [("a", 10, None), ("b (same as a)", 6, "dash"), ("c (same as a)", 2, "dot")]


def test_the_legend_tells_what_is_true_of_all_panels() -> None:
    left = figure(("a", [1, 2, 3]), ("b", [1, 2, 3]))
    assert [n for n, _, _ in told(*left, *figure(("a", [1, 2, 3]), ("b", [4, 5, 6]), panel="y2"))] == ["a", "b"] * 2
    both = told(*left, *figure(("a", [4, 5, 6]), ("b", [4, 5, 6]), panel="y2"))
    assert [name for name, _, _ in both] == ["a", "b (same as a)"] * 2


def test_a_published_line_is_dotted_already() -> None:
    found = told(*figure(("a", [1, 2, 3])), *figure(("a, published", [1, 2, 3]), meta=PUBLISHED))
    assert found == [("a", 2, None), ("a, published", 2, None)]
