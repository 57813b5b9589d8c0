"""What the hosts did in the steps that decide a search, for the search's row. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.measure.column_names import DISTURBED, HOST_CPU, HOST_OTHERS, PASSED
from hydra.measure.disturbance import decode_disturbances, encode_disturbances
from hydra.model import StepResult, number
from hydra.sweep.interface import Row

HOST_FACTS: Final = (HOST_CPU, HOST_OTHERS, DISTURBED)
"""The columns of a step that the row of a search has, too."""


def deciding(steps: Sequence[StepResult], limiting: StepResult | None, figure: float | None) -> list[StepResult]:
    """The steps at both sides of a searched rate: the limiting one, and the fastest one below it that passed.

    Args:
        steps: the measured steps of the search.
        limiting: the step at the lowest rate of those with losses; None: there is none.
        figure: the searched rate, messages/s; None: it was not found, so any step may have passed.
    """
    passed = [
        step
        for step in steps
        if step.figures.get(PASSED) and (figure is None or float(step.plan.settings.rate) <= figure)
    ]
    best = max(passed, key=lambda step: float(step.plan.settings.rate), default=None)
    return [step for step in (limiting, best) if step is not None]


def add_host_facts(row: Row, steps: Iterable[StepResult]) -> None:
    """Adds what the hosts did in these steps to what the row has: the highest use, and all that disturbed them."""
    for step in steps:
        for name in (HOST_CPU, HOST_OTHERS):
            known = [value for value in (number(row.get(name)), number(step.figures.get(name))) if value is not None]
            row[name] = max(known, default=None)
        both = [text for text in (row.get(DISTURBED), step.figures.get(DISTURBED)) if text]
        found = dict.fromkeys(each for text in both for each in decode_disturbances(str(text)))
        row[DISTURBED] = encode_disturbances(list(found))
