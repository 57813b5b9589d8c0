"""What the controller asks of a server (a broker, in MQTT's words): to come up, whether it answers, to forget."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hydra.mqtttest.connection import Connection
from hydra.mqtttest.control_messages import MqttStep
from hydra.mqtttest.program import ServerLimits
from hydra.mqtttest.settings import split

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt

_FORGET_WITHIN_S: Final = 5.0
_ASK_FOR_S: Final = 5.0
_KEEPALIVE_S: Final = 10


class SingleServer:
    """One mosquitto by itself, embedded or on an agent: it forms no clusters; see :class:`hydra.system.ServerCluster`.

    Arguments:
        limits: what it keeps for one client.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """The limits, to each."""
        return [msgspec.to_builtins(self._limits) for _ in endpoints]

    def address(self, endpoints: Sequence[str]) -> str:
        """The first one's."""
        return endpoints[0]

    def up(self, address: str) -> bool:
        """Whether it takes a client."""
        with contextlib.suppress(OSError):
            reach(address)
            return True
        return False

    def warm_up(self, address: str) -> None:
        """It is as quick as it will be."""


def reach(address: str, username: str = "", password: str = "") -> None:
    """Connects once.

    Raises:
        OSError: the server does not answer, or refuses us.
    """
    with contextlib.closing(_connection(address, username, password)):
        pass


class ConnectionMonitor:
    """A connection that tells by being lost that the server is; arguments and errors as for :func:`reach`."""

    def __init__(self, address: str, username: str = "", password: str = "") -> None:
        self._address = address
        self._connection = _connection(address, username, password)

    def failure(self) -> str:
        """That it was lost, or ""; returns at once."""
        while self._connection.read():
            pass
        lost = self._connection.lost
        return f"the MQTT server at {self._address} closed the connection: {lost}" if lost else ""

    def close(self) -> None:
        """Ends it."""
        self._connection.close()


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

    with contextlib.closing(_connection(address, username, password, note)) as connection:
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
    address: str, username: str, password: str, on_message: Callable[[mqtt.MQTTMessage], None] | None = None
) -> Connection:
    host, port = split(address)
    step = MqttStep(host=host, port=port, topic="hydra", keepalive=_KEEPALIVE_S, username=username, password=password)
    return Connection(f"hydra-{secrets.token_hex(8)}", step, on_message=on_message, timeout_s=_ASK_FOR_S)
