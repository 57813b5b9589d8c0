"""What clients must do about a load that changes, the seconds of a step, and spells."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from hydra.wire.course import CourseSum
from hydra.wire.load import Load
from hydra.wire.messages import Course, Second, Spell
from tests.conformance.bench import Bench, step_settings, with_values
from tests.conformance.zmq_ends import Listener
from tests.conformance.zmq_subscribing import CLIENT, DEEP, ONE, connected, got, running, speakers

PUBLISHER = 7
POINTS = [(0.0, 100.0), (0.5, 400.0), (0.5, 0.0), (1.0, 0.0), (1.0, 333.3), (2.0, 0.0)]
SETTINGS = step_settings(sndhwm=0, rate=150.0)


def told(bench: Bench, clients: Iterable[int]) -> dict[int, Second]:
    """What has been told of each second, added up."""
    together = CourseSum()
    for client in clients:
        for course in bench.peer.said(Course, client):
            together.add(course.seconds)
    return {second.second: second for second in together.take()}


def all_told(bench: Bench) -> int:
    """Messages that a subscriber has told of, in whatever second."""
    return sum(second.messages for second in told(bench, [CLIENT]).values())


@pytest.fixture
def publisher(bench: Bench, zmq_client: str) -> Bench:
    bench.launch(zmq_client, "zmq-pub", first_id=PUBLISHER)
    return bench


def test_messages_are_due_when_the_load_says_so(publisher: Bench) -> None:
    endpoint = publisher.configure_publisher(PUBLISHER, 1, SETTINGS, load=POINTS, course_s=0.3)
    listener = Listener(publisher.peer, endpoint)
    listener.await_probe(1)
    window = publisher.start([PUBLISHER], 1, 2.0)
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(PUBLISHER, 1, window)
    load = Load(POINTS)
    due = [window.start_ns + ns for ns in load.times_ns(0, load.total(2.0)).tolist()]
    publisher.peer.wait(lambda: len(listener.data(1)) >= report.sent, "all messages")
    assert [message.time_ns for message in listener.data(1)] == due[: report.sent]
    assert all(message.arrived_ns >= message.time_ns for message in listener.data(1))
    seconds = told(publisher, [PUBLISHER])
    assert sum(second.messages for second in seconds.values()) == report.sent
    assert set(seconds) <= {0, 1, 2}
    assert seconds[0].messages <= load.by_second(1)[0]


def test_a_subscriber_tells_what_came_in_each_second(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, course_s=0.2)
    window = running(subscriber, 1, 2.5)
    for second, count in ((0, 30), (1, 20), (2, 10)):
        at_ns = window.start_ns + second * 10**9 + 300_000_000
        subscriber.peer.wait(lambda at_ns=at_ns: window.now_ns() >= at_ns, "the next second")  # type: ignore[misc]
        first = {0: 0, 1: 30, 2: 50}[second]
        one.send(1, range(first, first + count), time_ns=window.now_ns() - 5_000_000)
        subscriber.peer.wait(lambda n=first + count: all_told(subscriber) == n, "what came then")  # type: ignore[misc]
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 60})
    seconds = told(subscriber, [CLIENT])
    # (On a busy machine some may have been read a second late.)
    assert sum(it.messages for it in seconds.values()) == 60
    assert len(seconds) >= 2
    together = CourseSum()
    together.add(Second(0, it.messages, it.latency) for it in seconds.values())
    assert together.take()[0].latency == report.latency
    assert min(it.latency.min_us for it in seconds.values()) >= 5000


def test_nothing_is_told_where_nobody_asks(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    got(subscriber, 1, 10)
    subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    assert not subscriber.peer.said(Course)


def test_one_that_is_gone_gets_nothing_and_comes_back(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, spells=[Spell("gone", 0.3, 0.8)], course_s=0.2)
    window = running(subscriber, 1, 2.0)
    one.send(1, range(10), time_ns=window.now_ns())
    for at_s, first in ((0.5, 10), (1.4, 20)):
        at_ns = window.start_ns + round(at_s * 1e9)
        subscriber.peer.wait(lambda at_ns=at_ns: window.now_ns() >= at_ns, "the next message's time")  # type: ignore[misc]
        one.send(1, range(first, first + 10), time_ns=window.now_ns())
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 30})
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing_ranges) == (20, [(10, 19)])
    (absence,) = report.absent
    assert absence[0] >= window.start_ns + 300_000_000
    assert report.reconnects == 1


def test_a_slow_one_reads_at_its_rate_for_a_while(queueing_subscriber: Bench) -> None:
    (one,) = speakers(queueing_subscriber, ONE)
    connected(
        queueing_subscriber,
        1,
        one,
        settings=with_values(DEEP, rcvhwm=0),
        spells=[Spell("slow", 0.0, 1.0, 20.0)],
        course_s=0.2,
    )
    window = running(queueing_subscriber, 1, 2.0)
    queueing_subscriber.peer.wait(lambda: window.now_ns() >= window.start_ns + 50_000_000, "the window")
    one.send(1, range(1000), time_ns=window.now_ns())
    queueing_subscriber.await_end(window)
    report = queueing_subscriber.subscriber_report(CLIENT, 1, {ONE: 1000})
    assert report.ledgers[0].received == 1000
    seconds = told(queueing_subscriber, [CLIENT])
    assert 1 <= seconds[0].messages <= 21
    assert seconds[1].messages >= 979
