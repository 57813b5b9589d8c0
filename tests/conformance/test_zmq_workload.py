"""What clients must do about a load that changes, the seconds of a step, and impairments."""

from __future__ import annotations

from functools import partial

from hydra.wire.load_schedule import LoadSchedule
from hydra.wire.messages import Impairment, SecondCounts, TimeSeries
from hydra.wire.time_series import TimeSeriesSum
from tests.conformance.bench import CLIENT, ONE, Bench, step_settings
from tests.conformance.zmq_ends import Listener, Speaker
from tests.conformance.zmq_subscribing import begun

POINTS = [(0.0, 100.0), (0.3, 400.0), (0.3, 0.0), (0.6, 0.0), (0.6, 333.3), (1.2, 0.0)]
SETTINGS = step_settings(sndhwm=0, rate=150.0)


def sums(bench: Bench) -> dict[int, SecondCounts]:
    """The sum of the reports of each second."""
    together = TimeSeriesSum()
    for series in bench.peer.messages_of(TimeSeries, CLIENT):
        together.add(series.seconds)
    return {second.second: second for second in together.take()}


def all_reported(bench: Bench, messages: int) -> bool:
    """Whether a subscriber has reported this many, in whatever second."""
    return sum(second.messages for second in sums(bench).values()) == messages


def listened_to_by(subscribers: int, speaker: Speaker) -> bool:
    """Whether a speaker has this many subscribers now."""
    return speaker.present == subscribers


def test_messages_are_due_when_the_load_says_so(publisher: Bench) -> None:
    listener = Listener(publisher.peer, publisher.configure_publisher(CLIENT, 1, SETTINGS, load=POINTS, course_s=0.2))
    listener.await_probe(1)
    window, report = publisher.publish(CLIENT, 1, 1.2, after_s=0.1)
    load = LoadSchedule(POINTS)
    due = [window.start_ns + ns for ns in load.times_ns(0, load.total(1.2)).tolist()]
    publisher.peer.wait(lambda: len(listener.data(1)) >= report.sent, "all messages")
    assert [message.time_ns for message in listener.data(1)] == due[: report.sent]
    assert all(message.arrived_ns >= message.time_ns for message in listener.data(1))
    seconds = sums(publisher)
    assert sum(second.messages for second in seconds.values()) == report.sent
    assert set(seconds) <= {0, 1}
    assert seconds[0].messages <= load.total(1)


def test_a_subscriber_tells_what_came_in_each_second(subscriber: Bench) -> None:
    one, window = begun(subscriber, 1, 1.2, course_s=0.1)
    for at_s, first, end in ((0.3, 0, 30), (0.6, 30, 50), (1.1, 50, 60)):
        subscriber.await_moment(window, at_s)
        one.send(1, range(first, end), time_ns=window.now_ns() - 5_000_000)
        subscriber.peer.wait(partial(all_reported, subscriber, end), "what came then")
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 60})
    seconds = sums(subscriber)
    # (On a busy machine some may have been read a second late.)
    assert sum(it.messages for it in seconds.values()) == 60
    assert len(seconds) >= 2
    together = TimeSeriesSum()
    together.add(SecondCounts(0, it.messages, it.latency) for it in seconds.values())
    assert together.take()[0].latency == report.latency
    assert min(it.latency.min_us for it in seconds.values()) >= 5000


def test_one_that_is_gone_gets_nothing_and_comes_back(subscriber: Bench) -> None:
    one, window = begun(subscriber, 1, 1.2, spells=[Impairment("gone", 0.3, 0.8)], course_s=0.2)
    one.send(1, range(10), time_ns=window.now_ns())
    for present, first in ((0, 10), (1, 20)):
        subscriber.peer.wait(partial(listened_to_by, present, one), f"{present} subscribers")
        one.send(1, range(first, first + 10), time_ns=window.now_ns())
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 30})
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing_ranges) == (20, [(10, 19)])
    (absence,) = report.absent
    assert absence[0] >= window.start_ns + 300_000_000
    assert report.reconnects == 1


def test_a_slow_one_reads_at_its_rate_for_a_while(queueing_subscriber: Bench) -> None:
    one, window = begun(queueing_subscriber, 1, 1.2, spells=[Impairment("slow", 0.0, 1.0, 20.0)], course_s=0.2)
    # The impairment begins with the window, and not before it is looked at.
    queueing_subscriber.await_moment(window, 0.05)
    one.send(1, range(1000), time_ns=window.now_ns())
    queueing_subscriber.await_end(window)
    report = queueing_subscriber.subscriber_report(CLIENT, 1, {ONE: 1000})
    assert report.ledgers[0].received == 1000
    seconds = sums(queueing_subscriber)
    assert 1 <= seconds[0].messages <= 21
    assert seconds[1].messages >= 979
