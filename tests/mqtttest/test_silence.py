"""A client that has nothing to say pings, or the server would end its connection."""

from __future__ import annotations

from contextlib import closing

from hydra.wire.messages import Ready
from tests.conformance.bench import Bench, step_settings
from tests.mqtttest.ends import Place, Speaker
from tests.mqtttest.relay import Relay

SILENT, IDLE, PUBLISHER, ONE = 3, 4, 7, 100
KEEPALIVE_S = 5
"""libmosquitto takes no less."""


def test_native_clients_ping_in_a_step_and_between_steps(bench: Bench, native: str, server: str) -> None:
    with closing(Relay(server)) as relay:
        direct = Place(server, keepalive=KEEPALIVE_S)
        host, port = relay.address.split(":")
        told = direct.told(host=host, port=int(port))
        bench.launch(native, "mqtt-sub", first_id=SILENT, count=2, arguments=["--clients-per-process", "2"])
        bench.launch(native, "mqtt-pub", first_id=PUBLISHER, group="publishers")
        one = Speaker(direct, ONE)
        bench.configure_publisher(PUBLISHER, 1, step_settings(rate=100.0), probe=False, system=told)
        bench.configure_subscribers([SILENT, IDLE], 1, publishers={ONE: ""}, system=told)
        one.probe(1)
        bench.peer.heard(Ready, [SILENT, IDLE], epoch=1)
        bench.start([SILENT, IDLE], 1, 30)
        bench.subscriber_report(IDLE, 1, {ONE: 0})
        bench.peer.wait(lambda: len(+relay.pings) == 3, "a ping of all three", 1.5 * KEEPALIVE_S)

        one.send(1, range(3))
        report = bench.subscriber_report(SILENT, 1, {ONE: 3})
        assert (report.ledgers[0].received, report.system) == (3, {"lost_connections": 0})
        bench.configure_subscribers([IDLE], 2, publishers={ONE: ""}, system=told)
        bench.start([IDLE], 2, 30)
        one.send(2, range(4))
        report = bench.subscriber_report(IDLE, 2, {ONE: 4})
        assert (report.ledgers[0].received, report.system) == (4, {"lost_connections": 0})
        assert report.stale == 3  # of epoch 1: they came while it was idle, and it was still connected
