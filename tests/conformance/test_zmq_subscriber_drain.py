"""What a ZMQ subscriber must do: drain until nothing follows, and report."""

from __future__ import annotations

import time

from hydra.wire.messages import Ready, Report
from tests.conformance.bench import Bench, same_answer
from tests.conformance.zmq_ends import Speaker
from tests.conformance.zmq_subscribing import (
    CLIENT,
    DEEP,
    ONE,
    OTHER,
    STRANGER,
    connected,
    endpoints,
    got,
    only_ledger,
    running,
    speakers,
)


def test_complete_ends_the_drain_at_once(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    subscriber.tell_finish([CLIENT], 1, {ONE: 12}, quiet_s=20, drain_max_s=20)
    subscriber.peer.stays(lambda: not subscriber.peer.said(Report), "a report before the drain is over")
    one.send(1, [11])
    # The last expected sequence is here: what is missing before it was dropped.
    report = subscriber.peer.heard(Report, [CLIENT], epoch=1, timeout_s=3).subscriber
    assert report is not None
    assert (report.drain, only_ledger(report).missing_ranges) == ("complete", [(10, 10)])


def test_quiet_ends_the_drain(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    began = time.monotonic()
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 20}, quiet_s=0.4, drain_max_s=20)
    assert 0.35 < time.monotonic() - began < 3
    assert (report.drain, only_ledger(report).missing_ranges) == ("quiet", [(10, 19)])


def marked(bench: Bench, *of: Speaker, sent: int, quiet_s: float = 20.0) -> None:
    """A step in which the last of what every speaker sent was lost, and whose drain has begun."""
    connected(bench, 5, *of)
    running(bench, 5)
    for speaker in of:
        speaker.send(5, range(sent - 1))
    got(bench, 5, len(of) * (sent - 1))
    bench.tell_finish([CLIENT], 5, {s.publisher: sent for s in of}, quiet_s=quiet_s, drain_max_s=20)


def test_the_end_markers_of_all_publishers_end_the_drain_at_once(subscriber: Bench) -> None:
    one, other = speakers(subscriber, ONE, OTHER)
    marked(subscriber, one, other, sent=10)
    one.mark_end(5)
    subscriber.peer.stays(lambda: not subscriber.peer.said(Report), "a report before the other's marker")
    other.mark_end(5)
    report = subscriber.peer.heard(Report, [CLIENT], epoch=5, timeout_s=3).subscriber
    assert report is not None
    assert report.drain == "marked"
    assert [ledger.missing_ranges for ledger in report.ledgers] == [[(9, 9)], [(9, 9)]]
    assert report.stale == 0


def test_a_marker_that_came_before_finish_counts(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 5, one)
    running(subscriber, 5)
    one.send(5, range(9))
    one.mark_end(5)
    one.send(5, [0])
    got(subscriber, 5, 10)
    report = subscriber.subscriber_report(CLIENT, 5, {ONE: 10}, timeout_s=3, quiet_s=20, drain_max_s=20)
    assert (report.drain, only_ledger(report).missing_ranges) == ("marked", [(9, 9)])


def test_with_everything_there_a_marker_changes_nothing(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 5, one)
    running(subscriber, 5)
    one.send(5, range(10))
    one.mark_end(5)
    got(subscriber, 5, 10)
    report = subscriber.subscriber_report(CLIENT, 5, {ONE: 10}, timeout_s=3, quiet_s=20, drain_max_s=20)
    assert (report.drain, only_ledger(report).received, report.stale) == ("complete", 10, 0)


def test_markers_of_other_epochs_and_of_strangers_are_nothing(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    marked(subscriber, one, sent=10, quiet_s=1.0)
    began = time.monotonic()
    for epoch in (0, 4, 6):
        one.mark_end(epoch)
    one.mark_end(5, publisher=STRANGER)
    report = subscriber.peer.heard(Report, [CLIENT], epoch=5).subscriber
    assert report is not None
    assert time.monotonic() - began > 0.5
    assert (report.drain, report.stale) == ("quiet", 0)


def test_a_marker_is_no_probe(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    subscriber.configure_subscribers([CLIENT], 4, DEEP, publishers=endpoints(one))
    one.await_subscriptions(1)
    one.mark_end(3)
    one.mark_end(4)
    subscriber.peer.stays(lambda: not subscriber.peer.said(Ready), "ready without a probe")
    one.probe(4)
    subscriber.peer.heard(Ready, [CLIENT], epoch=4)


def test_who_takes_slow_turns_is_not_taken_to_be_quiet(subscriber: Bench) -> None:
    """Batches a second apart: what follows a second later is late, and not lost."""
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1)
    for sequence in range(2):
        at_ns = window.start_ns + (sequence + 1) * 1_000_000_000
        subscriber.peer.wait(lambda at_ns=at_ns: window.now_ns() >= at_ns, "the next turn")  # type: ignore[misc]
        one.send(1, [sequence])
    subscriber.tell_finish([CLIENT], 1, {ONE: 4}, quiet_s=0.2, drain_max_s=30)
    subscriber.peer.stays(lambda: not subscriber.peer.said(Report), "a report before the next turn", 1.5)
    one.send(1, [2])
    subscriber.peer.stays(lambda: not subscriber.peer.said(Report), "a report before the last turn", 1.5)
    one.send(1, [3])
    report = subscriber.peer.heard(Report, [CLIENT], epoch=1).subscriber
    assert report is not None
    assert (report.drain, only_ledger(report).received) == ("complete", 4)


def test_quiet_is_four_of_its_longest_turns(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1)
    one.send(1, [0])
    got(subscriber, 1, 1)
    subscriber.peer.wait(lambda: window.now_ns() >= window.start_ns + 400_000_000, "the next turn")
    one.send(1, [1])
    got(subscriber, 1, 2)
    began = time.monotonic()
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 3}, quiet_s=0.1, drain_max_s=30)
    gap_s = (report.last_ns - report.first_ns) / 1e9
    assert 4 * gap_s - 0.3 < time.monotonic() - began < 4 * gap_s + 2
    assert report.drain == "quiet"


def test_the_deadline_ends_the_drain(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    subscriber.tell_finish([CLIENT], 1, {ONE: 20}, quiet_s=0.4, drain_max_s=1.0)
    began = time.monotonic()

    def keep_talking() -> bool:
        one.send(1, [3])
        return bool(subscriber.peer.said(Report))

    subscriber.peer.wait(keep_talking, "the report")
    assert 0.9 < time.monotonic() - began < 4
    report = subscriber.peer.said(Report)[0].subscriber
    assert report is not None
    assert (report.drain, only_ledger(report).received) == ("deadline", 1)


def test_finish_is_answered_with_one_report_again_and_again(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    one.send(1, range(10, 20))
    subscriber.tell_finish([CLIENT], 1, {ONE: 20})
    subscriber.peer.heard(Report, [CLIENT], epoch=1, times=2)
    first, second = subscriber.peer.said(Report, CLIENT, epoch=1)
    assert same_answer(first, second)
