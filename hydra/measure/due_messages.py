"""How long a step sends, and which of its messages are due when. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from hydra.measure.loss_bursts import Course
from hydra.model import StepPlan
from hydra.wire.load import Load

_SECOND_NS: Final = 1_000_000_000


def asked_s(plan: StepPlan) -> float:
    """How long a step sends that holds its rate: its window, or as long as its messages last."""
    rate, messages = plan.settings.rate, plan.settings.messages
    return plan.duration_s if rate == "max" or messages is None else min(plan.duration_s, messages / rate)


def edges(plan: StepPlan, sent: int, parts: int) -> tuple[Course, Course]:
    """Where equal parts of a step's window begin and end: in seconds, and as sequences of a publisher.

    A message belongs to the part in which it was due. Without due times, at rate ``max``, it belongs where it stands
    among those that were sent.

    Args:
        plan: of the step.
        sent: messages of the publisher that sent most.
        parts: how many.
    """
    rate, length_s = plan.settings.rate, asked_s(plan)
    seconds = np.linspace(0.0, length_s, parts + 1)
    if plan.load:
        load = Load(plan.load)
        due = np.array([load.count_by(round(at * _SECOND_NS) - 1) for at in seconds.tolist()], np.float64)
        return seconds, due
    return seconds, seconds * (sent / length_s if rate == "max" else rate)
