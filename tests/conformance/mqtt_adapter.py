"""MQTT's data ends: a client of paho-mqtt with a thread of its own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from hydra.wire.data_message import HEADER
from tests.conformance.data_ends import DataEnds
from tests.suite.waiting import SOON_S, wait_until


class MqttEnds(DataEnds):
    """A client that has subscribed to all topics of a step."""

    def __init__(self, step: Mapping[str, Any], topics: int = 1) -> None:
        super().__init__(step, topics)
        self._heard: list[mqtt.MQTTMessage] = []
        self._fence = f"{step['topic']}/fence-{secrets.token_hex(4)}"
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(0)  # no limit
        self._client.on_message = lambda _client, _data, message: self._heard.append(message)
        self._client.connect(step["host"], step["port"])
        self._client.subscribe(f"{step['topic']}/#", 2)
        self._client.loop_start()
        self.read()

    def write(
        self,
        messages: Sequence[bytes],
        publisher: int,
        topics: Sequence[int] | None = None,
        *,
        signals: bool = False,
    ) -> None:
        suffix = "/signals" if signals and self.step["shared"] else ""
        for message, topic in zip(messages, topics or repeat(publisher), strict=False):
            sent = self._client.publish(f"{self.step['topic']}/{topic}{suffix}", message, 1)
        if messages:
            sent.wait_for_publish(SOON_S)
            self.read()

    def read(self) -> Sequence[tuple[int, bytes]]:
        # The server delivers in order: with this message everything before is here.
        fences = sum(message.topic == self._fence for message in self._heard)
        self._client.publish(self._fence, b"", 1)
        wait_until(lambda: sum(message.topic == self._fence for message in self._heard) > fences, "the fence", SOON_S)
        return [
            (int(message.topic.split("/")[-1]) if self.topics > 1 else 0, bytes(message.payload))
            for message in self._heard
            if len(message.payload) >= HEADER.size
        ]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
