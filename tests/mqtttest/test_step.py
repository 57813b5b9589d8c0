"""The MQTT settings of a client, their scenario, and where the password stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hydra.client.transport import read_system
from hydra.errors import ConfigError
from hydra.mqtttest.access import password_of
from hydra.mqtttest.settings import MqttSettings, MqttSpec, MqttStep, client_id, filters, signals_of, topic_of
from tests.mqtttest.ends import system_of

GOOD = system_of("127.0.0.1:1883", "hydra/run-1", qos=1, protocol="5")


def step_of(system: dict[str, Any]) -> MqttStep:
    return read_system(system, MqttStep)


def test_what_it_is_told_comes_back() -> None:
    assert msgspec.to_builtins(step_of(GOOD)) == {**GOOD, "username": "", "password": "", "tls": None, "websocket": ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("qos", 3), ("qos", "1"), ("protocol", "3.1"), ("port", 0), ("retained", True)),
        *(("max_inflight", 0), ("max_inflight", 65_536), ("keepalive", -1)),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        step_of({**GOOD, name: value})


@pytest.mark.parametrize("missing", ["host", "topic"])
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        step_of({name: value for name, value in GOOD.items() if name != missing})
    with pytest.raises(ValueError, match="host"):
        read_system(None, MqttStep)


@pytest.mark.parametrize(
    ("shared", "group", "required"),
    [
        (False, "", ("hydra/run-1/7", "hydra/run-1/8")),
        (True, "g", (*(f"$share/g/hydra/run-1/{n}" for n in (7, 8)), *(f"hydra/run-1/{n}/signals" for n in (7, 8)))),
    ],
)
def test_a_subscriber_subscribes_to_every_publisher(shared: bool, group: str, required: tuple[str, ...]) -> None:
    assert filters(step_of({**GOOD, "shared": shared}), group, [7, 8]) == required


def test_sharing_needs_a_group() -> None:
    with pytest.raises(ValueError, match="group"):
        filters(step_of({**GOOD, "shared": True}), "", [7])


def test_names() -> None:
    step = step_of(GOOD)
    assert topic_of(step, 7) == signals_of(step, 7) == "hydra/run-1/7"
    assert client_id(step, 7) == "hydra-run-1-7"
    assert client_id(step, 7) != client_id(step, 8)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_inflight", 0), ("max_inflight", 65_536), ("keepalive", 4), ("keepalive", 70_000)],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        MqttSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [{"keepalive": 0}, {"keepalive": 5}, {"qos": 2}, {"max_inflight": 65_535}])
def test_what_can_be(values: dict[str, Any]) -> None:
    settings = MqttSettings(**values)
    assert all(getattr(settings, name) == value for name, value in values.items())


@pytest.mark.parametrize("text", ["secret", "secret\n", "secret\r\nsecond line\n"])
def test_a_password_is_the_first_line_of_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "password").write_bytes(text.encode())
    assert password_of(MqttSpec(password_file=str(tmp_path / "password"))) == "secret"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        password_of(MqttSpec(password_file=str(tmp_path / "nowhere")))


def test_without_a_file_it_stands_in_the_scenario() -> None:
    assert password_of(MqttSpec(password="secret")) == "secret"
