"""A run whose groups have clocks of their own: the stated clocks and latencies are true.

Each group is in a time namespace, whose CLOCK_MONOTONIC is ahead of the controller's by exactly the test's value. The
way to one subscriber's host is slow there, the way to the other's is slow back; messages themselves take no such ways.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.config.cluster import load_cluster
from hydra.config.scenario import resolve
from hydra.errors import EXIT_GOOD
from hydra.measure.latency import count_below_zero
from hydra.measure.step_result import StepResult
from hydra.model import Agent, AgentClock
from hydra.monitor.progress_view import Observer
from hydra.run.context import RunContext
from hydra.run.runner import run
from hydra.store.database import RunStore
from hydra.zmqtest.system import ZmqSystem
from tests.mesos.namespaces import hosts
from tests.truth.clocks.bursts import HELD_UP_TIMES, Bursts, recorded
from tests.truth.clocks.forwarder import Delay
from tests.truth.clocks.other_hosts import Elsewhere, OtherHosts
from tests.truth.conftest import require
from tests.truth.scale import cases

pytestmark = pytest.mark.tier("all")

MS = 1_000_000
US = 1000
LATE = Delay(100 * MS)
AT_ONCE = Delay()
ELSEWHERE = {
    "agent-pub": Elsewhere(1000, AT_ONCE, AT_ONCE),
    "agent-sub-1": Elsewhere(3, LATE, AT_ONCE),
    "agent-sub-2": Elsewhere(5_000_000, AT_ONCE, LATE),
}
REPEATS = 2
WIDER_NS = 2 * MS
"""What a bound may be above half of the shortest round trip, where no burst was held up; simulated hosts show how
narrow it is on a machine that has time for it."""
HELD_UP_US = 45_000
"""What half of the messages take at most from publisher to subscriber on this machine, busy or not."""


@pytest.fixture(scope="module", autouse=True)
def _needs_time_namespaces() -> None:
    try:
        tried = subprocess.run(
            ["unshare", "--time", "--monotonic", "1", "true"], capture_output=True, text=True, check=False
        )
    except OSError as e:
        pytest.skip(f"time namespaces need unshare of util-linux: {e}")
    if tried.returncode:
        pytest.skip(f"no time namespaces here (they need root and Linux 5.6): {tried.stderr.strip()}")


def ran(folder: Path, agents: Sequence[Agent], implementation: str) -> RunStore:
    """A run of a few equal steps with a publisher and a subscriber on each other agent."""
    changes = {"settings.rate": 500.0, "sweep.clients": [2], "sweep.repeat": REPEATS, "client": implementation}
    resolved = resolve("zmqfixed", {**changes, "sweep.duration_s": 0.5, "warmup_s": 0.0})
    its_cluster = replace(load_cluster(), agents=tuple(agents))
    store = RunStore.create(folder / "run", {"scenario": resolved.scenario})
    with closing(OtherHosts(its_cluster.agents, folder / "sandbox", ELSEWHERE)) as engine:
        system = ZmqSystem(resolved.scenario)
        code = run(RunContext(resolved, its_cluster, engine, system, store, Observer(io.StringIO()))).code
    assert code == EXIT_GOOD
    return store


@pytest.mark.parametrize(
    ("implementation", "namespaced"), cases([("pyzmq", False), ("native", True)], [("native", False), ("pyzmq", True)])
)
def test_clocks_and_latencies_are_as_wrong_as_is_said_at_most(
    implementation: str, namespaced: bool, tmp_path: Path
) -> None:
    require(implementation)
    agents = [agent for agent in load_cluster().agents if agent.id in ELSEWHERE]
    with ExitStack() as stack:
        if namespaced:
            if os.geteuid():
                pytest.skip("network namespaces need root")
            network = stack.enter_context(hosts(len(agents)))
            agents = [replace(agent, netns=name) for agent, name in zip(agents, network.names, strict=True)]
        bursts = stack.enter_context(recorded())
        with ran(tmp_path, agents, implementation) as store:
            results = store.results()
            assert len(results) == REPEATS
            # Relays have read what the controller makes the record of their machine of.
            machines = store.machines()
            assert len({machines[agent].kernel for agent in ELSEWHERE}) == 1
            activities = [store.machine_activities(result.epoch) for result in results]
            # An answer that comes after the row is not of it.
            known = {agent for agent in ELSEWHERE if any(its[agent].others is not None for its in activities)}
            assert known == set(ELSEWHERE)
            for result in results:
                clocks = store.clocks(result.epoch)
                offsets_are_true(clocks)
                bounds_are_narrow(clocks, bursts)
                latencies_are_true(store, result, clocks)


def bounds_are_narrow(clocks: dict[str, AgentClock], bursts: Bursts) -> None:
    """Each is half of the shortest round trip, and little more than what held the bursts up."""
    for agent, way in ELSEWHERE.items():
        wider_ns = clocks[agent].error_ns - clocks[agent].rtt_min_ns // 2
        assert wider_ns <= WIDER_NS + HELD_UP_TIMES * bursts.held_up_ns(way.ahead_s * 10**9)


def offsets_are_true(clocks: dict[str, AgentClock]) -> None:
    """Each clock is as far ahead as its namespace has it, but for its bound, and was asked over the delayed way."""
    assert clocks.keys() == ELSEWHERE.keys()
    for agent, way in ELSEWHERE.items():
        clock = clocks[agent]
        assert not clock.same_host
        assert clock.jumps == 0
        assert abs(clock.offset_ns - way.ahead_s * 10**9) <= clock.error_ns
        assert clock.rtt_min_ns >= way.to_host.least_ns + way.back.least_ns


def latencies_are_true(store: RunStore, result: StepResult, clocks: dict[str, AgentClock]) -> None:
    """They are off by half of what one direction is late by, at most by the bound; those below zero are counted."""
    publisher, early, late = (clocks[agent] for agent in ELSEWHERE)
    worst_us = (publisher.error_ns + max(early.error_ns, late.error_ns)) / US
    bound_us, negative = (result.figures[name] for name in ("latency_bound_us", "negative_latencies"))
    assert isinstance(bound_us, int | float)
    assert worst_us <= bound_us <= worst_us + 1
    rows = [row for row in store.clients(result.epoch) if row["role"] == "subscriber"]
    medians_us = {row["agent"]: row["p50_us"] for row in rows}
    # What is late on its way there makes the host's clock look as if it were ahead.
    assert -bound_us - 1 <= medians_us["agent-sub-1"] < -1000
    # What is late on its way back makes it look behind by what this leaves of the bounds: some 50 ms.
    least_us = (LATE.least_ns - late.error_ns - publisher.error_ns) / US
    assert least_us - 1 <= medians_us["agent-sub-2"] <= bound_us + HELD_UP_US
    latency = store.histogram(result.epoch)
    assert latency.min_us < -1000
    assert negative == count_below_zero(latency) > sum(row["messages"] for row in rows) / 5
