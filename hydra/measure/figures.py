"""All figures of a step, by column name. Pure."""

from __future__ import annotations

from hydra.measure.column import Column, ReportColumn
from hydra.measure.latency import MergedHistograms, merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.observation import Observation
from hydra.measure.step_column import StepColumn
from hydra.measure.step_columns import step_columns
from hydra.model import Figure


def figures(o: Observation, histograms: MergedHistograms | None = None) -> dict[str, Figure]:
    """The figure of each column that the step has, in the order of the columns.

    Args:
        o: the step.
        histograms: its merged histograms, if they are known already.
    """
    step = MeasuredStep(o, histograms or merge_histograms(o))
    columns = step_columns(system=o.columns)
    return {each.name: _figure(each, step) for each in columns if not isinstance(each, StepColumn) or each.when(step)}


def _figure(column: Column, step: MeasuredStep) -> Figure:
    if isinstance(column, StepColumn):
        return column.figure(step)
    # The only other column of a system is that of how many messages are sent together.
    return step.reported(column) if isinstance(column, ReportColumn) else step.o.batch
