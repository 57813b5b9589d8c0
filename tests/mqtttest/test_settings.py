"""The settings of MQTT, and where its password stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydra.errors import ConfigError
from hydra.mqtttest.settings import MqttSettings, MqttSpec, password_of


@pytest.mark.parametrize(
    ("name", "value"),
    [("qos", 3), ("qos", -1), ("max_inflight", 0), ("max_inflight", 65_536), ("keepalive", 4), ("keepalive", 70_000)],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: int) -> None:
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
