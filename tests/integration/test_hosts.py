"""Runs on hosts of their own, network namespaces with an agent each: what is stored of them, and the network's verdict.

Root makes the hosts. A token bucket makes the way to the subscribers' host slow.
"""

from __future__ import annotations

import io
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from hydra.config.cluster import load_cluster
from hydra.config.scenario import resolve
from hydra.errors import EXIT_GOOD
from hydra.local.engine import LocalEngine
from hydra.measure.resources import summarise
from hydra.measure.verdict import LOSSY_NETWORK
from hydra.monitor.progress_view import Observer
from hydra.monitor.step_progress import StepProgress
from hydra.run.context import RunContext
from hydra.run.runner import run
from hydra.store.database import RunStore
from hydra.zmqtest.system import ZmqSystem
from tests.mesos.namespaces import Hosts, hosts
from tests.truth.conftest import require

pytestmark = pytest.mark.tier("all")

AGENTS = PUBLISHER, SUBSCRIBER = ["agent-pub", "agent-sub-1"]
SECONDS = 4.0
SUSPENDED_S = 2.0
SECOND_NS = 10**9


@pytest.fixture
def network() -> Iterator[Hosts]:
    """A publisher's host and a subscriber's."""
    if os.geteuid():
        pytest.skip("network namespaces need root")
    with hosts(len(AGENTS)) as made:
        yield made


def ran(
    folder: Path, network: Hosts, implementation: str, settings: dict[str, object], observer: Observer | None = None
) -> RunStore:
    """A fixed-rate step whose publisher is on the first of these hosts, and whose subscribers are on the second."""
    resolved = resolve("zmqfixed", {"warmup_s": 0.0, "client": implementation, **settings})
    agents = [agent for agent in load_cluster().agents if agent.id in AGENTS]
    agents = [replace(agent, netns=name) for agent, name in zip(agents, network.names, strict=True)]
    cluster = replace(load_cluster(), agents=tuple(agents))
    store = RunStore.create(folder / "run", {"scenario": resolved.scenario})
    with closing(LocalEngine(cluster.agents, folder / "sandbox")) as engine:
        system = ZmqSystem(resolved.scenario)
        code = run(RunContext(resolved, cluster, engine, system, store, observer or Observer(io.StringIO()))).code
        assert code == EXIT_GOOD
    return store


class Suspends(Observer):
    """Suspends the relay of the subscribers a second into the window, for ``SUSPENDED_S``."""

    def tick(self, moment: StepProgress) -> None:
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


@pytest.mark.parametrize(("implementation", "suspended"), [("pyzmq", False), ("pyzmq", True), ("native", True)])
def test_every_host_tells_what_it_did_as_long_as_it_can(
    implementation: str, suspended: bool, network: Hosts, tmp_path: Path
) -> None:
    require(implementation)
    settings = {"settings.rate": 500.0, "sweep.duration_s": SECONDS, "sweep.clients": [2]}
    with ran(tmp_path, network, implementation, settings, Suspends(io.StringIO()) if suspended else None) as store:
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


# --- a link that is too slow ---------------------------------------------------------------------------------------

SLOW_BITS_S = 8_000_000
"""A quarter of what the publisher sends; what the control channel needs fits into it easily."""
BURST, QUEUE = 16_000, 32_000
FAST: dict[str, object] = {"settings.rate": 4000.0, "settings.message_size": 1000, "sweep.clients": [1]}
FAST |= {"sweep.duration_s": 2.0, "drain_max_s": 1.0}


def slow(link: str) -> None:
    bucket = f"rate {SLOW_BITS_S}bit burst {BURST} limit {QUEUE}"
    try:
        words = ["tc", "qdisc", "add", "dev", link, "root", "tbf", *bucket.split()]
        subprocess.run(words, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"no token bucket here: {e} {getattr(e, 'stderr', b'')!r}")


@pytest.mark.parametrize("implementation", ["pyzmq", "native"])
def test_a_link_that_is_too_slow_is_the_verdict(implementation: str, network: Hosts, tmp_path: Path) -> None:
    require(implementation)
    slow(network.links[1])
    with ran(tmp_path, network, implementation, FAST) as store:
        (result,) = store.results()
        figures, epoch = result.figures, result.epoch
        summaries = {host: summarise(its, store.window_ns(epoch)) for host, its in store.host_samples(epoch).items()}
        assert store.host_of(epoch) == {PUBLISHER: PUBLISHER, SUBSCRIBER: SUBSCRIBER}
        threads = store.threads(epoch)
    # The subscriber had a backlog, and its host was not the cause.
    assert figures["passed"] is False
    assert str(figures["verdict"]) == "network"
    again = float(str(figures["tcp_retransmitted_pct"]))
    assert again >= 100 * LOSSY_NETWORK
    # Each end has samples of its own: what one has sent and the link has carried, the other has received.
    sent, received = summaries[PUBLISHER], summaries[SUBSCRIBER]
    assert sent is not None
    assert received is not None
    assert sent.segments_retransmitted == pytest.approx(again / 100)
    most_bytes_s = SLOW_BITS_S / 8 + BURST / 2
    assert 0.3 * most_bytes_s <= received.interfaces["eth0"].received_bytes_s <= 1.1 * most_bytes_s
    assert sent.interfaces["eth0"].sent_bytes_s >= 0.9 * received.interfaces["eth0"].received_bytes_s
    assert list(sent.interfaces) == ["eth0"]
    roles = {agent: samples[0].role for agent, samples in threads.items()}
    assert roles == {PUBLISHER: "publisher", SUBSCRIBER: "subscriber"}
    assert "for the network" in str(figures["verdict_evidence"])
    assert any(sample.threads for sample in threads[PUBLISHER])


def test_the_same_link_without_its_limit_is_not(network: Hosts, tmp_path: Path) -> None:
    with ran(tmp_path, network, "pyzmq", FAST) as store:
        (result,) = store.results()
    assert float(str(result.figures["tcp_retransmitted_pct"])) < 100 * LOSSY_NETWORK
    assert str(result.figures["verdict"]) != "network"
