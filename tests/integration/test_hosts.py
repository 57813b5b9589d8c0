"""What a run stores of hosts elsewhere, here network namespaces, and that none of them can make a step fail."""

from __future__ import annotations

import io
import os
import platform
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from hydra.cluster.local.engine import LocalEngine
from hydra.config.cluster import load_cluster
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_GOOD
from hydra.results.store import RunStore
from hydra.run.moment import Moment
from hydra.run.progress import Observer
from hydra.run.runner import run
from hydra.zmqtest.system import ZmqSystem
from tests.mesos.namespaces import Hosts, hosts
from tests.truth.conftest import require

pytestmark = pytest.mark.processes

AGENTS = ["agent-pub", "agent-sub-1"]
SECONDS = 4.0
SUSPENDED_S = 2.0
SECOND_NS = 10**9


@pytest.fixture
def network() -> Iterator[Hosts]:
    if os.geteuid():
        pytest.skip("network namespaces need root")
    with hosts(len(AGENTS)) as made:
        yield made


class Suspends(Observer):
    """Suspends the relay of the subscribers a second into the window, for ``SUSPENDED_S``."""

    def tick(self, moment: Moment) -> None:
        super().tick(moment)
        if 1 < moment.elapsed_s < 1 + SUSPENDED_S:
            relay_of("zmq-sub").suspend()
        if moment.elapsed_s > 1 + SUSPENDED_S:
            relay_of("zmq-sub").resume()


def relay_of(kind: str) -> psutil.Process:
    """The first that the parent of this machine's only such group has forked."""
    members = [p for p in psutil.Process().children(recursive=True) if kind in p.cmdline()]
    pids = {p.pid for p in members}
    (parent,) = (p for p in members if p.ppid() not in pids)
    return min((p for p in members if p.ppid() == parent.pid), key=lambda p: p.pid)


def ran(folder: Path, network: Hosts, implementation: str, observer: Observer) -> RunStore:
    scenario = load_scenario(
        "zmqfixed",
        {
            "settings.rate": 500.0,
            "sweep.duration_s": SECONDS,
            "sweep.clients": [2],
            "warmup_s": 0.0,
            "client": implementation,
        },
    )
    agents = [agent for agent in load_cluster().agents if agent.id in AGENTS]
    agents = [replace(agent, netns=name) for agent, name in zip(agents, network.names, strict=True)]
    cluster = replace(load_cluster(), agents=tuple(agents))
    store = RunStore.create(folder / "run", {"scenario": scenario})
    with closing(LocalEngine(cluster.agents, folder / "sandbox")) as engine:
        assert run(scenario, cluster, engine, ZmqSystem(scenario), store, observer) == EXIT_GOOD
    return store


@pytest.mark.parametrize("implementation", ["pyzmq", "native"])
@pytest.mark.parametrize("suspended", [False, True])
def test_every_host_tells_what_it_did_as_long_as_it_can(
    implementation: str, suspended: bool, network: Hosts, tmp_path: Path
) -> None:
    require(implementation)
    observer = Suspends(io.StringIO()) if suspended else Observer(io.StringIO())
    with ran(tmp_path, network, implementation, observer) as store:
        (result,) = store.results()
        assert result.status == "ok"
        assert (result.figures["failed_clients"], result.figures["client_loss_pct"]) == (0, 0)
        samples, threads = store.host_samples(result.epoch), store.threads(result.epoch)
        assert store.host_of(result.epoch) == {agent: agent for agent in AGENTS}
        assert samples.keys() == {platform.node(), *AGENTS}
        begin_ns, end_ns = store.window_ns(result.epoch)
        for agent in AGENTS:
            times = [s.time_ns for s in samples[agent]]
            # The first is read before the window begins, and the last tick of it is a quarter of a second.
            assert times[0] < begin_ns
            assert times[-1] > end_ns - SECOND_NS
            longest_ns = max(after - before for before, after in pairwise(times))
            assert (longest_ns > 0.75 * SUSPENDED_S * SECOND_NS) == (suspended and agent == AGENTS[1])
            assert all(list(s.counters.interfaces) == ["eth0"] for s in samples[agent])
        carried = [s.counters.interfaces["eth0"].tx_bytes for s in samples[AGENTS[0]]]
        assert carried[-1] - carried[0] > 0.5 * SECONDS * 500 * 24
        # Of publishers, and of a group of subscribers on each agent: verdicts go by both.
        assert threads.keys() == set(AGENTS)
