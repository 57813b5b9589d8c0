"""What an MQTT subscriber must do: prove that it receives from all publishers, keep an exact ledger, drain, report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.model import LedgerCounts
from hydra.system.local_server import LocalServer
from hydra.wire.messages import Error, Ready
from tests.conformance.bench import Bench, Window, step_settings
from tests.mqtttest.ends import BAD, Place, Speaker, rarely
from tests.servers.running import kill, progressed

CLIENT = 3
ONE, OTHER, STRANGER = 100, 101, 666


@pytest.fixture
def subscriber(bench: Bench, mqtt_client: str) -> Bench:
    bench.launch(mqtt_client, "mqtt-sub", first_id=CLIENT)
    return bench


@pytest.fixture
def place(server: str) -> Place:
    return Place(server)


def connected(bench: Bench, epoch: int, place: Place, *of: Speaker, shared: dict[str, Any] | None = None) -> None:
    """Configures the subscriber for these speakers and proves that it hears them."""
    bench.configure_subscribers(
        [CLIENT],
        epoch,
        step_settings(**(shared or {})),
        publishers={speaker.publisher: "" for speaker in of},
        progress_s=0.02,
        system=place.step_system(),
    )
    for speaker in of:
        speaker.probe(epoch)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def began(bench: Bench, epoch: int, place: Place, *of: Speaker) -> Window:
    """It is connected, and its window has begun; that is longer than the test."""
    connected(bench, epoch, place, *of)
    window = bench.start([CLIENT], epoch, 30)
    bench.peer.wait(lambda: window.now_ns() > window.start_ns, "the start of the window")
    return window


@pytest.mark.parametrize(("qos", "protocol"), [rarely(0, "3.1.1"), rarely(1, "3.1.1"), (2, "5")])
def test_a_whole_stream_in_order(subscriber: Bench, server: str, qos: int, protocol: str) -> None:
    place = Place(server, qos=qos, protocol=protocol)
    one = Speaker(place, ONE)
    began(subscriber, 1, place, one)
    for first in range(0, 300, 50):
        one.send(1, range(first, first + 50), qos=qos, size=100)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 300})
    assert report.ledgers == [LedgerCounts(publisher=ONE, received=300, in_window=300, missing=0)]
    assert (report.bytes, report.stale, report.undrained, report.drain) == (30_000, 0, 0, "complete")
    assert report.system == {"lost_connections": 0}


def test_loss_redelivery_and_strangers_are_told_exactly(subscriber: Bench, server: str) -> None:
    place = Place(server, qos=1)
    one = Speaker(place, ONE)
    began(subscriber, 6, place, one)
    one.send(6, range(10), qos=1)
    one.send(6, [5, 6], qos=1)  # as a server does that has not heard of their receipt
    one.send(6, range(20, 40), qos=1)
    one.send(5, range(3), qos=1)
    one.send_raw(b"")
    one.mark_end(6)
    report = subscriber.subscriber_report(CLIENT, 6, {ONE: 50})
    lost = [(10, 19), (40, 49)]
    assert report.ledgers == [LedgerCounts(ONE, 30, 30, 20, missing_ranges=lost, duplicates=2)]
    assert (report.stale, report.drain) == (3, "marked")


def test_a_retained_message_of_an_earlier_epoch_is_stale(subscriber: Bench, place: Place) -> None:
    one = Speaker(place, ONE)
    one.send(1, range(5), retain=True)
    began(subscriber, 2, place, one)
    one.send(2, range(3))
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 3})
    assert [(x.received, x.missing, x.extra) for x in report.ledgers] == [(3, 0, 0)]
    assert report.stale == 1


def test_the_next_epoch_keeps_the_connection(subscriber: Bench, place: Place) -> None:
    one = Speaker(place, ONE)
    one.send(9, [0], retain=True)
    stale = []
    for epoch in (1, 2):
        began(subscriber, epoch, place, one)
        one.send(epoch, range(3))
        stale.append(subscriber.subscriber_report(CLIENT, epoch, {ONE: 3}).stale)
    # The server gives what it retains to a new subscription only.
    assert stale == [1, 0]


@pytest.mark.tier("all")
def test_a_reconnect_loses_nothing_where_the_server_keeps_the_session(subscriber: Bench, server: str) -> None:
    place = Place(server, qos=1, clean_session=False)
    one = Speaker(place, ONE)
    connected(subscriber, 1, place, one, shared={"reconnect_rate": 4.0})
    window = subscriber.start([CLIENT], 1, 1.2)
    sent = 0
    while not window.expired():
        one.send(1, range(sent, sent + 10), qos=1)
        sent += 10
        subscriber.peer.poll()
    one.mark_end(1)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: sent})
    (ledger,) = report.ledgers
    assert 2 <= report.reconnects <= 4
    assert (ledger.received, ledger.missing) == (sent, 0)


def test_what_cannot_be_is_an_error_and_not_the_end(subscriber: Bench, place: Place) -> None:
    one = Speaker(place, ONE)
    window = began(subscriber, 1, place, one)
    for epoch, (named, changes) in enumerate({**BAD, "group": {"shared": True}}.items(), 2):
        subscriber.send_configure([CLIENT], epoch, publishers={ONE: ""}, system=place.step_system(**changes))
        error = subscriber.peer.heard(Error, [CLIENT], epoch=epoch)
        assert named in error.message
        assert not error.fatal
    subscriber.ignores_commands(CLIENT, (1, 2, 3, 4), window)
    connected(subscriber, 4, place, one)


@pytest.mark.tier("all")
def test_a_server_that_dies_does_not_hang_the_drain(subscriber: Bench, own_server: LocalServer, server: str) -> None:
    place = Place(own_server.address)
    one = Speaker(place, ONE)
    began(subscriber, 1, place, one)
    one.send(1, range(100))
    progressed(subscriber, CLIENT, 1, 100)
    kill(own_server)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 150}, drain_max_s=1.5)
    assert [replace(x, missing_ranges=[]) for x in report.ledgers] == [
        LedgerCounts(publisher=ONE, received=100, in_window=100, missing=50)
    ]
    assert report.system is not None
    assert report.system["lost_connections"] == 1
    assert report.system["lost_why"]
    subscriber.peer.sync([CLIENT])
    # Another server, in the place of the one that died.
    elsewhere = Place(server)
    connected(subscriber, 2, elsewhere, Speaker(elsewhere, ONE))
