"""The suite's own data ends for MQTT: a publisher that follows a script and a subscriber that keeps everything."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from _pytest.mark import ParameterSet

from hydra.client.transport import read_system
from hydra.mqtttest.access import FORM
from hydra.mqtttest.connection import MqttConnection
from hydra.mqtttest.settings import MqttStep, topic_of
from hydra.wire.data_message import HEADER, SEQUENCE_LIMIT, pack
from hydra.wire.messages import PROBE_EPOCH
from tests.suite.waiting import SOON_S

BAD: dict[str, dict[str, Any]] = {"MQTT server": {"port": 1}, "colour": {"colour": "red"}}
"""The contents of an error, and what cannot be read of a server."""


@dataclass(frozen=True)
class Arrival:
    """One message as it came in."""

    topic: str
    retained: bool
    epoch: int
    publisher: int
    sequence: int
    time_ns: int
    size: int


def system_of(address: str, topic: str, **changes: Any) -> dict[str, Any]:
    """The ``system`` object of a ``configure``."""
    where = FORM.read(address)
    present = {"host": where.host, "port": where.port, "topic": topic}
    how = {"qos": 0, "retain": False, "shared": False, "max_inflight": 20, "keepalive": 60}
    return {**present, **how, "clean_session": True, "protocol": "3.1.1", **changes}


class Place:
    """Topics of a test's own on a server."""

    def __init__(self, address: str, **changes: Any) -> None:
        self.address = address
        self.topic = f"conformance/{secrets.token_hex(4)}"
        self.system = system_of(address, self.topic, **changes)

    def step_system(self, **changes: Any) -> dict[str, Any]:
        """The ``system`` object of a ``configure``, with some of it changed."""
        return {**self.system, **changes}


class Listener:
    """A subscriber to all topics of a place."""

    def __init__(self, place: Place) -> None:
        self._arrivals: list[Arrival] = []
        step = read_system(place.step_system(qos=0), MqttStep)
        self._connection = MqttConnection(f"listener-{secrets.token_hex(6)}", step, on_message=self._note)
        self._connection.subscribe([f"{place.topic}/#"], 2)

    def _note(self, message: mqtt.MQTTMessage) -> None:
        epoch, publisher, sequence, time_ns = HEADER.unpack_from(message.payload)
        size = len(message.payload)
        self._arrivals.append(Arrival(message.topic, message.retain, epoch, publisher, sequence, time_ns, size))

    @property
    def arrivals(self) -> list[Arrival]:
        """All that has come by now."""
        self._connection.read_all()
        self._connection.write()
        return self._arrivals

    def data(self, epoch: int) -> list[Arrival]:
        """The messages of an epoch, in the order of arrival."""
        return [a for a in self.arrivals if a.epoch == epoch]

    def probes(self, epoch: int) -> list[Arrival]:
        """The probes that name this epoch."""
        return [a for a in self.data(PROBE_EPOCH) if a.sequence == epoch]

    def end_markers(self, epoch: int) -> list[Arrival]:
        """The end markers of this epoch."""
        return [a for a in self.data(PROBE_EPOCH) if a.sequence == SEQUENCE_LIMIT | epoch]

    def close(self) -> None:
        """Disconnects."""
        self._connection.close()


class Speaker:
    """A publisher that sends exactly what a test gives it, and returns when the server has it."""

    def __init__(self, place: Place, publisher: int) -> None:
        self.publisher = publisher
        self._step = read_system(place.step_system(qos=1), MqttStep)
        self._answered = 0
        self._connection = MqttConnection(f"speaker-{secrets.token_hex(6)}", self._step, on_answer=self._note)

    def _note(self, _mid: int, refusal: object) -> None:
        assert refusal is None
        self._answered += 1

    def _publish(self, messages: Iterable[bytes], qos: int, *, retain: bool = False, others: str = "") -> None:
        self._answered, required = 0, 0
        for message in messages:
            self._connection.publish(topic_of(self._step, self.publisher) + others, message, qos, retain=retain)
            required += qos > 0
        # One of QoS 1 follows, so that those of QoS 0 are there as well: the server obeys in order.
        self._connection.publish(f"{self._step.topic}-followed", b"", 1)
        self._connection.await_(lambda: self._answered > required, SOON_S, "to messages")

    def send(self, epoch: int, sequences: Iterable[int], *, qos: int = 0, retain: bool = False, size: int = 24) -> None:
        """Sends these sequences in this order."""
        messages = (pack(epoch, self.publisher, n, time.time_ns(), size) for n in sequences)
        self._publish(messages, qos, retain=retain)

    def probe(self, epoch: int, publisher: int | None = None, *, others: str = "") -> None:
        """Sends one probe of a publisher that was configured for this epoch."""
        who = self.publisher if publisher is None else publisher
        self._publish([pack(PROBE_EPOCH, who, epoch, time.time_ns())], 0, others=others)

    def mark_end(self, epoch: int, *, others: str = "") -> None:
        """Sends one end marker."""
        message = pack(PROBE_EPOCH, self.publisher, SEQUENCE_LIMIT | epoch, time.time_ns())
        self._publish([message], 0, others=others)

    def send_raw(self, message: bytes) -> None:
        """Sends bytes that need not be a message."""
        self._publish([message], 0)

    def close(self) -> None:
        """Disconnects."""
        self._connection.close()


def rarely(*values: object) -> ParameterSet:
    """The parameters of a case of the last tier."""
    return pytest.param(*values, marks=pytest.mark.tier("all"))
