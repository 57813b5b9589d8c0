"""A client that has nothing to send pings, or the server would end its connection."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import Counter

import pytest

from hydra.mqtttest.access import FORM
from hydra.wire.messages import Ready
from tests.conformance.bench import Bench, step_settings
from tests.mqtttest.ends import Place, Speaker

SILENT, IDLE, PUBLISHER, ONE = 3, 4, 7, 100
KEEPALIVE_S = 5
"""libmosquitto takes no less."""


PING = b"\xc0\x00"
_LARGEST = 1 << 16


class Relay:
    """Carries bytes both ways between a client that connects and the server at ``address``, until it is closed."""

    def __init__(self, address: str) -> None:
        where = FORM.read(address)
        self._server = (where.host, where.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.pings: Counter[int] = Counter()
        """By the number of the connection, in the order in which they came."""
        self._connections = 0
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self) -> None:
        with contextlib.ExitStack() as open_ones, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._stopped:
                        return
                    if key.fileobj is self._listener:
                        client = open_ones.enter_context(self._listener.accept()[0])
                        server = open_ones.enter_context(socket.create_connection(self._server))
                        selector.register(client, selectors.EVENT_READ, (client, server, self._connections))
                        selector.register(server, selectors.EVENT_READ, (server, client, None))
                        self._connections += 1
                        continue
                    source, target, number = key.data
                    data = source.recv(_LARGEST)
                    if number is not None:
                        self.pings[number] += data == PING  # a ping comes alone, as nothing else is sent
                    if data:
                        target.sendall(data)
                    else:
                        selector.unregister(source)
                        target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends all connections."""
        self._stop.close()
        self._thread.join()
        self._listener.close()
        self._stopped.close()


@pytest.mark.tier("all")
def test_clients_ping_in_a_step_and_between_steps(bench: Bench, mqtt_client: str, server: str) -> None:
    with contextlib.closing(Relay(server)) as relay:
        direct = Place(server, keepalive=KEEPALIVE_S)
        reported = direct.step_system(port=FORM.read(relay.address).port)
        packed = [] if "paho" in mqtt_client else ["--clients-per-process", "2"]
        bench.launch(mqtt_client, "mqtt-sub", first_id=SILENT, count=2, arguments=packed)
        bench.launch(mqtt_client, "mqtt-pub", first_id=PUBLISHER, group="publishers")
        one = Speaker(direct, ONE)
        bench.configure_publisher(PUBLISHER, 1, step_settings(rate=100.0), probe=False, system=reported)
        bench.configure_subscribers([SILENT, IDLE], 1, publishers={ONE: ""}, system=reported)
        one.probe(1)
        bench.peer.heard(Ready, [SILENT, IDLE], epoch=1)
        bench.start([SILENT, IDLE], 1, 30)
        bench.subscriber_report(IDLE, 1, {ONE: 0})
        bench.peer.wait(lambda: len(+relay.pings) == 3, "a ping of all three")

        one.send(1, range(3))
        report = bench.subscriber_report(SILENT, 1, {ONE: 3})
        assert (report.ledgers[0].received, report.system) == (3, {"lost_connections": 0})
        bench.configure_subscribers([IDLE], 2, publishers={ONE: ""}, system=reported)
        bench.start([IDLE], 2, 30)
        one.send(2, range(4))
        report = bench.subscriber_report(IDLE, 2, {ONE: 4})
        assert (report.ledgers[0].received, report.system) == (4, {"lost_connections": 0})
        assert report.stale == 3  # of epoch 1: they came while it was idle, and it was still connected
