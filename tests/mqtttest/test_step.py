"""What a client is told of MQTT."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hydra.mqtttest.step import MqttStep, client_id, filters, signals_of, step_of, topic_of

GOOD: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 1883,
    "topic": "hydra/run-1",
    "qos": 1,
    "retain": False,
    "shared": False,
    "max_inflight": 20,
    "keepalive": 60,
    "clean_session": True,
    "protocol": "5",
}


def test_what_it_is_told_comes_back() -> None:
    assert msgspec.to_builtins(step_of(GOOD)) == {**GOOD, "username": "", "password": ""}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"qos": 3}, "qos"),
        ({"qos": "1"}, "qos"),
        ({"protocol": "3.1"}, "protocol"),
        ({"max_inflight": 0}, "max_inflight"),
        ({"max_inflight": 65_536}, "max_inflight"),
        ({"keepalive": -1}, "keepalive"),
        ({"port": 0}, "port"),
        ({"retained": True}, "retained"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        step_of({**GOOD, **changes})


@pytest.mark.parametrize("missing", ["host", "topic", "qos", "shared"])
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        step_of({name: value for name, value in GOOD.items() if name != missing})


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="host"):
        step_of(None)


@pytest.mark.parametrize(
    ("shared", "group", "required"),
    [
        (False, "", ("hydra/run-1/7", "hydra/run-1/8")),
        (
            True,
            "g",
            ("$share/g/hydra/run-1/7", "$share/g/hydra/run-1/8", "hydra/run-1/7/signals", "hydra/run-1/8/signals"),
        ),
    ],
)
def test_a_subscriber_subscribes_to_every_publisher(shared: bool, group: str, required: tuple[str, ...]) -> None:
    assert filters(step_of({**GOOD, "shared": shared}), group, [7, 8]) == required


def test_sharing_needs_a_group() -> None:
    with pytest.raises(ValueError, match="group"):
        filters(step_of({**GOOD, "shared": True}), "", [7])


def test_names() -> None:
    step: MqttStep = step_of(GOOD)
    assert topic_of(step, 7) == signals_of(step, 7) == "hydra/run-1/7"
    assert client_id(step, 7) == "hydra-run-1-7"
    assert client_id(step, 7) != client_id(step, 8)
