"""What an MQTT publisher must do: the same as any publisher, and account for what the server answered."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from importlib.metadata import version
from itertools import pairwise

import pytest

from hydra.system.local_server import LocalServer
from hydra.wire.messages import Ack, Error, Ready
from tests.conformance.bench import Bench, StepSettings, step_settings
from tests.mqtttest.ends import BAD, Listener, Place, rarely
from tests.servers.running import kill
from tests.suite.waiting import wait_until

CLIENT = 7
STEADY = step_settings(rate=500.0, message_size=100, burst=50)


@pytest.fixture
def publisher(bench: Bench, mqtt_client: str) -> Bench:
    bench.launch(mqtt_client, "mqtt-pub", first_id=CLIENT)
    return bench


@pytest.fixture
def place(server: str) -> Place:
    return Place(server)


def configured(bench: Bench, epoch: int, place: Place, settings: StepSettings = STEADY, **changes: object) -> None:
    assert bench.configure_publisher(CLIENT, epoch, settings, probe=False, system=place.step_system(**changes)) == ""


def test_probes_name_the_epoch_until_the_start_and_are_not_retained(publisher: Bench, place: Place) -> None:
    hello = publisher.peer.relay()
    if hello.implementation == "native":
        assert hello.versions["libmosquitto"].startswith("2.")
    else:
        assert hello.versions["paho-mqtt"] == version("paho-mqtt")
    listener = Listener(place)
    publisher.configure_publisher(CLIENT, 3, STEADY, system=place.step_system(retain=True))
    publisher.peer.wait(lambda: len(listener.probes(3)) >= 2, "probes repeat")
    publisher.send_configure([CLIENT], 3, STEADY, system=place.step_system(retain=True))
    publisher.peer.heard(Ready, [CLIENT], epoch=3, times=2)
    publisher.peer.heard(Ack, [CLIENT], epoch=3, command="configure", times=2)
    publisher.start([CLIENT], 3, 30)
    publisher.peer.sync([CLIENT])
    count = len(listener.probes(3))
    publisher.peer.stays(lambda: len(listener.probes(3)) == count, "a probe after the start", 0.3)
    assert {(p.publisher, p.topic) for p in listener.probes(3)} == {(CLIENT, f"{place.topic}/{CLIENT}")}
    late = Listener(place)
    assert not [a for a in late.arrivals if a.retained and a.epoch == 0]


@pytest.mark.parametrize(("qos", "protocol"), [rarely(0, "3.1.1"), (1, "5"), rarely(2, "3.1.1")])
def test_the_schedule_is_kept_and_answered(publisher: Bench, place: Place, qos: int, protocol: str) -> None:
    listener = Listener(place)
    configured(publisher, 2, place, qos=qos, protocol=protocol)
    window, report = publisher.publish(CLIENT, 2, 0.2, after_s=0.1)
    # All that was due, or less on a machine that others load: who is late at the end leaves messages out.
    count = report.sent
    assert 0 < count <= 100
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    # Type, length, the topic and its own length, a message id, the properties of MQTT 5.
    rest = 2 + len(f"{place.topic}/{CLIENT}") + (2 if qos else 0) + (protocol == "5") + 100
    packet = 1 + (1 if rest < 128 else 2) + rest
    assert report.bytes == count * 100
    assert report.system == {"lost_connections": 0, "wire_bytes": count * packet}
    publisher.peer.wait(lambda: len(listener.data(2)) >= count, "all of them")
    data = listener.data(2)
    assert [a.sequence for a in data] == list(range(count))
    assert {(a.publisher, a.size, a.retained) for a in data} == {(CLIENT, 100, False)}
    assert [a.time_ns for a in data] == [window.start_ns + n * 2_000_000 for n in range(count)]


@pytest.mark.parametrize("qos", [rarely(1), 2])
def test_the_last_answer_is_taken_when_it_arrives(publisher: Bench, place: Place, qos: int) -> None:
    """Nothing wakes the publisher between its only message and the end of the window."""
    configured(publisher, 2, place, step_settings(rate=0.5), qos=qos)
    _, report = publisher.publish(CLIENT, 2, 2.0)
    assert (report.sent, report.acknowledged) == (1, 1)
    assert report.last_ns - report.first_ns < 1_000_000_000


def test_rate_max_keeps_within_what_may_wait_for_an_answer(publisher: Bench, place: Place) -> None:
    configured(publisher, 1, place, step_settings(rate="max"), qos=1, max_inflight=5)
    _, report = publisher.publish(CLIENT, 1, 0.2)
    assert report.sent == report.acknowledged > 5
    assert report.blocked_ns > 0


def test_the_end_of_a_step_is_marked_behind_its_data_until_the_next_configure(publisher: Bench, place: Place) -> None:
    listener = Listener(place)
    configured(publisher, 3, place, qos=2)
    window = publisher.start([CLIENT], 3, 0.1)
    publisher.await_end(window, 0.1)
    assert not listener.end_markers(3)
    report = publisher.publisher_report(CLIENT, 3, window)
    publisher.peer.wait(lambda: len(listener.end_markers(3)) == 4, "four end markers")
    markers = listener.end_markers(3)
    assert listener.arrivals.index(markers[0]) > listener.arrivals.index(listener.data(3)[report.sent - 1])
    assert all(b.time_ns - a.time_ns >= 49_000_000 for a, b in pairwise(markers))
    configured(publisher, 4, place, qos=2)
    count = len(listener.end_markers(3))
    publisher.peer.stays(lambda: len(listener.end_markers(3)) == count, "an end marker after the configure")


def retained(listener: Listener) -> list[tuple[int, int]]:
    return [(a.epoch, a.sequence) for a in listener.arrivals if a.retained]


def test_the_last_message_is_retained_if_that_is_asked(publisher: Bench, place: Place) -> None:
    for epoch, retain in ((1, True), (2, False)):
        configured(publisher, epoch, place, retain=retain, qos=1)
        _, report = publisher.publish(CLIENT, epoch, 0.1)
        if retain:
            kept = [(epoch, report.sent - 1)]
        with closing(Listener(place)) as listener:
            wait_until(partial(retained, listener), "what is retained", between=publisher.peer.poll)
            assert retained(listener) == kept


def test_signals_have_a_topic_of_their_own_where_data_is_shared(publisher: Bench, place: Place) -> None:
    listener = Listener(place)
    publisher.configure_publisher(CLIENT, 1, STEADY, system=place.step_system(shared=True))
    publisher.peer.wait(lambda: bool(listener.probes(1)), "a probe")
    publisher.publish(CLIENT, 1, 0.1)
    publisher.peer.wait(lambda: bool(listener.end_markers(1)), "an end marker")
    signals = {a.topic for a in (*listener.probes(1), *listener.end_markers(1))}
    assert signals == {f"{place.topic}/{CLIENT}/signals"}
    assert {a.topic for a in listener.data(1)} == {f"{place.topic}/{CLIENT}"}


def test_what_cannot_be_is_an_error_and_not_the_end(publisher: Bench, place: Place) -> None:
    configured(publisher, 1, place)
    for epoch, (named, changes) in enumerate({**BAD, "qos": {"qos": 3}}.items(), 2):
        publisher.send_configure([CLIENT], epoch, STEADY, system=place.step_system(**changes))
        error = publisher.peer.heard(Error, [CLIENT], epoch=epoch)
        assert named in error.message
        assert not error.fatal
    configured(publisher, 9, place)


@pytest.mark.tier("all")
def test_a_server_that_dies_leaves_an_honest_report(publisher: Bench, own_server: LocalServer, server: str) -> None:
    configured(publisher, 1, Place(own_server.address), qos=1)
    window = publisher.start([CLIENT], 1, 1.0)
    publisher.await_end(window, -0.5)
    kill(own_server)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    open_ended = sum(last - first + 1 for first, last in report.unacknowledged)
    assert report.acknowledged + open_ended == report.sent
    assert report.acknowledged > 0
    assert (report.system or {})["lost_connections"] == 1
    # Another server, in the place of the one that died.
    configured(publisher, 2, Place(server), qos=1)
    _, report = publisher.publish(CLIENT, 2, 0.1)
    assert (report.system or {})["lost_connections"] == 0
