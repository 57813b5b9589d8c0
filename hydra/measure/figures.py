"""All figures of a step. Pure."""

from __future__ import annotations

from hydra.measure.latency import MergedHistograms, merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepFigures


def figures(o: Observation, histograms: MergedHistograms | None = None) -> StepFigures:
    """The figures of a step.

    Args:
        o: the step.
        histograms: its merged histograms, if they are known already.
    """
    return StepFigures.of_step(MeasuredStep(o, histograms or merge_histograms(o)))
