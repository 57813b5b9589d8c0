"""The plot of losses, in which each point has its 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go
from plotly.colors import qualitative

from hydra.jupyter.drawing import Interval, Marked, ZeroLossLevel, finish, level, line
from hydra.jupyter.line_plots import STEP
from hydra.jupyter.plot_series import SearchCurve, across, groups, has, marked, together, tried
from hydra.jupyter.run_data import RunData
from hydra.measure import loss_interval
from hydra.measure.column import HIGH, INTERVAL, LOW
from hydra.measure.loss_interval import ConfidenceInterval
from hydra.measure.loss_pattern import sending_s
from hydra.measure.passing_columns import SHORTFALL
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS, LOSS, REQUESTED
from hydra.model import number
from hydra.report.interval_display import least_losses, loss_limits
from hydra.store.stored_scenario import columns_of
from hydra.sweep import steps_of, texts_of
from hydra.sweep.steps import FoundRate, rate_of

_NOT_LOST: Final = ("late_pct", "undrained_pct", "unknown_pct")
"""Messages that did not arrive in the window, but are not lost."""
_RATE: Final = "rate"


@dataclass(frozen=True, slots=True)
class LossPlot:
    """The plot, and a line of text that explains its bars; "" if it has none."""

    figure: go.Figure
    note: str


def loss(run: RunData) -> LossPlot | None:
    """Loss by rate if the rate varies, otherwise by client count.

    For a search around a target, it is the shortfall at each rate. If the loss has a single line, late, undrained and
    unknown messages have lines, too.
    """
    if (target := steps_of(run.scenario).target) is not None:
        return _tried(run, 100 * target)
    rows = _known(run, marked(run))
    rates = {row.get(_RATE) for row, _ in rows}
    by_rate = len(rates) > 1 and all(isinstance(rate, int | float) for rate in rates)
    if by_rate:
        others = [name for name in run.scenario.sweep.varied if name != _RATE]
        lines, x = together(run, rows, [CLIENTS, *others]), REQUESTED
    else:
        lines, x = groups(run, rows), across(run)
    parts = [LOSS, *(c for c in _NOT_LOST if len(lines) == 1 and any(number(row.get(c)) for row, _ in rows))]
    floor, figure = ZeroLossLevel(rows, parts), go.Figure()
    for label, color, group in lines:
        if by_rate:
            group = sorted(group, key=lambda pair: number(pair[0].get(x)) or 0.0)
        for part, its in zip(parts, (color, *qualitative.D3[1:]), strict=False):
            name = label if label and part == LOSS else STEP[part].title
            interval = _limits(LOSS) if part == LOSS else None
            line(figure, group, x, part, name, its, place=floor, interval=interval)
    upwards = "% of the messages due" if len(parts) > 1 else STEP[LOSS].axis_title
    drawn = finish(figure, columns_of(run.scenario)[x].axis_title, [upwards], floor)
    return LossPlot(drawn, _caption(has(rows, LOSS + HIGH))) if drawn else None


def _limits(column: str) -> Interval:
    return lambda row: (row.get(column + LOW), row.get(column + HIGH))


def _caption(some: bool) -> str:
    return "Bars are the 95 % interval of each point (docs/report.md)." if some else ""


# --- rows of a grid --------------------------------------------------------------------------------------------------


def _known(run: RunData, rows: Marked) -> Marked:
    """The rows, extended by the limits of their loss."""
    found: Marked = []
    least = least_losses(run.rows)
    for row, note in rows:
        lost, half = number(row.get(LOSS)), number(row.get(LOSS + INTERVAL))
        limits = loss_limits(row, least)
        if limits is None and lost is not None and half is not None:
            # Repeats whose loss bursts are unknown: the interval is that of the mean of the repeats.
            limits = ConfidenceInterval(max(lost - half, 0.0), min(lost + half, 100.0))
        if limits is not None:
            row = {**row, LOSS + LOW: limits.low, LOSS + HIGH: limits.high}
        found.append((row, note))
    return found


def _bursts(step: StepResult) -> tuple[float, ...] | None:
    """The loss bursts of a step; None if they were not counted."""
    bursts = step.figures.passing.bursts_s
    return None if bursts is None else bursts.sizes_s


def _one_more(bursts: Sequence[Sequence[float]]) -> float | None:
    """The size (s) of one more burst if there was none: the mean burst of the step that lost least."""
    least = min((its for its in bursts if its), key=sum, default=None)
    return sum(least) / len(least) if least else None


def _percent(limits: ConfidenceInterval | None) -> ConfidenceInterval | None:
    return limits and ConfidenceInterval(100 * limits.low, min(100 * limits.high, 100.0))


# --- steps around a target --------------------------------------------------------------------------------------------


def _tried(run: RunData, target: float) -> LossPlot | None:
    """A point for each rate, from all steps at it, without lines, because the loss of a single step depends on chance.

    Args:
        run: the run.
        target: the target of the search, in %.
    """
    lines = tried(run)
    # The shortfall is unknown if subscribers could not list all their losses.
    column = SHORTFALL if has([row for each in lines for row in each.rows], SHORTFALL) else LOSS
    shown = [(each, _with_limits(each)) for each in lines]
    everything = [row for _, rows in shown for row in rows]
    floor, figure = ZeroLossLevel(everything, [column]), go.Figure()
    for each, rows in shown:
        line(
            figure, rows, REQUESTED, column, each.label, each.color, place=floor, joined=False, interval=_limits(column)
        )
    note = _caption(has(everything, SHORTFALL + HIGH))
    if len(everything) < sum(len(each.steps) for each in lines):
        note = f"Each point combines all steps at its rate. {note}"
    if figure.data and column == SHORTFALL:
        level(figure, target, f"target {target:g} %")
        if _answers(run, target, lines, figure):
            note += f" {texts_of(run.scenario).of_diamonds}"
    drawn = finish(figure, STEP[REQUESTED].axis_title, [STEP[column].axis_title], floor)
    return LossPlot(drawn, note.strip()) if drawn else None


def _with_limits(each: SearchCurve) -> Marked:
    """A row for all steps at each rate, with the limits of their shortfall in %."""
    bursts = [_bursts(step) for step in each.steps]
    one_more = _one_more([its for its in bursts if its])
    at_rates: dict[float, list[tuple[StepResult, tuple[float, ...]]]] = {}
    found: Marked = []
    for (row, note), its, step in zip(each.rows, bursts, each.steps, strict=True):
        if its is None:
            found.append((row, note))
        else:
            at_rates.setdefault(rate_of(step), []).append((step, its))
    for steps in at_rates.values():
        length = sum(sending_s(step.plan) for step, _ in steps)
        bursts_of_all = [size for _, its in steps for size in its]
        row = {**steps[-1][0].figures.cells, SHORTFALL: 100 * sum(bursts_of_all) / length}
        if limits := _percent(loss_interval.of_bursts(bursts_of_all, length, one_more)):
            row |= {SHORTFALL + LOW: limits.low, SHORTFALL + HIGH: limits.high}
        found.append((row, _not_passed([step for step, _ in steps])))
    return found


def _not_passed(steps: Sequence[StepResult]) -> str:
    count = sum(not step.figures.passing.passed for step in steps)
    if not count:
        return ""
    return "did not pass" if len(steps) == 1 else f"{count} of {len(steps)} steps at this rate did not pass"


def _answers(run: RunData, target: float, lines: Sequence[SearchCurve], figure: go.Figure) -> bool:
    """Marks the found rates at the target; returns whether there was one."""
    some = False
    for row in run.rows:
        for found in steps_of(run.scenario).found(row):
            its = [each for each in lines if each.clients == row.get(CLIENTS)]
            own = [each for each in its if found.settings.items() <= each.settings.system.values().items()] or its
            if own:
                _diamond(figure, found, target, own[0])
                some = True
    return some


def _diamond(figure: go.Figure, found: FoundRate, target: float, its: SearchCurve) -> None:
    low, rate, high, _, text = found
    trace = go.Scatter(
        x=[rate],
        y=[target],
        name=its.label,
        legendgroup=its.label,
        showlegend=False,
        mode="markers",
        marker={"size": 12, "color": its.color, "symbol": "diamond", "line": {"color": "white", "width": 1}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - rate],
            "arrayminus": [rate - low],
            "thickness": 2.5,
            "width": 7,
        },
        hovertemplate=f"{text}<extra>{its.label}</extra>",
    )
    figure.add_trace(trace)
