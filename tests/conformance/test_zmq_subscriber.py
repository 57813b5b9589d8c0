"""What a ZMQ subscriber must do: obey, and prove that it receives from every publisher."""

from __future__ import annotations

import pytest

from hydra.model import LedgerCounts
from hydra.wire.messages import Ack, Error, Ready
from tests.conformance.bench import CLIENT, ONE, OTHER, STRANGER, Bench, StepSettings, Window, with_values
from tests.conformance.zmq_subscribing import DEEP, begun, connected, endpoints, got, listening, running, speakers


def test_it_accounts_only_for_its_share_of_the_publishers(subscriber: Bench) -> None:
    """Another subscriber listens to the other one; this one hears of it, and it is nothing of its own."""
    one, other = speakers(subscriber, ONE, OTHER)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    other.send(1, range(50))
    one.send(1, range(3), publisher=OTHER)
    got(subscriber, 1, 10)
    assert other.subscriptions == 0
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 12})
    assert report.ledgers == [LedgerCounts(ONE, 10, 10, 2, [(10, 11)])]
    assert report.stale == 3


@pytest.mark.parametrize("end", ["marked", "quiet"])
def test_a_member_of_a_group_says_what_it_received(subscriber: Bench, end: str) -> None:
    one, _ = begun(subscriber, group="readers")
    one.send(1, [0, 1, 2, 5, 6, 4, 5, 9])
    got(subscriber, 1, 8)
    if end == "marked":
        one.mark_end(1)
    # That the last one is here does not mean that all are.
    drained = {"quiet_s": 0.2 if end == "quiet" else 1000.0, "drain_max_s": 1000}
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 10}, unacknowledged={ONE: [(6, 6)]}, **drained)
    assert report.drain == end
    assert report.ledgers == [LedgerCounts(ONE, 6, 6, 0, duplicates=1, reordered=1, extra=1, received_bits="dwI=")]


@pytest.mark.parametrize("rate_ppb", [-10_000_000, 10_000_000])
def test_the_steps_clock_is_the_one_that_it_was_told(subscriber: Bench, rate_ppb: int) -> None:
    one = listening(subscriber)
    window = subscriber.start([CLIENT], 1, 30, rate_ppb=rate_ppb)
    before_ns = window.now_ns()
    one.send(1, range(10), time_ns=before_ns - 250_000_000)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    assert before_ns <= report.first_ns <= report.last_ns <= window.now_ns()
    assert 250_000 <= report.latency.min_us <= report.latency.max_us < 900_000


def test_what_came_before_the_start_is_counted_without_a_latency(subscriber: Bench) -> None:
    one = listening(subscriber)
    one.send(1, range(10))
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Error), "an error")
    window = running(subscriber, 1)
    one.send(1, range(10, 30))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 30})
    assert report.ledgers == [LedgerCounts(ONE, 30, 30, 0)]
    assert sum(report.latency.counts[1::2]) == 20
    assert report.first_ns < window.start_ns < report.last_ns <= window.now_ns()


def test_what_the_system_does_not_know_is_refused_by_name(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    subscriber.send_configure([CLIENT], 1, DEEP, publishers=endpoints(one), system={"rcvhmw": 5})
    subscriber.hears_why_not(CLIENT, 1, "rcvhmw")
    connected(subscriber, 1, one)


# --- readiness -------------------------------------------------------------------------------------------------------


def test_it_is_ready_when_every_publisher_was_heard_in_this_epoch(subscriber: Bench) -> None:
    one, other = speakers(subscriber, ONE, OTHER)
    subscriber.configure_subscribers([CLIENT], 4, DEEP, publishers=endpoints(one, other))
    for speaker in (one, other):
        speaker.await_subscriptions(1)
    one.probe(4)
    other.probe(3)
    other.probe(4, publisher=STRANGER)
    other.send(4, range(5))
    other.send_raw(b"short")
    subscriber.peer.stays(
        lambda: not subscriber.peer.messages_of(Ready), "ready without a probe of the other publisher"
    )
    other.probe(4)
    subscriber.peer.heard(Ready, [CLIENT], epoch=4)
    for speaker in (one, other):
        speaker.probe(4)
    subscriber.peer.stays(lambda: len(subscriber.peer.messages_of(Ready)) == 1, "ready twice", 0.1)


def test_configure_sent_twice_makes_no_new_connection(subscriber: Bench) -> None:
    one = listening(subscriber)
    subscriber.peer.sync([CLIENT])
    subscriber.send_configure([CLIENT], 1, DEEP, publishers=endpoints(one))
    subscriber.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=2)
    subscriber.peer.stays(lambda: one.subscriptions == 1, "a second connection", 0.1)


def test_without_probe_there_is_only_the_ack(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    for times in (1, 2):
        subscriber.send_configure([CLIENT], 1, DEEP, publishers=endpoints(one), probe=False)
        subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=times)
        subscriber.peer.sync([CLIENT])
    assert not subscriber.peer.messages_of(Ready)


def test_an_older_epoch_is_ignored(subscriber: Bench) -> None:
    one = listening(subscriber, 5)
    subscriber.send_configure([CLIENT], 4, with_values(DEEP, rcvhwm=9), publishers=endpoints(one))
    subscriber.send_start([CLIENT], 4, Window(1, 2, 0))
    subscriber.send_finish([CLIENT], 4, {ONE: 0})
    subscriber.peer.sync([CLIENT])
    assert not [m for m in subscriber.peer.log if getattr(m, "epoch", None) == 4]
    assert one.subscriptions == 1


@pytest.mark.parametrize("settings", [DEEP, with_values(DEEP, rate=5.0, message_size=100)])
def test_the_next_epoch_keeps_the_connection(subscriber: Bench, settings: StepSettings) -> None:
    one = listening(subscriber)
    connected(subscriber, 2, one, settings=settings)
    subscriber.peer.stays(lambda: one.subscriptions == 1, "a second connection", 0.1)


def test_another_high_water_mark_makes_a_new_connection(queueing_subscriber: Bench) -> None:
    one = listening(queueing_subscriber)
    connected(queueing_subscriber, 2, one, settings=with_values(DEEP, rcvhwm=50), subscriptions=2)
    queueing_subscriber.peer.wait(lambda: one.present == 1, "the old connection closes")


def test_another_endpoint_is_followed(subscriber: Bench) -> None:
    before, after = speakers(subscriber, ONE, ONE)
    connected(subscriber, 1, before)
    connected(subscriber, 2, after)
    subscriber.peer.wait(lambda: before.present == 0, "the old connection closes")


def test_an_endpoint_that_is_none_is_an_error_and_not_the_end(subscriber: Bench) -> None:
    """Whatever belongs to the step before, in the middle of which it comes, has ended."""
    one, window = begun(subscriber)
    subscriber.send_configure([CLIENT], 2, DEEP, publishers={ONE: "nonsense"})
    subscriber.hears_why_not(CLIENT, 2, "nonsense")
    subscriber.ignores_commands(CLIENT, (1, 2), window)
    connected(subscriber, 2, one, subscriptions=2)
