"""MQTT: Hydra's clients beside bare loops of libmosquitto and paho-mqtt. As a program: the bare loop of paho-mqtt."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import which
from typing import Any, Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from bench import programs
from bench.clients import forks
from bench.clients.channel import PUBLISHER, SharedServer, Sides, Workload, words
from hydra.model import Rate
from hydra.mqtttest.program import MosquittoJoin, MosquittoProgram
from hydra.mqtttest.settings import MqttSettings, MqttSpec
from hydra.mqtttest.system import SingleServer
from hydra.system.local_server import LocalServer

SIZE: Final = 128
_WAIT_S: Final = 1.0


def workload(client: str, subscribers: int, qos: int, rate: Rate = "max", seconds: float = 3.0) -> Workload:
    """What both sides carry.

    Args:
        client: ``native`` or ``paho-mqtt``.
        subscribers: the number of subscribers.
        qos: the QoS of all messages.
        rate: messages/s, or ``"max"``.
        seconds: length of the window.
    """
    own = {"settings.qos": qos}
    return Workload("mqtt-fixed", client, subscribers, SIZE, rate, seconds, own)


def _command(client: str, values: Mapping[str, Any]) -> Sequence[str]:
    # The topic is that to which Hydra's publisher sends.
    values = {**asdict(MqttSettings()), **values, "topic": f"{values['topic']}/{PUBLISHER}"}
    if client == "native":
        return words(programs.bare("mqtt/bare-mqtt"), values)
    return [sys.executable, "-m", __name__, forks.encoded(values)]


def _server(folder: Path) -> LocalServer:
    queued, in_flight = MqttSpec().max_queued_messages, MqttSettings().max_inflight
    limits = MosquittoJoin(max_queued_messages=queued, max_inflight_messages=in_flight)
    return LocalServer(MosquittoProgram(), SingleServer(limits), folder)


def _lacks() -> str:
    return programs.lacks() or ("" if which("mosquitto") else "mosquitto")


SIDES: Final = Sides(_command, SharedServer(_server, "mqtt.broker"), _lacks)


# --- the bare loop of paho-mqtt --------------------------------------------------------------------------------------


def _without_delay(_client: object, _data: object, opened: Any) -> None:
    """As Hydra's clients: otherwise the kernel gathers answers, which costs less CPU and delays messages."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _client(settings: dict[str, Any]) -> mqtt.Client:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv311)
    client.on_socket_open = _without_delay
    client.max_inflight_messages_set(settings["max_inflight"])
    return client


def receive(settings: dict[str, Any], tally: forks.Tally, subscribed: Callable[[], None]) -> None:
    """Counts in the callback of the library's own loop."""

    def count(_client: object, _data: object, _message: mqtt.MQTTMessage) -> None:
        tally.messages += 1

    def note(_client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        tally.late(message.payload)

    client = _client(settings)
    client.on_connect = lambda client, *_: client.subscribe(settings["topic"], settings["qos"])
    client.on_subscribe = lambda *_: subscribed()
    client.on_message = note if settings["rate"] else count
    client.connect(settings["host"], settings["port"], settings["keepalive"])
    client.loop_forever()


def publish(settings: dict[str, Any], begin: Callable[[], forks.Interval]) -> int:
    """Sends while the socket accepts messages, and while fewer than ``max_inflight`` have no answer."""
    client = _client(settings)
    topic, qos, most = settings["topic"], settings["qos"], settings["max_inflight"]
    unanswered = sent = 0

    def answered(*_: object) -> None:
        nonlocal unanswered
        unanswered -= 1

    client.on_publish = answered
    client.connect(settings["host"], settings["port"], settings["keepalive"])
    while not client.is_connected():
        client.loop(_WAIT_S)

    def send(message: bytes) -> None:
        nonlocal unanswered, sent
        while client.want_write() or (qos and unanswered >= most):
            client.loop(_WAIT_S)
        unanswered += 1
        sent += 1
        client.publish(topic, message, qos)

    window = begin()
    if settings["rate"]:
        for message in window.due(settings["rate"], settings["size"]):
            send(message)
        return sent
    message = bytes(settings["size"])
    for _ in window.rounds():
        for _ in range(forks.AT_ONCE):
            send(message)
    return sent


if __name__ == "__main__":
    forks.run(receive, publish)
