"""Whatever a client has to read, it pings; one that was silent knows that it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from hydra.client.transport import read_system
from hydra.mqtttest import connection
from hydra.mqtttest.connection import MqttConnection
from hydra.mqtttest.paho_mqtt import PahoSubscriber
from hydra.mqtttest.settings import MqttStep, client_id, topic_of
from hydra.system.local_server import LocalServer
from hydra.wire.messages import Ready
from tests.conformance.bench import Bench, step_settings
from tests.mqtttest.ends import Place, Speaker
from tests.servers.running import kill, progressed
from tests.suite.waiting import wait_until

CLIENT, ONE = 3, 100
KEEPALIVE_S = 5
SECONDS = 31


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many seconds the clock of the library and of its connection is ahead."""
    ahead = [0.0]

    def monotonic() -> float:
        return time.monotonic() + ahead[0]

    monkeypatch.setattr(mqtt, "time_func", monotonic)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=monotonic, monotonic_ns=time.monotonic_ns))
    return ahead


@pytest.fixture
def subscribed(passed: list[float], server: str) -> Iterator[tuple[MqttConnection, Mock, Speaker]]:
    """A subscriber's connection, its pings, and a speaker that it hears."""
    place = Place(server, keepalive=KEEPALIVE_S)
    step = read_system(place.step_system(), MqttStep)
    with closing(MqttConnection(client_id(step, CLIENT), step, on_message=Mock())) as one:
        one.subscribe([topic_of(step, ONE)], 0)
        pings = one._client._send_pingreq = Mock(wraps=one._client._send_pingreq)  # type: ignore[method-assign]
        yield one, pings, Speaker(place, ONE)


def receive_one(one: MqttConnection) -> None:
    subscriber = PahoSubscriber(CLIENT, Mock())
    subscriber._connection = one
    one._client.on_message = lambda _client, _data, message: subscriber._on_message(message)
    assert len(subscriber.receive(0.0, 1)) == 1


@pytest.mark.parametrize("serve", [receive_one, MqttConnection.keep_alive], ids=["always readable", "slow reader"])
def test_a_client_pings_while_data_wait(
    passed: list[float], subscribed: Any, serve: Callable[[MqttConnection], None]
) -> None:
    one, pings, speaker = subscribed
    speaker.send(1, range(3 * SECONDS))
    wait_until(one._waits, "data")
    for _ in range(SECONDS):
        passed[0] += 1
        assert one._waits()
        serve(one)
    assert one.lost == ""
    assert SECONDS / KEEPALIVE_S - 2 <= pings.call_count <= SECONDS / KEEPALIVE_S


def test_a_turn_with_many_packets_keeps_the_connection_alive_without_a_look_at_the_clock_for_each() -> None:
    one = Mock(read=Mock(side_effect=[True] * 200 + [False]))
    MqttConnection.read_all(one)
    assert (one.read.call_count, one.keep_alive.call_count) == (201, 4)


def test_a_publisher_whose_messages_the_server_still_reads_keeps_its_connection(
    passed: list[float], subscribed: Any
) -> None:
    """The answer to its ping waits behind them."""
    one, pings, _ = subscribed
    pings.side_effect = lambda: setattr(one._client, "_ping_t", time.monotonic() + passed[0])
    pings._mock_wraps = None
    for _ in range(SECONDS):
        passed[0] += 1
        assert one.publish("somewhere/else", b"", 0) is not None
        one.keep_alive()
    assert one.lost == ""


def test_a_server_that_does_not_answer_is_still_noticed(passed: list[float], subscribed: Any) -> None:
    one, pings, _ = subscribed
    pings.side_effect = lambda: setattr(one._client, "_ping_t", time.monotonic() + passed[0])
    pings._mock_wraps = None
    for _ in range(2 * KEEPALIVE_S + 2):
        passed[0] += 1
        one.keep_alive()
    assert one.lost == "the server did not answer a ping"
    assert not one.was_silent


@pytest.mark.parametrize("silent_s", [0, 2 * KEEPALIVE_S])
def test_a_loss_after_a_silence_is_named_as_that(passed: list[float], own_server: LocalServer, silent_s: int) -> None:
    place = Place(own_server.address, keepalive=KEEPALIVE_S)
    step = read_system(place.step_system(), MqttStep)
    with closing(MqttConnection(client_id(step, CLIENT), step)) as one:
        one.keep_alive()
        kill(own_server)
        one.wait(30.0)
        passed[0] += silent_s
        while not one.lost:
            one.read()
        assert (one.was_silent, "silent" in one.lost) == (silent_s > 0, silent_s > 0)


@pytest.mark.parametrize(("code", "is_silent"), [(0x8D, True), (0x8B, False)])
def test_the_reason_of_a_server_names_the_silence(subscribed: Any, code: int, is_silent: bool) -> None:
    one, _, _ = subscribed
    one._on_disconnect(
        None, None, mqtt.DisconnectFlags(True), ReasonCode(PacketTypes.DISCONNECT, identifier=code), None
    )
    assert one.lost
    assert one.was_silent == is_silent


@pytest.mark.tier("all")
def test_a_slow_reader_keeps_its_connection(bench: Bench, mqtt_client: str, server: str) -> None:
    """For longer than a server waits, while the answers to its pings wait behind thousands of messages."""
    bench.launch(mqtt_client, "mqtt-sub", first_id=CLIENT)
    place = Place(server, keepalive=KEEPALIVE_S)
    one, settings = Speaker(place, ONE), step_settings(receive_rate=10.0)
    bench.configure_subscribers([CLIENT], 1, settings, publishers={ONE: ""}, progress_s=0.1, system=place.step_system())
    one.probe(1)
    bench.peer.heard(Ready, [CLIENT], epoch=1)
    window = bench.start([CLIENT], 1, 3.5 * KEEPALIVE_S)
    one.send(1, range(900))
    bench.await_end(window)
    progressed(bench, CLIENT, 1, 34 * KEEPALIVE_S)
    report = bench.subscriber_report(CLIENT, 1, {ONE: 900})
    assert (report.ledgers[0].received, report.system) == (900, {"lost_connections": 0})


@pytest.mark.tier("all")
def test_a_client_that_did_not_run_is_named(bench: Bench, mqtt_client: str, server: str) -> None:
    bench.launch(mqtt_client, "mqtt-sub", first_id=CLIENT)
    place = Place(server, keepalive=KEEPALIVE_S)
    one = Speaker(place, ONE)
    bench.configure_subscribers([CLIENT], 1, publishers={ONE: ""}, progress_s=0.1, system=place.step_system())
    one.probe(1)
    bench.peer.heard(Ready, [CLIENT], epoch=1)
    window = bench.start([CLIENT], 1, 3.0 * KEEPALIVE_S)
    pid = bench.peer.process(CLIENT).pid
    os.kill(pid, signal.SIGSTOP)
    bench.await_end(window)
    os.kill(pid, signal.SIGCONT)
    report = bench.subscriber_report(CLIENT, 1, {ONE: 1}, quiet_s=1.0)
    reported = report.system or {}
    assert (reported["lost_connections"], reported["lost_by_silence"]) == (1, 1)
    assert reported["lost_why"].startswith("this client was silent for longer than its keepalive: ")
