"""What the controller asks of a server (a broker, in MQTT's words): whether it answers, and to forget messages."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hydra.mqtttest.address import split
from hydra.mqtttest.connection import Connection
from hydra.mqtttest.control_messages import MqttStep

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt

_FORGET_WITHIN_S: Final = 5.0
_ASK_FOR_S: Final = 5.0
_KEEPALIVE_S: Final = 10


def reach(address: str, username: str = "", password: str = "", *, protocol: str = "3.1.1") -> None:
    """Connects once.

    Raises:
        OSError: the server does not answer, or refuses us.
    """
    with contextlib.closing(_connection(address, username, password, protocol)):
        pass


def watch(address: str, username: str = "", password: str = "") -> Connection:
    """A connection that tells by being lost that the server is; errors as for :func:`reach`."""
    return _connection(address, username, password, "3.1.1")


def forget(address: str, topic: str, username: str = "", password: str = "") -> int:
    """Has the server forget what it retains under a topic; how many messages it was.

    Raises:
        OSError: it did not answer in time.
    """
    retained: list[str] = []
    marker, seen = f"{topic}/{secrets.token_hex(4)}", 0

    def note(message: mqtt.MQTTMessage) -> None:
        nonlocal seen
        seen += message.topic == marker
        if message.retain and message.payload:
            retained.append(message.topic)

    with contextlib.closing(_connection(address, username, password, "3.1.1", note)) as connection:
        connection.subscribe([f"{topic}/#"], 0)
        # What the server has for us comes before what we publish now, and it obeys in this order.
        connection.publish(marker, b"", 0)
        connection.await_(lambda: seen == 1, _FORGET_WITHIN_S, "about retained messages")
        for one in retained:
            connection.publish(one, b"", 0, retain=True)
        connection.publish(marker, b"", 0)
        connection.await_(lambda: seen == 2, _FORGET_WITHIN_S, "about messages to be forgotten")
    return len(retained)


def _connection(
    address: str,
    username: str,
    password: str,
    protocol: str,
    on_message: Callable[[mqtt.MQTTMessage], None] | None = None,
) -> Connection:
    host, port = split(address)
    step = MqttStep(
        host=host,
        port=port,
        topic="hydra",
        keepalive=_KEEPALIVE_S,
        protocol="5" if protocol == "5" else "3.1.1",
        username=username,
        password=password,
    )
    return Connection(f"hydra-{secrets.token_hex(8)}", step, on_message=on_message, timeout_s=_ASK_FOR_S)
