"""What a server did not accept, and a connection that it or the network ended, is in the publisher's report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.bench import Bench, step_settings
from tests.forwarder import CuttingForwarder
from tests.mqtttest.ends import Place
from tests.mqtttest.mosquitto import mosquitto

CLIENT = 7
CUT_AT = 30_000
"""Bytes."""
LARGE = step_settings(rate=100.0, message_size=300, burst=1)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[str]:
    """A mosquitto that announces to its clients that it accepts packets of at most 200 bytes."""
    with mosquitto(tmp_path, "max_packet_size 200") as address:
        yield address


def test_a_message_above_the_servers_limit_is_rejected_or_costs_the_connection(
    bench: Bench, mqtt_client: str, limited: str
) -> None:
    bench.launch(mqtt_client, "mqtt-pub", first_id=CLIENT)
    place = Place(limited, protocol="5", qos=1)
    assert bench.configure_publisher(CLIENT, 1, LARGE, probe=False, system=place.step_system()) == ""
    _, report = bench.publish(CLIENT, 1, 0.2)
    assert report.system is not None
    reported = report.system["acceptance"]
    assert reported["reason"] == "message_too_large"
    assert report.acknowledged == 0
    if bench.peer.relay().implementation == "native":
        # The library knows the limit, and the connection stays.
        assert report.sent == report.failed == reported["messages"] > 0
        assert "lost_connections" not in reported
    else:
        assert (reported["lost_connections"], reported["lost_why"]) == (1, "Packet too large")


def test_a_publisher_whose_connection_is_cut_at_max_reports_the_loss_and_the_stop(
    bench: Bench, mqtt_client: str, server: str
) -> None:
    forwarder = CuttingForwarder(server, CUT_AT)
    try:
        bench.launch(mqtt_client, "mqtt-pub", first_id=CLIENT)
        place, fast = Place(forwarder.address, qos=1), step_settings(rate="max", message_size=100, burst=50)
        assert bench.configure_publisher(CLIENT, 1, fast, probe=False, system=place.step_system()) == ""
        window, report = bench.publish(CLIENT, 1, 1.0)
    finally:
        forwarder.close()
    assert report.system is not None
    reported = report.system["acceptance"]
    assert (reported["lost_connections"], reported["reason"]) == (1, "connection_lost")
    assert reported["lost_why"]
    # What was acknowledged went through before the cut; nothing is accepted from the last acknowledgement on.
    assert 0 < report.acknowledged <= CUT_AT / 100 + 50
    assert 0 < reported["stalled_us"] <= (window.stop_ns - window.start_ns) / 1000
