"""All figures of an observed step, as a run computes them."""

from __future__ import annotations

from hydra.measure.latency import MergedHistograms, merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepFigures


def figures(o: Observation, histograms: MergedHistograms | None = None) -> StepFigures:
    return StepFigures.of_step(MeasuredStep(o, histograms or merge_histograms(o)))
