"""A connection that was lost in a step is in the report of the step, whatever follows it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from hydra.model import Settings, shared_of
from hydra.mqtttest import paho_mqtt
from hydra.wire.messages import Configure
from tests.mqtttest.ends import system_of


def command(epoch: int) -> Configure:
    system = system_of("127.0.0.1:1883", "hydra/run")
    return Configure(
        epoch=epoch, number=1, settings=shared_of(Settings(burst=1)), publishers=[], probe=False, system=system
    )


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections that are made, the last one last."""
    made: list[Any] = []

    def connect(*_: object, **__: object) -> Any:
        made.append(Mock(lost="", was_silent=False, read=Mock(return_value=False)))
        return made[-1]

    monkeypatch.setattr(paho_mqtt, "MqttConnection", connect)
    return made


def test_a_client_that_was_silent_names_its_silence_in_its_step_only(connections: list[Any]) -> None:
    subscriber = paho_mqtt.PahoSubscriber(1, Mock())
    subscriber.configure(command(1))
    connections[-1].lost, connections[-1].was_silent = "the server closed it", True
    subscriber.reconnect()
    reported = {"lost_connections": 1, "lost_by_silence": 1, "lost_why": "the server closed it"}
    assert subscriber.report_system() == reported
    subscriber.configure(command(2))
    assert subscriber.report_system() == {"lost_connections": 0}


@pytest.mark.parametrize("returns", ["attempt", "reconnect", "leave", "none"])
def test_a_loss_is_reported_in_its_step_only(connections: list[Any], returns: str) -> None:
    subscriber = paho_mqtt.PahoSubscriber(1, Mock())
    subscriber.configure(command(1))
    connections[-1].lost = "the server closed it"
    if returns == "attempt":
        subscriber.connect(command(1), 5.0)
    elif returns == "reconnect":
        subscriber.reconnect()
    elif returns == "leave":
        subscriber.close()
    assert subscriber.report_system() == {"lost_connections": 1, "lost_why": "the server closed it"}
    subscriber.configure(command(2))
    assert subscriber.report_system() == {"lost_connections": 0}


def test_a_publisher_that_connects_again_reports_the_loss(connections: list[Any]) -> None:
    publisher = paho_mqtt.PahoPublisher(1, Mock())
    publisher.configure(command(1))
    publisher._returns = True
    connections[-1].lost = "the server closed it"
    publisher.poll()
    assert (len(connections), connections[-1].lost) == (2, "")
    assert publisher.report_system() == {"lost_connections": 1}
    publisher.configure(command(2))
    assert publisher.report_system() == {"lost_connections": 0}
