"""Figures and steps as people write them."""

from __future__ import annotations

import pytest

from hydra.events.value_formatting import countdown, describe, number
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


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(21.1473, 4, "21.15"), (1e6, 6, "1,000,000"), (0.5, 6, "0.5"), (123.456789, 6, "123.457")],
)
def test_a_figure_may_have_more_digits(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1 s"),
        (51.4, "51 s"),
        (89.9, "90 s"),
        (130.0, "2 min 10 s"),
        (599.0, "10 min"),
        (3.3 * 3600, "3 h 18 min"),
    ],
)
def test_what_is_left_moves_within_a_step(seconds: float, text: str) -> None:
    assert countdown(seconds) == text


def test_a_step_names_what_varies_and_nothing_else() -> None:
    plan = StepPlan(5, Settings(rate=1000.0, burst=100), 1.0, cohort=Cohort("slow", 0.1, 5.0))
    assert describe(plan) == "5 clients, 1,000/s, 10 % slow"
    assert describe(plan, ("rate", "burst")) == "5 clients, 1,000/s, burst 100, 10 % slow"
