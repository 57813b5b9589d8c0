"""Figures and steps as people write them."""

from __future__ import annotations

import pytest

from hydra.events.words import describe, number
from hydra.model import Cohort, Figure, Settings, StepPlan


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("lz4", "lz4"),
        (True, "True"),
        (0, "0"),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (1_010_410.4, "1,010,410"),
        (4998.3, "4,998"),
        (999.94, "1,000"),
        (21.1473, "21.1"),
        (0.0329365, "0.0329"),
        (0.0000123, "0.000012"),
        (-2048.4, "-2,048"),
    ],
)
def test_a_figure_has_no_exponent_and_no_digits_without_meaning(value: Figure, text: str) -> None:
    assert number(value) == text


def test_a_step_names_what_varies_and_nothing_else() -> None:
    plan = StepPlan(5, Settings(rate=1000.0, burst=100), 1.0, cohort=Cohort("slow", 0.1, 5.0))
    assert describe(plan) == "5 clients, 1,000/s, 10% slow"
    assert describe(plan, ("rate", "burst")) == "5 clients, 1,000/s, burst 100, 10% slow"
