"""What a client reads out of the ``system`` object of a command: settings, checked like those of a scenario."""

from __future__ import annotations

import re

import pytest

from hydra.client.transport import read_system
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.settings import KafkaSettings
from hydra.zmqtest.settings import ZmqSettings

TOPIC: dict[str, object] = {"bootstrap": "host:1", "topic": "t", "offsets": {"0": 3}}


def test_null_is_the_defaults() -> None:
    assert read_system(None, ZmqSettings) == ZmqSettings()


def test_the_settings_of_a_scenario_are_among_it() -> None:
    read = read_system({**TOPIC, "msg_batch": 7, "linger_ms": 3}, KafkaConfigure)
    assert isinstance(read, KafkaSettings)
    assert (read.msg_batch, read.linger_ms, read.offsets, read.properties) == (7, 3.0, {0: 3}, {})


@pytest.mark.parametrize(
    ("kind", "system", "expected"),
    [
        (ZmqSettings, {"sndhmw": 5}, "unknown field 'sndhmw'"),
        (ZmqSettings, {"sndhwm": -1}, "sndhwm must be 0 to 2147483647, not -1"),
        (ZmqSettings, {"rcvhwm": 2**31}, "rcvhwm must be 0 to 2147483647, not 2147483648"),
        (ZmqSettings, {"nodrop": "yes"}, "at `$.nodrop`"),
        (KafkaConfigure, {"topic": "t", "offsets": {}}, "missing required field `bootstrap`"),
        (KafkaConfigure, {**TOPIC, "bootsrap": ""}, "unknown field 'bootsrap'"),
        (KafkaConfigure, {**TOPIC, "msg_batch": 0}, "msg_batch must be 1 to 1000000, not 0"),
        (KafkaConfigure, {**TOPIC, "linger_ms": -1.0}, "linger_ms must be 0 to 900000 ms, not -1 ms"),
        (KafkaConfigure, {**TOPIC, "acks": 1}, "at `$.acks`"),
        (KafkaConfigure, {**TOPIC, "offsets": {"0": -1}}, "at `$.offsets[...]`"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(kind: type, system: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        read_system(system, kind)
