"""Figures and steps as people write them."""

from __future__ import annotations

import pytest

from hydra.events.value_formatting import countdown, counted, describe, known_digits, number
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
    ("count", "nouns", "text"),
    [
        (1, ("client",), "1 client"),
        (0, ("client",), "0 clients"),
        (1200, ("copy", "copies"), "1,200 copies"),
        (1.0, ("message was", "messages were"), "1 message was"),
        (1.5, ("message",), "1.5 messages"),
        (None, ("core",), "– cores"),
    ],
)
def test_one_is_singular(count: Figure, nouns: tuple[str, ...], text: str) -> None:
    assert counted(count, *nouns) == text


@pytest.mark.parametrize(
    ("value", "half", "known"),
    [
        (70.9994, 50.0, 71.0),
        (100.0, 50.0, 100.0),
        (28113.4, 4704.8, 28100.0),
        (3.456, 0.5, 3.46),
        # A figure keeps two digits, whatever its interval is.
        (0.5123, 50.0, 0.51),
        (0.0, 2.7, 0.0),
        (12.345, 0.0, 12.345),
        (12.345, float("inf"), 12.345),
    ],
)
def test_a_figure_has_the_digits_that_its_interval_leaves_known(value: float, half: float, known: float) -> None:
    assert known_digits(value, half) == known


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
    assert describe(plan) == "5 subscribers, 1,000/s, 10 % slow"
    assert describe(plan, ("rate", "burst")) == "5 subscribers, 1,000/s, burst 100, 10 % slow"
