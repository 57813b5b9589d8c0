"""What the first contact with the user's server finds out: pure decisions, and a real server with limits and rights."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import UsageError
from hydra.mqtttest.first_contact import require_limits
from hydra.mqtttest.system import MqttSystem
from tests.integration.command import refusal
from tests.mqtttest.mosquitto import mosquitto

SERVER = "the MQTT server at h:1"


@pytest.mark.parametrize(
    ("more", "limits", "refused"),
    [
        ({"settings.message_size": 100}, {"MaximumPacketSize": 115}, ""),
        (
            {"settings.message_size": 101},
            {"MaximumPacketSize": 115},
            "needs a packet of 116 bytes, .* 115 bytes",
        ),
        ({"settings.qos": 2}, {"MaximumQoS": 1}, "at most QoS 1, and not 2"),
        ({"settings.qos": 2}, {}, ""),
        ({"settings.retain": True}, {"RetainAvailable": 0}, "retains no messages"),
        ({"settings.shared": True}, {"SharedSubscriptionAvailable": 0}, "has no shared subscriptions"),
    ],
)
def test_what_the_server_has_announced_is_compared_with_the_run(
    more: dict[str, Any], limits: dict[str, int], refused: str
) -> None:
    scenario = load_scenario("mqtt-fixed", {"mqtt.broker": "h:1", "settings.protocol": "5", **more})
    if not refused:
        require_limits(SERVER, limits, scenario, 10)
        return
    with pytest.raises(UsageError, match=refused):
        require_limits(SERVER, limits, scenario, 10)


def test_an_existing_topic_cannot_be_used_and_the_error_says_so() -> None:
    assert "--topic: Hydra measures with topics of its own" in refusal("mqtt-fixed", "--topic", "orders")


@pytest.fixture
def first_packets() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server that answers nothing and closes, and the first packet of each of its clients."""
    packets: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    packets.append(client.recv(1000))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", packets
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.tier("test")
@pytest.mark.parametrize(("protocol", "level"), [("3.1.1", 4), ("5", 5)])
def test_the_first_contact_speaks_the_protocol_of_the_run(
    first_packets: tuple[str, list[bytes]], protocol: str, level: int
) -> None:
    address, packets = first_packets
    system = MqttSystem(load_scenario("mqtt-fixed", {"mqtt.broker": address, "settings.protocol": protocol}))
    with pytest.raises(UsageError, match="network: what listens at this port closes connections") as refused:
        system.check()
    assert "TLS" not in str(refused.value)
    assert packets[0][2:9] == b"\x00\x04MQTT" + bytes([level])


@pytest.mark.parametrize("protocol", ["3.1.1", "5"])
def test_a_message_goes_to_the_server_and_back_before_a_run(server: str, protocol: str) -> None:
    given = {"mqtt.broker": server, "settings.protocol": protocol, "settings.qos": 2, "settings.retain": True}
    MqttSystem(load_scenario("mqtt-fixed", given)).check()


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("setting", "given", "refused"),
    [
        (
            "message_size_limit 50",
            {"settings.message_size": 100},
            "does not deliver a message of 100 bytes, but smaller ones; lower --message-size",
        ),
        ("retain_available false", {"settings.retain": True}, "after a retained message .*; leave out --retain"),
        (
            "max_qos 1",
            {"settings.qos": 2},
            "after a message of 128 bytes with QoS 2: .*; lower --message-size or --qos",
        ),
    ],
)
def test_a_limit_that_the_server_does_not_announce_is_found_by_a_message(
    setting: str, given: dict[str, Any], refused: str, tmp_path: Path
) -> None:
    with mosquitto(tmp_path, setting) as address:
        with pytest.raises(UsageError, match=refused):
            MqttSystem(load_scenario("mqtt-fixed", {"mqtt.broker": address, **given})).check()
        MqttSystem(load_scenario("mqtt-fixed", {"mqtt.broker": address, "settings.message_size": 50})).check()
