"""Whole rows of connecting whose truth is planted: a full server, a slow network, and clients that never come back."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connections.servers import mosquitto, nats
from tests.connections.words import NATS_PY, PAHO, SMALL, native
from tests.forwarder import TcpForwarder, hang_up
from tests.integration.command import hydra, table
from tests.suite.native_client import native_client

pytestmark = pytest.mark.tier("test")

ALL = pytest.mark.tier("all")
MOST = 5
"""The connections that a full server takes."""
HELD_S = 0.05


def row_of(run: Path, *words: object) -> dict[str, str]:
    hydra(*words, "--out", run)
    (row,) = table(run)
    return row


class Full(TcpForwarder):
    """Takes a number of connections, and closes each further one at once; mosquitto takes some above its limit."""

    def __init__(self, server: str, most: int) -> None:
        super().__init__(server)
        self._left = most
        self._lock = threading.Lock()

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        with self._lock:
            self._left -= 1
            if self._left < 0:
                self._left += 1
                client.close()
                server.close()
                return
        self.run(self._pass_on, client, server, True)
        self.run(self._pass_on, server, client, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        try:
            while data := source.recv(65_536):
                target.sendall(data)
        finally:
            with self._lock:
                self._left += counts


@contextlib.contextmanager
def full_nats(folder: Path) -> Iterator[str]:
    with nats(folder, max_connections=MOST) as address:
        yield address


@contextlib.contextmanager
def full_mosquitto(folder: Path) -> Iterator[str]:
    with mosquitto(folder) as address, Full(address, MOST) as forwarder:
        yield forwarder.address


@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize(
    ("command", "implementation", "server"),
    [("nats-connections", NATS_PY, full_nats), ("mqtt-connections", native("mqtt"), full_mosquitto)],
    ids=["nats", "mqtt"],
)
def test_a_full_server_lets_in_what_others_leave_it(
    tmp_path: Path,
    command: str,
    implementation: tuple[str, ...],
    server: Callable[[Path], contextlib.AbstractContextManager[str]],
) -> None:
    with server(tmp_path / "server") as address:
        within = ("--connect-within", 2.5)
        row = row_of(tmp_path / "run", command, *SMALL, *within, *implementation, "--clients", 6, "--servers", address)
    others = int(row["other_connections"])
    assert others == 2  # the publisher, and Hydra itself
    assert (int(row["connected_clients"]), int(row["never_connected"])) == (MOST - others, 6 - MOST + others)
    assert int(row["connect_refused"]) + int(row["connect_timed_out"]) >= 3
    assert float(row["ready_p50_ms"]) >= float(row["connected_p50_ms"]) > 0
    assert (row["ready_p99_ms"], row["ready_max_ms"]) == ("", "")
    assert float(row["client_loss_pct"]) == 50  # those who were not let in lost all


class Holding(TcpForwarder):
    """Holds the first bytes of each new connection for a while."""

    def connected(self, client: socket.socket, server: socket.socket) -> None:
        self.run(self._pass_on, client, server, threading.Event())
        self.run(self._pass_on, server, client, None)

    def _pass_on(self, source: socket.socket, target: socket.socket, held: threading.Event | None) -> None:
        while data := source.recv(65_536):
            if held is not None:
                held.wait(HELD_S)
                held.set()
            target.sendall(data)


@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize("command", ["nats-connections", pytest.param("mqtt-connections", marks=ALL)])
def test_a_network_that_holds_the_first_bytes_moves_the_median_by_as_much(tmp_path: Path, command: str) -> None:
    system = command.partition("-")[0]
    server = nats if system == "nats" else mosquitto
    with server(tmp_path / "server") as address, Holding(address) as forwarder:
        row = row_of(tmp_path / "run", command, *SMALL, *native(system), "--clients", 8, "--servers", forwarder.address)
    assert int(row["connected_clients"]) == 8
    assert float(row["ready_p50_ms"]) >= 1000 * HELD_S


class Evicting(TcpForwarder):
    """Ends the connections of all subscribers at the first message of a window, and then lets in only some of them.

    A subscriber is known by its CONNECT, which has its name: one that was let in may try again as often as it needs.

    Attributes:
        let_in: how many subscribers are let in again.
    """

    def __init__(self, server: str, let_in: int) -> None:
        super().__init__(server)
        self._let_in = let_in
        self._ends: dict[bytes, tuple[socket.socket, socket.socket]] = {}
        self._back: set[bytes] = set()
        self._evicted = False
        self._lock = threading.Lock()

    def up(self, client: socket.socket, server: socket.socket) -> None:
        connect = client.recv(65_536)
        if not self._may_enter(connect):
            hang_up(client, server)
            return
        server.sendall(connect)
        while data := client.recv(65_536):
            if data[0] & 0xF0 == 0x80 and not self._evicted:  # SUBSCRIBE
                self._ends[connect] = client, server
            server.sendall(data)
            # A PUBLISH ends with the header of a message, whose epoch is 0 in a probe.
            if data[0] & 0xF0 == 0x30 and data[-24:-20] != bytes(4) and not self._evicted:
                with self._lock:
                    self._evicted = True
                for ends in list(self._ends.values()):
                    hang_up(*ends)

    def _may_enter(self, connect: bytes) -> bool:
        with self._lock:
            if not self._evicted or connect not in self._ends or connect in self._back:
                return True
            if len(self._back) == self._let_in:
                return False
            self._back.add(connect)
            return True


def test_of_twenty_clients_two_are_never_let_in_again(tmp_path: Path) -> None:
    implementation = ("--implementation", "native", "--clients-per-process", 20) if native_client("mqtt-sub") else ()
    with mosquitto(tmp_path / "server") as address, Evicting(address, 18) as forwarder:
        row = row_of(
            *(tmp_path / "run", "mqtt-fixed", "--rate", 20, "--duration", 4, "--connect-rate", "max"),
            *(*implementation, "--clients", 20, "--servers", forwarder.address),
            *("--message-size", 24),  # the header is the end of each message: by it the forwarder knows a probe
        )
    assert (int(row["connected_clients"]), int(row["never_connected"])) == (20, 0)
    assert int(row["never_back"]) == 2
    assert int(row["disconnections"]) >= 20
    assert float(row["back_p50_ms"]) >= 0
    assert (row["back_p99_ms"], row["back_max_ms"]) == ("", "")
    assert float(row["client_loss_pct"]) > 0


@pytest.mark.parametrize("implementation", [native("mqtt"), pytest.param(PAHO, marks=ALL)], ids=["native", "paho-mqtt"])
def test_all_clients_come_back_after_the_server_has_restarted(tmp_path: Path, implementation: tuple[str, ...]) -> None:
    event = '[{at_s=0.5,kind="restart_server",for_s=0.4}]'
    row = row_of(
        *(tmp_path / "run", "mqtt-fixed", "--rate", 50, "--duration", 4, "--set", f"events={event}"),
        *("--set", "warmup_s=0", *implementation, "--clients", 3),
    )
    assert (int(row["disconnections"]), int(row["never_back"])) == (3, 0)
    assert float(row["back_p50_ms"]) >= 400  # it was not there before
    assert float(row["back_attempts"]) >= 1
    assert float(row["client_loss_pct"]) < 100
    assert float(row["lost_connections"]) == 3  # although each has another one
    assert float(row["server_cpu_pct"]) > 0  # of both processes


@ALL
@pytest.mark.usefixtures("needs_nats")
def test_native_clients_of_one_process_connect_and_come_back_with_tls(tmp_path: Path) -> None:
    implementation = native("nats")
    if not implementation:
        pytest.skip("the native client is not built")
    event = '[{at_s=0.5,kind="restart_server",for_s=0.4}]'
    row = row_of(
        *(tmp_path / "run", "nats-fixed", "--tls", "--rate", 50, "--duration", 10, "--set", f"events={event}"),
        *(
            "--set",
            "settings.connect_rate=max",
            "--set",
            "settings.connect_within_s=30",
            *implementation,
            "--clients",
            8,
        ),
    )
    assert (int(row["connected_clients"]), int(row["never_connected"])) == (8, 0)
    assert (int(row["disconnections"]), int(row["never_back"])) == (8, 0)


RETURN = '[{at_s=0.5,kind="restart_server",for_s=0.3}]'


@ALL
@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize(
    ("implementation", "consumer", "ack_policy"),
    [(native("nats"), "push", "none"), (NATS_PY, "pull", "explicit")],
    ids=["native-push", "nats-py-pull"],
)
def test_a_stream_in_a_file_continues_after_the_server_has_restarted(
    tmp_path: Path, implementation: tuple[str, ...], consumer: str, ack_policy: str
) -> None:
    row = row_of(
        *(tmp_path / "run", "nats-fixed", "--rate", 50, "--duration", 5, "--set", f"events={RETURN}"),
        *("--mode", "jetstream", "--storage", "file", "--consumer", consumer, "--ack-policy", ack_policy),
        *("--set", "warmup_s=0", "--set", "settings.publish_window=10", *implementation, "--clients", 3),
    )
    assert (int(row["disconnections"]), int(row["never_back"])) == (3, 0)
    assert float(row["back_p50_ms"]) >= 300
    assert (row["failed_clients"], float(row["total_rx"]) > 0) == ("0", True)


@ALL
@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize("implementation", [native("nats"), NATS_PY], ids=["native", "nats-py"])
def test_only_the_clients_of_the_last_of_several_servers_are_disconnected(
    tmp_path: Path, implementation: tuple[str, ...]
) -> None:
    row = row_of(
        *(tmp_path / "run", "nats-fixed", "--rate", 20, "--duration", 5, "--set", f"events={RETURN}"),
        *("--set", "server.count=2", "--set", "warmup_s=0", *implementation, "--clients", 24),
    )
    assert int(row["never_back"]) == 0
    assert 1 <= int(row["disconnections"]) < 24  # each chooses a server at random
    assert float(row["back_max_ms"]) > 0


@ALL
@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_stream_on_several_servers_continues_after_one_has_restarted(tmp_path: Path, storage: str) -> None:
    row = row_of(
        *(tmp_path / "run", "nats-fixed", "--rate", 20, "--duration", 10, "--set", f"events={RETURN}"),
        *("--mode", "jetstream", "--storage", storage, "--set", "settings.publish_window=10"),
        # Each chooses a server at random: of six, none chose the last one in every eleventh run.
        *("--set", "server.count=3", "--set", "nats.replicas=3", "--set", "warmup_s=0", "--clients", 24),
    )
    assert int(row["never_back"]) == 0
    # A message that the killed server had not yet passed on comes again after the 30 s of JetStream's AckWait.
    assert int(row["lost"]) <= int(row["disconnections"]) < 24


@pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="takes a minute: make soak")
@ALL
def test_the_last_of_several_brokers_returns_with_its_data(tmp_path: Path) -> None:
    row = row_of(
        *(tmp_path / "run", "kafka-fixed", "--rate", 50, "--duration", 40, "--set", f"events={RETURN}"),
        *("--kafka-prop", "reconnect.backoff.max.ms=500", "--set", "warmup_s=0", "--set", "server.count=3"),
        *(*(native("kafka") or ("--client", "confluent-kafka")), "--clients", 3),
    )
    assert (row["failed_clients"], float(row["client_loss_pct"])) == ("0", 0.0)
    assert float(row["latency_max_us"]) >= 300_000  # the only partition is on the last broker
    assert "disconnections" not in row


@ALL
def test_what_a_broker_has_acknowledged_survives_its_restart(tmp_path: Path) -> None:
    implementation = native("kafka")
    row = row_of(
        *(tmp_path / "run", "kafka-fixed", "--rate", 50, "--duration", 30, "--set", f"events={RETURN}"),
        *("--kafka-prop", "reconnect.backoff.max.ms=500", "--set", "warmup_s=0"),
        *(*(implementation or ("--client", "confluent-kafka")), "--clients", 3),
    )
    assert (row["failed_clients"], float(row["client_loss_pct"])) == ("0", 0.0)
    assert float(row["total_rx"]) > 0
    # The library reveals disconnections to native clients only.
    if implementation:
        assert (int(row["disconnections"]), int(row["never_back"])) == (3, 0)
        assert float(row["back_p50_ms"]) >= 300
    else:
        assert "disconnections" not in row


class Dropping(TcpForwarder):
    """Ends the first connection to which the server sends a message of a window."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self._left = 1
        self._lock = threading.Lock()

    def down(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(65_536):
            # A message ends with the header, whose epoch is 0 in a probe, and the end of a line; those of the first
            # contact are empty.
            if data.startswith(b"MSG ") and b" 0\r\n\r\n" not in data and data[-26:-22] != bytes(4):
                with self._lock:
                    self._left -= 1
                    drops = self._left >= 0
                if drops:
                    hang_up(client, server)
                    return
            client.sendall(data)


@ALL
@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize("implementation", [native("nats"), NATS_PY], ids=["native", "nats-py"])
def test_a_disconnection_is_in_a_row_that_does_not_measure_connecting(
    tmp_path: Path, implementation: tuple[str, ...]
) -> None:
    words = ("nats-fixed", "--message-size", 24, "--rate", 20, "--duration", 15, "--set", "warmup_s=0", *implementation)
    with nats(tmp_path / "server") as address, Dropping(address) as forwarder:
        row = row_of(tmp_path / "run", *words, "--clients", 2, "--servers", forwarder.address)
    assert (row["disconnections"], row["never_back"]) == ("1", "0")
    assert float(row["back_attempts"]) >= 1
    assert 0 < float(row["back_p50_ms"]) == float(row["back_max_ms"]) < 15_000
    assert "connect_rate" not in row


def assert_first_message_shows_who_is_ready(run: Path, *words: object) -> None:
    row = row_of(run, *words, *SMALL, "--connect-within", 30, "--clients", 3)
    assert (row["connect_rate"], row["connected_clients"], row["never_connected"]) == ("max", "3", "0")
    assert int(row["connect_attempts"]) == 3 + int(row["connect_refused"]) + int(row["connect_timed_out"])
    for name in ("p50", "p99", "max"):
        assert float(row[f"ready_{name}_ms"]) == float(row[f"first_message_{name}_ms"]) > 0
        assert (row[f"connected_{name}_ms"], row[f"connect_tcp_{name}_ms"]) == ("", "")  # the library reveals neither
    assert float(row["connect_rate_achieved"]) > 0
    assert float(row["connect_lag_p99_ms"]) >= 0


@ALL
def test_subscribers_of_zmq_are_ready_with_their_first_message(tmp_path: Path) -> None:
    assert_first_message_shows_who_is_ready(tmp_path / "run", "zmq-connections", *native("zmq"))


@ALL
@pytest.mark.usefixtures("needs_kafka")
def test_consumers_of_kafka_are_ready_with_their_first_message(tmp_path: Path) -> None:
    assert_first_message_shows_who_is_ready(tmp_path / "run", "kafka-connections", *native("kafka"))
