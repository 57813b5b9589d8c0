"""How many steps a search without an answer advises, and what they lead to when they are measured."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil

import pytest

from tests.sweep.simulated import System, searched
from tests.sweep.worlds import WORLDS

pytestmark = pytest.mark.tier("all")

STEP_S = 5.0
FIRST = (8, 12)
"""Steps of the first search: too few for most worlds."""
HARD = ("BurstyFloor", "BufferedStalls", "Stalls", "Proportional", "WarmsUp", "Drifts")
"""Worlds that change, in which no rate holds, or in which the rate has little effect: see docs/limits.md."""


@cache
def followed() -> list[tuple[str, list[tuple[int, str]]]]:
    """Searches of the other worlds that follow their advice, at most twice: the steps and the answer of each."""
    names = [name for name in WORLDS if name not in HARD]
    return [(f"{name}/{steps}", list(_chain(name, steps))) for name in names for steps in FIRST]


def _chain(name: str, steps: int) -> Iterator[tuple[int, str]]:
    seed = 10 * steps
    for turn in range(3):
        # Another run of the same system.
        row = searched(System(WORLDS[name](seed + turn), failing=0.0), STEP_S, steps=steps)
        yield steps, str(row["loss_answer"])
        if row["loss_why"] != "too short":
            return
        needed_s = row["loss_needed_s"]
        assert isinstance(needed_s, float)
        steps = ceil(needed_s / STEP_S)


def test_the_advised_steps_find_a_figure_in_two_of_three_searches() -> None:
    advised = {name: its[1][1] for name, its in followed() if len(its) > 1}
    assert len(advised) >= 20
    assert sum(answer == "figure" for answer in advised.values()) >= 2 / 3 * len(advised), advised


def test_the_advice_grows_in_few_searches_when_it_is_followed() -> None:
    again = {name: its for name, its in followed() if len(its) > 2}
    assert len(again) <= len(followed()) / 3, again
