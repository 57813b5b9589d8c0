"""Agents with network namespaces of their own, with real namespaces: they need root."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from hydra.cluster.local.engine import LocalEngine
from hydra.errors import ClusterError
from hydra.kafkatest.metrics import of_interfaces
from hydra.model import Agent, Demand, Group, Resources
from hydra.servers.namespaces import interfaces, traffic
from tests.integration.command import wait_until
from tests.mesos.namespaces import hosts

pytestmark = pytest.mark.processes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
BYTES = 200_000
SENDS = f"""
import os, socket
with socket.socket() as s:
    s.bind((os.environ["HYDRA_DATA_HOST"], 0))
    s.connect(("HERE", PORT))
    s.sendall(bytes({BYTES}))
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
"""


def agent(name: str, netns: str) -> Agent:
    return Agent(name, name, {}, Resources(cpus=2, mem=100), netns)


def test_a_namespace_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"the agents' network namespace hydra-no-such.*scripts/namespaces"):
        LocalEngine([agent("one", "hydra-no-such")], tmp_path)


@needs_root
def test_a_group_runs_in_its_agents_namespace_and_its_bytes_are_counted(tmp_path: Path) -> None:
    with hosts(2) as network, socket.create_server((network.here, 0)) as server:
        server.settimeout(10)
        engine = LocalEngine([agent("one", network.names[0])], tmp_path)
        try:
            assert engine.address == network.here
            endpoints = [f"{address}:1,{address}:2" for address in network.addresses]
            before = of_interfaces(endpoints)
            assert list(before) == ["broker 1", "broker 2"]
            port = server.getsockname()[1]
            program = SENDS.replace("HERE", network.here).replace("PORT", str(port))
            command = (sys.executable, "-S", "-c", program)
            engine.launch([Group("g", "server", 0, 1, command, {}, Demand(base_cpus=1))])
            connection, (source, _) = server.accept()
            with connection:
                assert source == network.addresses[0]
                left = BYTES
                while left:
                    left -= len(connection.recv(left))
            wait_until(lambda: "finished" in [event.state for event in engine.events()], 10, "its end")
            after = of_interfaces(endpoints)
        finally:
            engine.close()
        sent = {
            name: after[name]["interface_out_bytes_total"] - before[name]["interface_out_bytes_total"] for name in after
        }
        assert BYTES < sent["broker 1"] < 1.2 * BYTES
        assert sent["broker 2"] < 0.1 * BYTES


@needs_root
def test_brokers_that_share_an_address_have_no_interface_of_their_own() -> None:
    with hosts(1) as network:
        (address,) = network.addresses
        assert [each.address for each in interfaces(network.names[0])] == [address]
        assert traffic([address]).keys() == {address}
        assert of_interfaces([f"{address}:1,{address}:2", f"{address}:3,{address}:4"]) == {}
        assert of_interfaces(["127.0.0.1:1,127.0.0.1:2"]) == {}
