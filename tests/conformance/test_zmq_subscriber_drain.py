"""What a ZMQ subscriber must do: drain until nothing follows, and report."""

from __future__ import annotations

import time

import pytest

from hydra.wire.messages import Ready
from tests.conformance.bench import CLIENT, ONE, OTHER, STRANGER, Bench
from tests.conformance.peer import Account
from tests.conformance.zmq_ends import Speaker
from tests.conformance.zmq_subscribing import DEEP, begun, connected, endpoints, got, only_ledger, running, speakers


def test_complete_ends_the_drain_at_once(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, range(10))
    subscriber.send_finish([CLIENT], 1, {ONE: 12}, quiet_s=1000, drain_max_s=1000)
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Account), "a report before the drain is over")
    one.send(1, [11])
    # The last expected sequence is here: what is missing before it was dropped.
    report = subscriber.reported(CLIENT, 1)
    assert (report.drain, only_ledger(report).missing_ranges) == ("complete", [(10, 10)])


def test_quiet_ends_the_drain(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, range(10))
    before_s = time.monotonic()
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 20}, quiet_s=0.2, drain_max_s=1000)
    assert time.monotonic() - before_s > 0.15
    assert (report.drain, only_ledger(report).missing_ranges) == ("quiet", [(10, 19)])


def marked(bench: Bench, *of: Speaker, sent: int, quiet_s: float = 1000.0) -> None:
    """A step in which the last of what every speaker sent was lost, and whose drain has begun."""
    connected(bench, 5, *of)
    running(bench, 5)
    for speaker in of:
        speaker.send(5, range(sent - 1))
    got(bench, 5, len(of) * (sent - 1))
    bench.send_finish([CLIENT], 5, {s.publisher: sent for s in of}, quiet_s=quiet_s, drain_max_s=1000)


def test_the_end_markers_of_all_publishers_end_the_drain_at_once(subscriber: Bench) -> None:
    one, other = speakers(subscriber, ONE, OTHER)
    marked(subscriber, one, other, sent=10)
    one.mark_end(5)
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Account), "a report before the other's marker")
    other.mark_end(5)
    report = subscriber.reported(CLIENT, 5)
    assert report.drain == "marked"
    assert [ledger.missing_ranges for ledger in report.ledgers] == [[(9, 9)], [(9, 9)]]
    assert report.stale == 0


@pytest.mark.parametrize(("received", "drain"), [(9, "marked"), (10, "complete")])
def test_a_marker_that_came_before_finish_counts_where_something_is_missing(
    subscriber: Bench, received: int, drain: str
) -> None:
    one, _ = begun(subscriber, 5)
    one.send(5, range(received))
    one.mark_end(5)
    one.send(5, [0])
    got(subscriber, 5, received + 1)
    report = subscriber.subscriber_report(CLIENT, 5, {ONE: 10}, quiet_s=1000, drain_max_s=1000)
    assert (report.drain, only_ledger(report).received, report.stale) == (drain, received, 0)


def test_markers_of_other_epochs_and_of_strangers_are_nothing(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    marked(subscriber, one, sent=10, quiet_s=0.4)
    for epoch in (0, 4, 6):
        one.mark_end(epoch)
    one.mark_end(5, publisher=STRANGER)
    report = subscriber.reported(CLIENT, 5)
    assert (report.drain, report.stale) == ("quiet", 0)


def test_a_marker_is_no_probe(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    subscriber.configure_subscribers([CLIENT], 4, DEEP, publishers=endpoints(one))
    one.await_subscriptions(1)
    one.mark_end(3)
    one.mark_end(4)
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Ready), "ready without a probe")
    one.probe(4)
    subscriber.peer.heard(Ready, [CLIENT], epoch=4)


def test_who_takes_slow_turns_is_quiet_after_four_of_its_longest(subscriber: Bench) -> None:
    """Batches some time apart: what follows as much later is late, and not lost."""
    one, window = begun(subscriber)
    for sequence in range(2):
        subscriber.await_moment(window, 0.25 * sequence)
        one.send(1, [sequence])
        got(subscriber, 1, sequence + 1)
    subscriber.send_finish([CLIENT], 1, {ONE: 4}, quiet_s=0.05, drain_max_s=1000)
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Account), "a report before the next turn", 0.3)
    before_s = time.monotonic()
    one.send(1, [2])
    report = subscriber.reported(CLIENT, 1)
    assert time.monotonic() - before_s > 4 * 0.25 - 0.1
    assert (report.drain, only_ledger(report).received) == ("quiet", 3)


def test_the_deadline_ends_the_drain(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    before_s = time.monotonic()
    subscriber.send_finish([CLIENT], 1, {ONE: 20}, quiet_s=0.4, drain_max_s=0.6)

    def keep_talking() -> bool:
        one.send(1, [3])
        return bool(subscriber.peer.messages_of(Account))

    subscriber.peer.wait(keep_talking, "the report")
    assert time.monotonic() - before_s > 0.55
    report = subscriber.reported(CLIENT, 1)
    assert (report.drain, only_ledger(report).received) == ("deadline", 1)


def test_finish_is_answered_with_one_report_again_and_again(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, range(10))
    subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    one.send(1, range(10, 20))
    subscriber.send_finish([CLIENT], 1, {ONE: 20})
    subscriber.reports_again(CLIENT, 1)
