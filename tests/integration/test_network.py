"""A run whose publisher sends over a link that is too slow for it: the verdict is the network's.

Clients are on hosts of their own, network namespaces; a token bucket makes the way to the subscribers' host slow.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.cluster.local.engine import LocalEngine
from hydra.config.cluster import load_cluster
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_GOOD
from hydra.measure.resources import summarise
from hydra.measure.verdict import LOSSY_NETWORK
from hydra.results.store import RunStore
from hydra.run.progress import Observer
from hydra.run.runner import run
from hydra.zmqtest.system import ZmqSystem
from tests.mesos.namespaces import Hosts, hosts
from tests.truth.conftest import require

pytestmark = pytest.mark.processes

PUBLISHER, SUBSCRIBER = "agent-pub", "agent-sub-1"
RATE, SIZE, SECONDS = 4000.0, 1000, 2.0
SLOW_BITS_S = 8_000_000
"""A quarter of what the publisher sends; what the control channel needs fits into it easily."""
BURST, QUEUE = 16_000, 32_000


@pytest.fixture
def network() -> Iterator[Hosts]:
    """Two hosts, a publisher's and a subscriber's."""
    if os.geteuid():
        pytest.skip("network namespaces need root")
    try:
        subprocess.run(["tc", "-V"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"slowing a link down needs tc: {e}")
    with hosts(2) as made:
        yield made


def slow(link: str) -> None:
    bucket = ["rate", f"{SLOW_BITS_S}bit", "burst", str(BURST), "limit", str(QUEUE)]
    made = subprocess.run(
        ["tc", "qdisc", "add", "dev", link, "root", "tbf", *bucket], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no token bucket here: {made.stderr.strip()}")


def ran(folder: Path, network: Hosts, implementation: str) -> RunStore:
    """A step with the publisher on one of these hosts, and a subscriber on the other."""
    scenario = load_scenario(
        "zmqfixed",
        {
            "settings.rate": RATE,
            "settings.message_size": SIZE,
            "sweep.duration_s": SECONDS,
            "sweep.clients": [1],
            "drain_max_s": 1.0,
            "client": implementation,
        },
    )
    agents = [agent for agent in load_cluster().agents if agent.id in (PUBLISHER, SUBSCRIBER)]
    agents = [replace(agent, netns=name) for agent, name in zip(agents, network.names, strict=True)]
    cluster = replace(load_cluster(), agents=tuple(agents))
    store = RunStore.create(folder / "run", {"scenario": scenario})
    with closing(LocalEngine(cluster.agents, folder / "sandbox")) as engine:
        code = run(scenario, cluster, engine, ZmqSystem(scenario), store, Observer(io.StringIO()))
    assert code == EXIT_GOOD
    return store


@pytest.mark.parametrize("implementation", ["pyzmq", "native"])
def test_a_link_that_is_too_slow_is_the_verdict(implementation: str, network: Hosts, tmp_path: Path) -> None:
    require(implementation)
    slow(network.links[1])
    with ran(tmp_path, network, implementation) as store:
        (result,) = store.results()
        figures, epoch = result.figures, result.epoch
        summaries = {host: summarise(its, store.window_ns(epoch)) for host, its in store.host_samples(epoch).items()}
        assert store.host_of(epoch) == {PUBLISHER: PUBLISHER, SUBSCRIBER: SUBSCRIBER}
        threads = store.threads(epoch)
    # The subscriber fell behind, and its host had nothing to do with that.
    assert figures["passed"] is False
    assert figures["verdict"] == "network"
    again = figures["tcp_retransmitted_pct"]
    assert isinstance(again, float)
    assert again >= 100 * LOSSY_NETWORK
    # Each end has samples of its own: what one has sent and the link has carried, the other has received.
    sent, received = summaries[PUBLISHER], summaries[SUBSCRIBER]
    assert sent is not None
    assert received is not None
    assert sent.segments_retransmitted == pytest.approx(again / 100)
    most_bytes_s = SLOW_BITS_S / 8 + BURST / SECONDS
    assert 0.3 * most_bytes_s <= received.interfaces["eth0"].received_bytes_s <= 1.1 * most_bytes_s
    assert sent.interfaces["eth0"].sent_bytes_s >= 0.9 * received.interfaces["eth0"].received_bytes_s
    assert list(sent.interfaces) == ["eth0"]
    assert {agent: samples[0].role for agent, samples in threads.items()} == {
        PUBLISHER: "publisher",
        SUBSCRIBER: "subscriber",
    }
    assert "for the network" in str(figures["verdict_evidence"])
    assert any(sample.threads for sample in threads[PUBLISHER])


def test_the_same_link_without_its_limit_is_not(network: Hosts, tmp_path: Path) -> None:
    with ran(tmp_path, network, "pyzmq") as store:
        (result,) = store.results()
    again = result.figures["tcp_retransmitted_pct"]
    assert isinstance(again, float)
    assert again < 100 * LOSSY_NETWORK
    assert result.figures["verdict"] != "network"
