"""Searches of few, short steps on a machine that others load: what their rows may contain, whatever chance does."""

from __future__ import annotations

import os
from functools import cache
from math import exp, log
from typing import Final

import numpy as np
import pytest

from hydra.measure.column import LossBursts
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Figure, Scenario, StepPlan
from hydra.sweep import Row
from hydra.sweep.rate_search import Search
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_columns import rates
from hydra.sweep.search_spec import SearchSpec

pytestmark = pytest.mark.tier("test")

SEARCH: Final = SearchSpec(
    start_rate=4000.0, series=("max_rate", "loss", "slow", "reconnecting"), width=3.0, steps=12
)  # as in tests/integration/test_commands.py
STEP_S: Final = 0.3
STALLS: Final = (0.02, 0.1, 0.3, 0.6)
"""How likely a step has a stall of its machine, and one more after each."""
SEEDS: Final = range(4 * int(os.environ.get("HYDRA_SEARCHES", "2")))


@cache
def row_of(seed: int) -> Row:
    """The row of a system with some capacity, whose steps are stalled at random whatever their rate is."""
    chance = np.random.default_rng(seed)
    capacity, stall = exp(chance.uniform(log(500), log(3e5))), float(chance.choice(STALLS))
    scenario = Scenario("z", "zmq", "pyzmq", "rates", SearchSweep(clients=(3,), duration_s=STEP_S, search=SEARCH))
    sweep, results = Search(scenario, SEARCH), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        results.append(StepResult(len(results) + 1, plan, "ok", StepFigures.of(figures(plan, capacity, stall, chance))))
    (row,) = sweep.rows(results)
    return row


def figures(plan: StepPlan, capacity: float, stall: float, chance: np.random.Generator) -> dict[str, Figure]:
    """What a step comes to."""
    assert plan.settings.rate != "max"
    lost = max(0.0, 1 - capacity * exp(chance.normal(0, 0.1)) / plan.settings.rate)
    bursts = [lost * STEP_S] if lost else []
    while chance.random() < stall:
        bursts.append(float(min(chance.lognormal(log(0.01), 1.5), STEP_S)))
    share = min(sum(bursts) / STEP_S, 1.0)
    whole = [burst * share * STEP_S / sum(bursts) for burst in bursts]
    return {"bursts_s": LossBursts(tuple(whole)), "avg_rx_rate_pps": plan.settings.rate * (1 - share)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_figure_is_in_its_interval_or_its_note_says_why_there_is_none(seed: int) -> None:
    row, columns = row_of(seed), rates(SEARCH)
    for series in ("loss", "slow", "reconnecting"):
        figure, low, high = (row[name] for name in (columns[series], f"{series}_low_pps", f"{series}_high_pps"))
        if isinstance(figure, float):
            assert isinstance(low, float)
            assert isinstance(high, float)
            assert low < figure < high <= 4 * low
            # Three and a half seconds are too few to see what the figure claims.
            assert row[f"{series}_seen"] is False
        else:
            assert row[f"{series}_answer"] in ("none", "unknown")
            assert row[f"{series}_note"]
