"""A connection to a broker that is cut in the window is in the row; one that the broker closes as idle is not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from hydra.client.server_interface import free_ports
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.connection_losses import LibrdkafkaLosses
from hydra.kafkatest.program import KafkaProgram
from tests.forwarder import TcpForwarder, hang_up
from tests.integration.command import measured
from tests.suite.native_client import native_client

HOST = "127.0.0.1"
PRODUCE = b"\x00\x00"
"""The key of the request, after the length of the frame."""
CUT_AT = 30
"""The request with messages at which connections are cut; fewer probes are sent before the window."""
IDLE_MS = 1000


ALL = pytest.mark.tier("all")


class Cutting(TcpForwarder):
    """Ends all connections at a request with messages, once.

    Attributes:
        cut_at: that request; 0: none is cut.
        taken: the connections that were made.
    """

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.begin(0)
        self._lock = threading.Lock()

    def begin(self, cut_at: int) -> None:
        self.cut_at, self.taken, self._produced = cut_at, 0, 0

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        self.taken += 1
        self.run(self._pass_on, client, server, True)
        self.run(self._pass_on, server, client, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, of_client: bool) -> None:
        try:
            while data := source.recv(65_536):
                target.sendall(data)
                if of_client and data[4:6] == PRODUCE:
                    self._count()
        finally:
            hang_up(source, target)

    def _count(self) -> None:
        with self._lock:
            self._produced += 1
            if self._produced == self.cut_at:
                hang_up(*self._open[1:])


@pytest.fixture(scope="module")
def cutting(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cutting]:
    """In front of a broker that closes idle connections after a second, and names the forwarder to its clients."""
    inner = free_ports(HOST, 1)[0]

    def more(port: int, controller_port: int) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://{HOST}:{port},CLIENTS://{HOST}:{inner},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port},CLIENTS://{forwarder.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "connections.max.idle.ms": str(IDLE_MS),
        }

    folder = tmp_path_factory.mktemp("cut") / "broker"
    with Cutting(f"{HOST}:{inner}") as forwarder, LocalBroker(folder, KafkaProgram(more=more), warm=False):
        yield forwarder


@pytest.mark.tier("test")
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "idle"])
@pytest.mark.parametrize(
    "client", [pytest.param("native", marks=ALL), "confluent-kafka", pytest.param("kafka-python", marks=ALL)]
)
def test_a_lost_connection_is_in_the_row(tmp_path: Path, cutting: Cutting, client: str, cut: bool) -> None:
    if client == "native" and not native_client("kafka-sub"):
        pytest.skip("the native client is not built")
    cutting.begin(CUT_AT if cut else 0)
    (row,) = measured(
        tmp_path / "run",
        *("kafka-fixed", "--client", client, "--bootstrap", cutting.address, "--clients", 2, "--set", "warmup_s=0"),
        *(("--rate", 20, "--duration", 3) if cut else ("--rate", 0.5, "--duration", 4)),
    )
    lost = [row["publishers_disconnected"], row["subscribers_disconnected"]]
    assert lost == (["1", "2"] if cut else ["0", "0"])
    assert row["clean"] == str(not cut)
    # librdkafka 2.16 forgets its reason if no broker is left.
    assert ("isconnected" in row["disconnected_why"]) is (cut and client != "confluent-kafka")


UP = {"nodeid": 1, "state": "UP", "disconnects": 0, "tx": 8, "waitresp_cnt": 0, "txidle": 20_000}
IDLE = {**UP, "txidle": 900_000}
ENDED = {"disconnects": 1, "state": "CONNECT"}
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN)


@pytest.mark.tier("quick")
@pytest.mark.parametrize(
    ("before", "after", "losses"),
    [
        (UP, {**UP, **ENDED}, 1),
        ({**IDLE, "waitresp_cnt": 1}, {**UP, **ENDED}, 1),
        (UP, DOWN, 1),
        (UP, None, 1),
        (UP, {**UP, "tx": 4}, 1),
        (UP, {**UP, "tx": 9}, 0),
        (IDLE, {**IDLE, **ENDED}, 0),
        (IDLE, DOWN, 0),
        ({**UP, "nodeid": -1}, {**UP, **ENDED, "nodeid": -1}, 0),
        ({**UP, "state": "CONNECT"}, DOWN, 0),
    ],
    ids=[
        "used",
        "on its way",
        "no broker left",
        "forgotten",
        "learned anew",
        "stands",
        "idle",
        "idle, none left",
        "only an address",
        "not connected",
    ],
)
def test_librdkafka_ends_a_connection_in_use(before: dict[str, Any], after: Any, losses: int) -> None:
    found = LibrdkafkaLosses()
    found.read(json.dumps({"brokers": {"a": before}}))
    if isinstance(after, KafkaError):
        found.note(after)
    else:
        found.note(KafkaError(KafkaError._TRANSPORT, "Disconnected"))
        found.read(json.dumps({"brokers": {"a": after} if after else {}}))
    why = "Disconnected" if losses and after is not DOWN else ""
    assert found.total() == (losses, why)
    found.begin()
    assert found.total() == (0, "")
