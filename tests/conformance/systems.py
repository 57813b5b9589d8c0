"""The systems that the suite for any system tests: each is a line, with its specification, its adapter, its settings.

What a system cannot do is decided by its specification: :func:`each` leaves out subjects by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from hydra.mqtttest.spec import SPEC as MQTT
from hydra.natstest.spec import SPEC as NATS
from tests.conformance.mqtt_adapter import MqttEnds
from tests.conformance.nats_adapter import NatsEnds
from tests.conformance.system_stage import Subject, subjects
from tests.conformance.toy_adapter import ToyEnds
from tests.systems.toy_system import SPEC as TOY

SUBJECTS: Final = (
    *subjects(NATS, NatsEnds, {"mode": "core"}, {"mode": "jetstream"}),
    *subjects(MQTT, MqttEnds, {"qos": 1}, {"qos": 1, "shared": True}),
    *subjects(TOY, ToyEnds, {"chunk": 1000}, {"shared": 3}),
)
RARE: Final = (
    *subjects(NATS, NatsEnds, {"mode": "jetstream", "consumer": "pull", "storage": "file"}),
    *subjects(NATS, NatsEnds, {"mode": "jetstream", "ack_policy": "none", "publish_acks": False}),
    *subjects(MQTT, MqttEnds, {"qos": 0}, {"qos": 2, "protocol": "5"}),
)
"""Further settings, which ``make test-all`` tests."""


def each(condition: Callable[[Subject], bool]) -> pytest.MarkDecorator:
    """A test of each subject for which this holds."""
    rare = pytest.mark.tier("all")
    cases = [pytest.param(each, id=str(each)) for each in SUBJECTS if condition(each)]
    cases += [pytest.param(each, id=str(each), marks=rare) for each in RARE if condition(each)]
    return pytest.mark.parametrize("subject", cases, scope="session")
