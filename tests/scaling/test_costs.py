"""Budgets: what clients cost, from steps of which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.analysis.costs import (
    BUDGETS,
    PUBLISHER_MEMORY,
    SERVER_CPU,
    StepUsage,
    fit_budget,
)
from tests.scaling.known_steps import COUNTS, LISTENER, MESSAGE_S, SECOND_S, step


def steps(*rates: float) -> list[StepUsage]:
    rng = np.random.default_rng(1)
    return [step(clients, rate, rng.lognormal(0, 0.02)) for clients in COUNTS for rate in rates]


def test_two_rates_tell_what_a_message_and_what_a_second_costs() -> None:
    found = fit_budget(BUDGETS[0], steps(10.0, 1000.0))
    assert found is not None
    for interval, true in zip(found.terms, (MESSAGE_S, SECOND_S), strict=True):
        assert interval.usable
        assert interval.low < true < (interval.high or 0)
    at = found.at(step(100_000, 50.0))
    assert at.usable
    assert at.low < step(100_000, 50.0).subscriber_cpu_s < (at.high or 0)


def test_memory_of_a_listener_is_the_slope() -> None:
    found = fit_budget(next(budget for budget in BUDGETS if budget.name == PUBLISHER_MEMORY), steps(100.0))
    assert found is not None
    assert found.terms[1].estimate == pytest.approx(LISTENER, rel=0.02)


def test_what_nobody_told_has_no_fit() -> None:
    assert fit_budget(next(budget for budget in BUDGETS if budget.name == SERVER_CPU), steps(100.0)) is None
    assert fit_budget(BUDGETS[0], [step(10), step(20)]) is None
