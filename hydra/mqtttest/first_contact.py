"""The first contact with the user's server: what a run needs of it is known before anything is made on it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from typing import Final

from hydra.errors import UsageError
from hydra.model import Scenario
from hydra.mqtttest.connection import MqttConnection
from hydra.mqtttest.settings import MqttAccess, Protocol

_ECHO_WITHIN_S: Final = 1.5
_MOST_TRIED_BYTES: Final = 1024 * 1024
"""A larger message is not tried, because its way may take longer than the check."""
_FRAME_BYTES: Final = 5
"""The least bytes of a PUBLISH packet besides its topic and payload."""
_PREFIX: Final = "hydra"


def examine(access: MqttAccess, scenario: Scenario, protocol: Protocol) -> None:
    """Connects with the protocol of the run and sends one message to itself, of which the server keeps nothing.

    Raises:
        UsageError: the server would reject messages or subscriptions of the run.
        AccessError: the server does not answer, or does not let the client in.
        OSError: the server rejects the client for another reason.
    """
    topic = f"{_PREFIX}/check-{secrets.token_hex(8)}/1"
    seen: list[str] = []
    qos = max(scenario.whole_values("qos"))
    with contextlib.closing(
        MqttConnection.of_controller(access, protocol, on_message=lambda message: seen.append(message.topic))
    ) as connection:
        require_limits(connection.server, connection.limits, scenario, len(topic))
        connection.subscribe([topic], qos)

        def delivers(size: int, *, retain: bool = False) -> bool:
            """Whether the server delivers a message of this many bytes; it keeps an empty one in no case."""
            before = len(seen)
            connection.publish(topic, bytes(size), qos, retain=retain)
            try:
                connection.await_(lambda: len(seen) > before, _ECHO_WITHIN_S, "to a message")
            except ConnectionError:
                raise UsageError(
                    f"{connection.server} closed the connection after a {'retained ' if retain else ''}message of "
                    f"{size} bytes with QoS {qos}: {connection.lost}",
                    "leave out --retain" if retain else "lower --message-size or --qos, or raise the server's limits",
                ) from None
            except OSError:
                return False
            return True

        size = scenario.largest_bytes if scenario.largest_bytes <= _MOST_TRIED_BYTES else 1
        is_retained = True in scenario.values_of("retain") and delivers(0, retain=True)
        if delivers(size):
            return
        if size > 1 and (is_retained or delivers(1)):
            raise UsageError(
                f"{connection.server} does not deliver a message of {size} bytes, but smaller ones",
                "lower --message-size, or raise the server's limit (message_size_limit of mosquitto)",
            )
        raise UsageError(
            f"{connection.server} does not deliver this user's messages under {_PREFIX}/ to this user",
            f"grant the user read and write on {_PREFIX}/#",
        )


def require_limits(server: str, limits: Mapping[str, int], scenario: Scenario, topic_bytes: int) -> None:
    """Raises UsageError if a row needs more than the server of MQTT 5 has announced.

    Args:
        server: the server, as the subject of a sentence.
        limits: the properties of its CONNACK by their names in paho.
        scenario: the scenario.
        topic_bytes: the length of a topic.
    """
    needed, most = scenario.largest_bytes + topic_bytes + _FRAME_BYTES, limits.get("MaximumPacketSize")
    if most is not None and needed > most:
        raise UsageError(
            f"a message of {scenario.largest_bytes} bytes needs a packet of {needed} bytes, "
            f"and {server} accepts {most} bytes",
            "lower --message-size, or raise the server's largest packet",
        )
    qos = max(scenario.whole_values("qos"))
    if qos > limits.get("MaximumQoS", 2):
        raise UsageError(f"{server} accepts at most QoS {limits['MaximumQoS']}, and not {qos}", "lower --qos")
    if True in scenario.values_of("retain") and limits.get("RetainAvailable") == 0:
        raise UsageError(f"{server} retains no messages", "leave out --retain")
    if True in scenario.values_of("shared") and limits.get("SharedSubscriptionAvailable") == 0:
        raise UsageError(f"{server} has no shared subscriptions", "leave out --shared")
