"""What a ZMQ subscriber must do: prove that it hears everyone, keep an exact ledger, drain, and report."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from hydra.control.bounded import fit_unacknowledged
from hydra.model import (
    LAG_BINS,
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SubscriberReport,
)
from hydra.wire.checks import MAX_UNACKNOWLEDGED_RANGES
from hydra.wire.messages import Ack, ChildExit, Error, Progress, Ready, Report
from tests.conformance.bench import Bench, StepSettings, Window, same_answer, step_settings, with_values
from tests.conformance.zmq_ends import Speaker

CLIENT = 3
ONE, OTHER, STRANGER = 100, 101, 666
DEEP = step_settings(rcvhwm=0)


@pytest.fixture
def subscriber(bench: Bench, zmq_subscriber: tuple[str, str]) -> Bench:
    """Of any kind."""
    bench.launch(*zmq_subscriber, first_id=CLIENT)
    bench.not_told = frozenset({"rcvhwm"} if zmq_subscriber[1] == "zmtp-sub" else ())
    return bench


@pytest.fixture
def queueing_subscriber(bench: Bench, zmq_client: str) -> Bench:
    """One with a queue of its own."""
    bench.launch(zmq_client, "zmq-sub", first_id=CLIENT)
    return bench


def speakers(bench: Bench, *publishers: int) -> list[Speaker]:
    return [Speaker(bench.peer, publisher) for publisher in publishers]


def endpoints(*of: Speaker) -> dict[int, str]:
    return {speaker.publisher: speaker.endpoint for speaker in of}


def connected(
    bench: Bench,
    epoch: int,
    *of: Speaker,
    settings: StepSettings = DEEP,
    progress_s: float = 0.02,
    subscriptions: int = 1,
) -> None:
    """Configures the subscriber for these speakers and proves that it hears them."""
    bench.configure_subscribers([CLIENT], epoch, settings, publishers=endpoints(*of), progress_s=progress_s)
    for speaker in of:
        speaker.await_subscriptions(subscriptions)
        speaker.probe(epoch)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def got(bench: Bench, epoch: int, messages: int) -> None:
    """Waits until the subscriber has told that it has so many messages."""
    bench.peer.wait(
        lambda: any(p.messages >= messages for p in bench.peer.said(Progress, CLIENT, epoch=epoch)),
        f"progress of {messages} messages",
    )


def running(bench: Bench, epoch: int, seconds: float = 30.0) -> Window:
    """A window that has begun."""
    window = bench.start([CLIENT], epoch, seconds)
    bench.peer.wait(lambda: window.now_ns() > window.start_ns, "the start of the window")
    return window


def only_ledger(report: SubscriberReport) -> LedgerCounts:
    (ledger,) = report.ledgers
    return ledger


# --- what it is told of others ---------------------------------------------------------------------------------------


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
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=10, in_window=10, missing=2, missing_ranges=[(10, 11)])
    ]
    assert report.stale == 3


@pytest.mark.parametrize("end", ["marked", "quiet"])
def test_a_member_of_a_group_says_what_it_received(subscriber: Bench, end: str) -> None:
    (one,) = speakers(subscriber, ONE)
    subscriber.configure_subscribers([CLIENT], 1, DEEP, publishers=endpoints(one), progress_s=0.02, group="readers")
    one.await_subscriptions(1)
    one.probe(1)
    subscriber.peer.heard(Ready, [CLIENT], epoch=1)
    running(subscriber, 1)
    one.send(1, [0, 1, 2, 5, 6, 4, 5, 9])
    got(subscriber, 1, 8)
    if end == "marked":
        one.mark_end(1)
    # That the last one is here does not mean that all are.
    report = subscriber.subscriber_report(
        CLIENT, 1, {ONE: 10}, unacknowledged={ONE: [(6, 6)]}, quiet_s=0.2 if end == "quiet" else 5.0
    )
    assert report.drain == end
    assert report.ledgers == [
        LedgerCounts(
            publisher=ONE,
            received=6,
            in_window=6,
            missing=0,
            duplicates=1,
            reordered=1,
            extra=1,
            received_bits="dwI=",
        )
    ]


@pytest.mark.parametrize("rate_ppb", [-10_000_000, 10_000_000])
def test_the_steps_clock_is_the_one_that_it_was_told(subscriber: Bench, rate_ppb: int) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = subscriber.start([CLIENT], 1, 30, rate_ppb=rate_ppb)
    before_ns = window.now_ns()
    one.send(1, range(10), time_ns=before_ns - 250_000_000)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    assert before_ns <= report.first_ns <= report.last_ns <= window.now_ns()
    assert 250_000 <= report.latency.min_us <= report.latency.max_us < 900_000


def test_what_came_before_the_start_is_counted_without_a_latency(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    one.send(1, range(10))
    subscriber.peer.stays(lambda: not subscriber.peer.said(Error), "an error", 0.5)
    window = running(subscriber, 1)
    one.send(1, range(10, 30))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 30})
    ledger = only_ledger(report)
    assert (ledger.received, ledger.in_window) == (30, 30)
    assert sum(report.latency.counts[1::2]) == 20
    assert report.first_ns < window.start_ns < report.last_ns <= window.now_ns()


def test_what_the_system_does_not_know_is_refused_by_name(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    subscriber.tell_configure([CLIENT], 1, DEEP, publishers=endpoints(one), system={"rcvhmw": 5})
    error = subscriber.peer.heard(Error, [CLIENT], epoch=1)
    assert "rcvhmw" in error.message
    assert not error.fatal
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
    subscriber.peer.stays(lambda: not subscriber.peer.said(Ready), "ready without a probe of the other publisher")
    other.probe(4)
    subscriber.peer.heard(Ready, [CLIENT], epoch=4)
    for speaker in (one, other):
        speaker.probe(4)
    subscriber.peer.stays(lambda: len(subscriber.peer.said(Ready)) == 1, "ready twice", 0.1)


def test_configure_sent_twice_makes_no_new_connection(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    subscriber.peer.sync([CLIENT])
    subscriber.tell_configure([CLIENT], 1, DEEP, publishers=endpoints(one))
    subscriber.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=2)
    subscriber.peer.stays(lambda: one.subscriptions == 1, "a second connection", 0.1)


def test_without_probe_there_is_only_the_ack(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    for times in (1, 2):
        subscriber.tell_configure([CLIENT], 1, DEEP, publishers=endpoints(one), probe=False)
        subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=times)
        subscriber.peer.sync([CLIENT])
    assert not subscriber.peer.said(Ready)


def test_an_older_epoch_is_ignored(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 5, one)
    subscriber.tell_configure([CLIENT], 4, with_values(DEEP, rcvhwm=9), publishers=endpoints(one))
    subscriber.tell_start([CLIENT], 4, Window(1, 2, 0))
    subscriber.tell_finish([CLIENT], 4, {ONE: 0})
    subscriber.peer.sync([CLIENT])
    assert not [m for m in subscriber.peer.log if getattr(m, "epoch", None) == 4]
    assert one.subscriptions == 1


@pytest.mark.parametrize("settings", [DEEP, with_values(DEEP, rate=5.0, message_size=100)])
def test_the_next_epoch_keeps_the_connection(subscriber: Bench, settings: StepSettings) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    connected(subscriber, 2, one, settings=settings)
    subscriber.peer.stays(lambda: one.subscriptions == 1, "a second connection", 0.1)


def test_another_high_water_mark_makes_a_new_connection(queueing_subscriber: Bench) -> None:
    (one,) = speakers(queueing_subscriber, ONE)
    connected(queueing_subscriber, 1, one)
    connected(queueing_subscriber, 2, one, settings=with_values(DEEP, rcvhwm=50), subscriptions=2)
    queueing_subscriber.peer.wait(lambda: one.present == 1, "the old connection closes")


def test_another_endpoint_is_followed(subscriber: Bench) -> None:
    before, after = speakers(subscriber, ONE, ONE)
    connected(subscriber, 1, before)
    connected(subscriber, 2, after)
    subscriber.peer.wait(lambda: before.present == 0, "the old connection closes")


def test_an_endpoint_that_is_none_is_an_error_and_not_the_end(subscriber: Bench) -> None:
    """Whatever belongs to the step before, in the middle of which it comes, has ended."""
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1)
    subscriber.tell_configure([CLIENT], 2, DEEP, publishers={ONE: "nonsense"})
    error = subscriber.peer.heard(Error, [CLIENT], epoch=2)
    assert "nonsense" in error.message
    assert not error.fatal
    subscriber.ignores_commands(CLIENT, (1, 2), window)
    connected(subscriber, 2, one, subscriptions=2)


# --- the ledger ------------------------------------------------------------------------------------------------------


def test_a_whole_stream_in_order(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1)
    one.send(1, range(5000), size=100)
    got(subscriber, 1, 5000)
    subscriber.stop([CLIENT], 1, window)
    subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="stop")
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 5000})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=5000, in_window=5000, missing=0)
    assert (report.bytes, report.stale, report.undrained, report.reconnects) == (500_000, 0, 0, 0)
    assert 1 <= report.batches <= 5000
    assert 1 <= report.first_batch <= 5000
    assert window.start_ns <= report.first_ns <= report.last_ns
    assert report.drain == "complete"
    assert report.usage.max_rss_bytes > 1_000_000


def test_loss_duplicates_disorder_and_strangers_are_told_exactly(subscriber: Bench) -> None:
    one, other = speakers(subscriber, ONE, OTHER)
    connected(subscriber, 6, one, other)
    running(subscriber, 6)
    # ONE: 10 … 19 and 50 are lost, 5 and 60 … 62 come twice, 70 comes after 75.
    one.send(6, range(10))
    one.send(6, [5])
    one.send(6, range(20, 50))
    one.send(6, range(51, 70))
    one.send(6, [60, 61, 62])
    one.send(6, [71, 72, 73, 74, 75, 70])
    one.send(6, range(76, 100))
    # OTHER loses 0 … 2 and the last two; messages of other epochs and publishers come in between.
    other.send(6, range(3, 8))
    other.send(5, range(4))
    other.send(7, range(2))
    other.send(6, range(6), publisher=STRANGER)
    other.probe(6)
    other.send_raw(b"")
    other.send_raw(b"23 bytes are no header.")
    got(subscriber, 6, 93 + 5)
    subscriber.peer.sync([CLIENT])
    report = subscriber.subscriber_report(CLIENT, 6, {ONE: 100, OTHER: 10}, quiet_s=0.3)
    assert report.ledgers == [
        LedgerCounts(
            publisher=ONE,
            received=89,
            in_window=89,
            missing=11,
            missing_ranges=[(10, 19), (50, 50)],
            duplicates=4,
            reordered=1,
        ),
        LedgerCounts(
            publisher=OTHER, received=5, in_window=5, missing=5, missing_ranges=[(0, 2), (8, 9)], duplicates=0
        ),
    ]
    assert report.stale == 12
    assert report.drain == "quiet"


def test_what_was_never_acknowledged_is_not_expected(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, [n for n in range(100) if n not in (7, 8, 30)])
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 100}, unacknowledged={ONE: [(8, 9), (40, 44)]})
    # Expected are 93; 7 and 30 of them are missing. 9 and 40 … 44 came although nobody vouched for them.
    assert only_ledger(report) == LedgerCounts(
        publisher=ONE, received=91, in_window=91, missing=2, missing_ranges=[(7, 7), (30, 30)], extra=6
    )


def test_a_finish_with_as_many_ranges_as_it_holds_is_obeyed(subscriber: Bench) -> None:
    publishers = speakers(subscriber, *range(ONE, ONE + 4))
    connected(subscriber, 1, *publishers)
    running(subscriber, 1)
    body = PublisherReport(*(2**62, 0, 0, 1, 2, 0), Histogram(), ProcessUsage())
    great = 2**62 - 2 * MAX_UNACKNOWLEDGED_RANGES
    # Nothing but the first ten messages of each is expected.
    ranges = [(10, great + 1)] + [(great + 2 * n, great + 2 * n + 1) for n in range(1, MAX_UNACKNOWLEDGED_RANGES)]
    told = fit_unacknowledged({p.publisher: replace(body, unacknowledged=ranges) for p in publishers})
    assert all(report.unacknowledged_joined for report in told.values())
    for one in publishers:
        one.send(1, range(10))
    report = subscriber.subscriber_report(
        CLIENT, 1, dict.fromkeys(told, 2**62), unacknowledged={p: r.unacknowledged for p, r in told.items()}
    )
    assert [(x.received, x.missing) for x in report.ledgers] == [(10, 0)] * 4


def test_the_list_of_missing_ranges_is_bounded_and_says_so(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(1, 1200, 2))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 1200})
    ledger = only_ledger(report)
    assert (ledger.received, ledger.missing, ledger.truncated) == (600, 600, True)
    assert ledger.missing_ranges == [(n, n) for n in range(0, 512, 2)]


def test_a_publisher_that_sent_nothing(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 0})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=0, in_window=0, missing=0)
    assert (report.batches, report.first_ns, report.last_ns, report.latency.counts) == (0, 0, 0, [])


def test_late_messages_count_as_received_and_not_in_the_window(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1, 0.4)
    one.send(1, range(50))
    got(subscriber, 1, 50)
    subscriber.await_end(window, 0.05)
    subscriber.stop([CLIENT], 1, window)
    one.send(1, range(50, 80))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 80})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=80, in_window=50, missing=0)
    assert report.last_ns > window.stop_ns


def test_an_early_stop_moves_the_end_of_the_window(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1, 30.0)
    one.send(1, range(50))
    got(subscriber, 1, 50)
    subscriber.stop([CLIENT], 1, Window(window.start_ns, window.now_ns(), window.offset_ns))
    subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="stop")
    one.send(1, range(50, 80))
    assert only_ledger(subscriber.subscriber_report(CLIENT, 1, {ONE: 80})).in_window == 50


def test_the_next_configure_closes_the_ledger(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    got(subscriber, 1, 10)
    connected(subscriber, 2, one)
    running(subscriber, 2)
    one.send(1, range(10, 14))
    one.send(2, range(20))
    got(subscriber, 2, 20)
    subscriber.tell_finish([CLIENT], 1, {ONE: 14})
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 20})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=20, in_window=20, missing=0)
    assert report.stale == 4
    assert not subscriber.peer.said(Report, epoch=1)


# --- drain -----------------------------------------------------------------------------------------------------------


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


# --- figures ---------------------------------------------------------------------------------------------------------


def bucket_of(value_us: int) -> int:
    """The formula of docs/control-protocol.md."""
    bucket = max(value_us.bit_length() - 11, 0)
    return bucket * 1024 + (value_us >> bucket)


def test_latency_is_arrival_minus_due_time(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    window = running(subscriber, 1)
    one.send(1, range(100), time_ns=window.now_ns() - 250_000_000)
    one.send(1, range(100, 130), time_ns=window.now_ns() + 3_600_000_000_000)
    got(subscriber, 1, 130)
    latency = subscriber.subscriber_report(CLIENT, 1, {ONE: 130}).latency
    indexes, counts = latency.counts[::2], latency.counts[1::2]
    assert indexes == sorted(set(indexes))
    # Those that came before they were due sort below zero, in mirrored buckets.
    early = [index for index in indexes if index < 0]
    assert sum(counts[: len(early)]) == 30
    assert sum(counts[len(early) :]) == 100
    assert -3_600_000_000 <= latency.min_us < -3_598_000_000
    assert indexes[0] == -1 - bucket_of(-latency.min_us)
    assert bucket_of(250_000) <= indexes[len(early)] <= indexes[-1] <= bucket_of(2_000_000)
    assert 250_000 <= latency.max_us < 2_000_000
    assert indexes[-1] == bucket_of(latency.max_us)


def test_the_lag_is_told_in_parts_of_the_window(subscriber: Bench) -> None:
    """A message in the middle of every second part, whose age grows by half a second a second."""
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, settings=with_values(DEEP, rate=1000.0))
    window = running(subscriber, 1, 2.0)
    ages_us = {}
    for part in range(1, LAG_BINS, 2):
        at_ns = window.start_ns + part * 100_000_000 + 30_000_000
        ages_us[part] = (at_ns - window.start_ns) // 2000
        subscriber.peer.wait(lambda at_ns=at_ns: window.now_ns() >= at_ns, "the next message's time")  # type: ignore[misc]
        one.send(1, [part, part + 1], time_ns=at_ns - 1000 * ages_us[part])
    subscriber.await_end(window)
    one.send(1, [99], time_ns=window.start_ns)
    bins = subscriber.subscriber_report(CLIENT, 1, {ONE: 100}).lag_bins_us
    assert len(bins) == LAG_BINS
    assert {part for part, mean_us in enumerate(bins) if mean_us is not None} == set(ages_us)
    for part, age_us in ages_us.items():
        mean_us = bins[part]
        assert mean_us is not None
        assert age_us <= mean_us < age_us + 70_000


def test_without_a_rate_no_lag_is_known(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, settings=with_values(DEEP, rate="max"))
    running(subscriber, 1)
    one.send(1, range(10))
    got(subscriber, 1, 10)
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 10}).lag_bins_us == []


def test_a_receive_rate_holds_it_back_until_the_drain(queueing_subscriber: Bench) -> None:
    (one,) = speakers(queueing_subscriber, ONE)
    connected(queueing_subscriber, 1, one, settings=with_values(DEEP, receive_rate=200.0))
    window = queueing_subscriber.start([CLIENT], 1, 1.0)
    one.send(1, range(2000))
    queueing_subscriber.await_end(window)
    report = queueing_subscriber.subscriber_report(CLIENT, 1, {ONE: 2000})
    ledger = only_ledger(report)
    assert ledger.received == 2000
    assert 150 <= ledger.in_window <= 205
    for progress in queueing_subscriber.peer.said(Progress, CLIENT, epoch=1):
        if progress.time_ns < window.stop_ns:
            assert progress.messages <= 200 * (progress.time_ns - window.start_ns) / 1e9 + 20


def test_a_reconnect_rate_makes_new_connections(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, settings=with_values(DEEP, reconnect_rate=5.0))
    window = subscriber.start([CLIENT], 1, 0.9)
    sequence = 0

    def talking() -> bool:
        nonlocal sequence
        one.send(1, [sequence])
        sequence += 1
        return window.over(0.3)

    subscriber.peer.wait(talking, "the end of the window")
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: sequence}, quiet_s=0.3)
    # Due at 0.2, 0.4, 0.6 and 0.8 s.
    assert (report.reconnects, one.subscriptions, one.present) == (4, 5, 1)
    assert 1 <= len(report.absent) <= 4
    for begin_ns, end_ns in report.absent:
        assert window.start_ns < begin_ns < end_ns <= window.stop_ns + 1_000_000_000
    ledger = only_ledger(report)
    assert ledger.received + ledger.missing == sequence
    assert ledger.duplicates == 0


def test_after_reconnecting_a_plain_step_is_plain(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, settings=with_values(DEEP, reconnect_rate=20.0))
    window = subscriber.start([CLIENT], 1, 0.2)
    subscriber.await_end(window)
    subscriber.subscriber_report(CLIENT, 1, {ONE: 0})
    made = one.subscriptions
    subscriber.configure_subscribers([CLIENT], 2, DEEP, publishers=endpoints(one), progress_s=0.02)

    def probing() -> bool:
        one.probe(2)
        return bool(subscriber.peer.said(Ready, CLIENT, epoch=2))

    subscriber.peer.wait(probing, "ready")
    running(subscriber, 2)
    one.send(2, range(100))
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 100})
    assert (report.reconnects, report.absent, only_ledger(report).missing) == (0, [], 0)
    assert one.subscriptions <= made + 1


def test_progress_counts_messages(subscriber: Bench) -> None:
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one, progress_s=0.1)
    window = running(subscriber, 1)
    one.send(1, range(30))
    got(subscriber, 1, 30)
    told = subscriber.peer.said(Progress, CLIENT, epoch=1)
    assert told[-1].messages == 30
    assert abs(told[-1].time_ns - window.now_ns()) < 2_000_000_000


def test_a_finish_that_waited_with_the_next_configure(subscriber: Bench) -> None:
    """The controller gave it again before the report came: both are read at once, and the report is no more."""
    (one,) = speakers(subscriber, ONE)
    connected(subscriber, 1, one)
    running(subscriber, 1)
    one.send(1, range(10))
    subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    (first,) = subscriber.peer.said(Report, CLIENT, epoch=1)
    pid = subscriber.peer.process(CLIENT).pid
    os.kill(pid, signal.SIGSTOP)
    for _ in range(2):
        subscriber.tell_finish([CLIENT], 1, {ONE: 10})
    subscriber.tell_configure([CLIENT], 2, DEEP, publishers=endpoints(one))
    # What the socket of a stopped process has taken is not seen from here; the answers to all of it are.
    os.kill(pid, signal.SIGCONT)
    connected(subscriber, 2, one)
    subscriber.peer.sync([CLIENT])
    assert not subscriber.peer.said(ChildExit)
    assert all(same_answer(first, again) for again in subscriber.peer.said(Report, CLIENT))
