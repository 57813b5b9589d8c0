"""Budgets: what clients cost, from steps of which it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hydra.analysis.costs import (
    BUDGETS,
    PUBLISHER_CPU,
    PUBLISHER_MEMORY,
    SUBSCRIBER_CPU,
    StepUsage,
    fit_budget,
    measured_cost,
    per_listener,
)
from hydra.analysis.declared_costs import Cost

MESSAGE_S, SECOND_S, LISTENER = 20e-6, 1e-3, 30_000.0
COUNTS = (10, 20, 40, 80, 160, 320, 640)


def step(clients: int, rate: float = 100.0, noise: float = 1.0) -> StepUsage:
    """Ten seconds of a system in which each message and each second of a client has its price."""
    received = clients * rate * 10
    cpu_s = (MESSAGE_S * received + SECOND_S * clients * 10) * noise
    return StepUsage(
        clients, publishers=1, servers=0, direct=True, seconds=10.0, rate=rate, held=True, limit="requested rate",
        throughput=received / 10, sent=rate * 10, received=received, received_bytes=24 * received,
        subscriber_cpu_s=cpu_s, publisher_cpu_s=2 * cpu_s, publisher_memory_bytes=5e6 + LISTENER * clients,
        server_cpu_s=None, network_bytes=None,
    )  # fmt: skip


def steps(*rates: float) -> list[StepUsage]:
    rng = np.random.default_rng(1)
    return [step(clients, rate, rng.lognormal(0, 0.02)) for clients in COUNTS for rate in rates]


def known(budget: str, its: list[StepUsage], rate: float = 100.0) -> Cost:
    cost = measured_cost(budget, its, rate, "run")
    assert cost is not None
    return cost


def test_two_rates_tell_what_a_message_and_what_a_second_costs() -> None:
    found = fit_budget(BUDGETS[0], steps(10.0, 1000.0))
    assert found is not None
    for interval, true in zip(found.terms, (MESSAGE_S, SECOND_S), strict=True):
        assert interval.usable
        assert interval.low < true < (interval.high or 0)
    at = found.at(step(100_000, 50.0))
    assert at.usable
    assert at.low < step(100_000, 50.0).subscriber_cpu_s < (at.high or 0)


def test_one_rate_tells_the_cost_at_that_rate_only() -> None:
    cost = known(SUBSCRIBER_CPU, steps(100.0))
    assert cost.value == pytest.approx(MESSAGE_S * 100 + SECOND_S, rel=0.05)
    assert (cost.clients, cost.rates, cost.too_wide) == (640, (100.0, 100.0), False)
    assert known(SUBSCRIBER_CPU, steps(100.0), rate=1.0).too_wide


def test_overloaded_steps_do_not_count_where_others_held() -> None:
    late = [replace(step(clients, 100.0, 0.2), held=False) for clients in (1280, 2560)]
    assert known(PUBLISHER_CPU, steps(100.0) + late) == known(PUBLISHER_CPU, steps(100.0))
    assert known(PUBLISHER_CPU, late)


def test_few_steps_give_their_range_and_say_so() -> None:
    cost = known(SUBSCRIBER_CPU, [step(10), step(20, noise=1.5), step(40, noise=3.0)])
    assert "too few for a fit" in cost.source
    assert cost.low == pytest.approx(cost.value / 1.5)
    assert cost.too_wide


def test_what_nobody_told_is_not_known() -> None:
    assert measured_cost("CPU of servers", steps(100.0), 100.0, "run") is None
    assert measured_cost(SUBSCRIBER_CPU, [], 100.0, "run") is None
    assert per_listener([step(10), step(20)], "run") is None


def test_memory_of_a_listener_is_the_slope() -> None:
    cost = per_listener(steps(100.0), "run")
    assert cost is not None
    assert cost.value == pytest.approx(LISTENER, rel=0.02)
    assert PUBLISHER_MEMORY in [budget.name for budget in BUDGETS]


def test_a_cost_knows_the_sizes_and_the_loads_that_it_was_measured_at() -> None:
    one, two = step(10), step(20)
    larger = replace(two, received_bytes=100 * two.received, swing=3.0)
    for its in ([one, larger], [*steps(10.0), larger]):
        cost = known(SUBSCRIBER_CPU, its)
        assert (*(cost.sizes or ()), cost.swing) == pytest.approx((24.0, 100.0, 3.0))
