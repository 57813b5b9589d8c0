"""Heat maps of losses: subscribers by rows of a run, and by time in the window of the row that lost most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import plotly.graph_objects as go

from hydra.events.value_formatting import counted
from hydra.jupyter.drawing import apply_style, panels
from hydra.jupyter.run_data import RunData, losses_of, lossy_subscribers, plan_of, subscribers_of
from hydra.measure.loss_pattern import edges, shares
from hydra.measure.step_result import StepResult
from hydra.report.tables import name_of
from hydra.sweep import steps_of

_MOST_GROUPS: Final = 60
"""The maximum number of lines of the heat map; with more subscribers, several share a line."""
_PARTS: Final = 60
"""The number of parts of the window."""
_MOST_STEPS: Final = 40
_LEAST_DECADES: Final = 2
_COLORS: Final = (
    # From no loss, which is pale on white and on black, to total loss.
    (0.0, "rgba(128, 138, 150, 0.18)"),
    (0.001, "#fde7a9"),
    (0.35, "#f9a03f"),
    (0.7, "#d7301f"),
    (1.0, "#6b0011"),
)


@dataclass(frozen=True, slots=True)
class LossHeatmap:
    """The plot, and a line of text that explains it."""

    figure: go.Figure
    note: str


@dataclass(frozen=True, slots=True)
class _Map:
    """A heat map: the share lost in %, by group of subscribers and horizontal place; None: unknown."""

    across: list[Any]
    names: list[str]
    percents: list[list[float | None]]


def losers(run: RunData) -> LossHeatmap | None:
    """The heat maps of subscribers by step and by time; None if no subscriber lost a message."""
    name = partial(name_of, run.scenario)
    steps, at = steps_of(run.scenario).lossy_steps(run.rows, run.results, name, _MOST_STEPS)
    ids = subscribers_of(run)
    if not steps or not ids or any(step.figures.passing.group is not None for _, step in steps):
        return None  # members of a consumer group share the messages, so a loss belongs to no single member
    ids = range(ids.start, ids.stop, math.ceil(len(ids) / _MOST_GROUPS))
    everyone = _by_step(run, steps, ids)
    if not any(cell for line in everyone.percents for cell in line):
        return None
    label, worst = steps[at]
    maps, titles = [everyone], ["in each step"]
    within, unlisted = _by_time(run, worst, ids)
    if within is not None:
        maps.append(within)
        titles.append(f"{label}: when it was due")
    if len(steps) == 1 and within is not None:
        maps, titles = maps[1:], titles[1:]
    figure = panels(titles)
    highest = max(cell for each in maps for line in each.percents for cell in line if cell)
    lowest = min(cell for each in maps for line in each.percents for cell in line if cell)
    top = math.ceil(math.log10(highest))
    floor = min(math.floor(math.log10(lowest)), top - _LEAST_DECADES)
    for panel, each in enumerate(maps, start=1):
        figure.add_trace(_heat(each, floor, top, first=panel == 1), row=1, col=panel)
    apply_style(figure, 200 + 6 * max(len(each.names) for each in maps) + 124)
    figure.update_layout(showlegend=False, margin={"r": 110})
    figure.update_yaxes(autorange="reversed", showgrid=False, nticks=12, type="category")
    figure.update_yaxes(title_text="subscriber", col=1)
    figure.update_xaxes(showgrid=False)
    if within is not None:
        figure.update_xaxes(title_text="seconds since the start of the step", col=len(maps))
    if maps[0] is everyone:
        figure.update_xaxes(type="category", tickangle=-40, nticks=16, row=1, col=1)
    return LossHeatmap(figure, _caption(ids.step, worst, unlisted, within=within is not None))


def _by_step(run: RunData, steps: Sequence[tuple[str, StepResult]], ids: range) -> _Map:
    columns = [{each.group: each for each in losses_of(run, step.epoch, ids)} for _, step in steps]
    groups = range(max((group for column in columns for group in column), default=-1) + 1)
    percents: list[list[float | None]] = []
    for group in groups:
        its = [column.get(group) for column in columns]
        percents.append([_short(100 * e.lost / e.expected) if e is not None and e.expected else None for e in its])
    labels: list[str] = []
    for label, _ in steps:
        again = sum(each.split("\u2009#")[0] == label for each in labels)
        labels.append(f"{label}\u2009#{again + 1}" if again else label)
    return _Map(labels, [_name(ids, group) for group in groups], percents)


def _by_time(run: RunData, step: StepResult, ids: range) -> tuple[_Map | None, int]:
    """The map of one step, and the number of subscribers with more missing ranges than are stored."""
    found, sent = lossy_subscribers(run, step.epoch)
    groups = {each.group: each for each in losses_of(run, step.epoch, ids)}
    if not found or not groups:
        return None, 0
    plan = plan_of(run, step)
    if plan is None:
        return None, 0
    seconds, sequences = edges(plan, sent, _PARTS)
    if sequences[-1] <= 0:
        return None, 0
    numbers = range(min(groups), max(groups) + 1)
    its = [range(ids.start + n * ids.step, ids.start + (n + 1) * ids.step) for n in numbers]
    expected = [groups[n].expected if n in groups else 0 for n in numbers]
    percents = 100 * shares(found, its, expected, sequences)
    middles = [float(f"{at:.4g}") for at in ((seconds[:-1] + seconds[1:]) / 2).tolist()]
    cells = [
        [_short(c) if due and not math.isnan(c) else None for c in line]
        for line, due in zip(percents.tolist(), expected, strict=True)
    ]
    if not any(cell for line in cells for cell in line):
        return None, 0
    return _Map(middles, [_name(ids, n) for n in numbers], cells), sum(each.unlisted > 0 for each in found)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _name(ids: range, group: int) -> str:
    first = ids.start + group * ids.step
    return str(first) if ids.step == 1 else f"{first:,} – {first + ids.step - 1:,}"


def _heat(each: _Map, floor: int, top: int, *, first: bool) -> go.Heatmap:
    """The trace of a heat map; colours show the logarithm of the loss, and the palest colour no loss."""
    lowest = floor - 0.001 * (top - floor)
    z = [[None if c is None else round(math.log10(c), 3) if c else lowest for c in line] for line in each.percents]
    texts = [["" if c is None else f"{c:g}" for c in line] for line in each.percents]
    ticks = list(range(floor, top + 1))
    return go.Heatmap(
        x=each.across,
        y=each.names,
        z=z,
        text=texts,
        zmin=lowest,
        zmax=top,
        colorscale=[list(pair) for pair in _COLORS],
        hoverongaps=False,
        showscale=first,
        colorbar={"title": "lost, %", "tickvals": ticks, "ticktext": [f"{10.0**e:g}" for e in ticks], "x": 1.01},
        hovertemplate="subscriber %{y}, %{x}: %{text} % lost<extra></extra>",
    )


def _caption(size: int, worst: StepResult, unlisted: int, *, within: bool) -> str:
    sentences = [
        "Each subscriber's loss in % of the messages due to it; pale: no loss, blank: it was absent or sent no report."
    ]
    if size > 1:
        sentences.append(f"Each line is the mean of {size:,} subscribers.")
    if within and worst.plan.settings.rate == "max":
        sentences.append("At rate max a message has no due time: its place is that in the order of sent messages.")
    if within and unlisted:
        whose = counted(unlisted, "subscriber has", "subscribers have")
        sentences.append(f"{whose} only the first missing ranges stored: other places are blank.")
    return " ".join(sentences)
