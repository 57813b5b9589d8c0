"""What a ZMQ subscriber must do: keep an exact ledger."""

from __future__ import annotations

from dataclasses import replace

from hydra.control.epoch_replies import fit_unacknowledged
from hydra.model import Histogram, LedgerCounts, ProcessUsage, PublisherReport
from hydra.wire.messages import Ack
from hydra.wire.report_validation import MAX_UNACKNOWLEDGED_RANGES
from tests.conformance.bench import CLIENT, ONE, OTHER, STRANGER, Bench, Window
from tests.conformance.peer import Account
from tests.conformance.zmq_subscribing import begun, connected, got, only_ledger, running, speakers


def test_a_whole_stream_in_order(subscriber: Bench) -> None:
    one, window = begun(subscriber)
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
        LedgerCounts(ONE, 89, 89, 11, [(10, 19), (50, 50)], duplicates=4, reordered=1),
        LedgerCounts(OTHER, 5, 5, 5, [(0, 2), (8, 9)]),
    ]
    assert report.stale == 12
    assert report.drain == "quiet"


def test_what_was_never_acknowledged_is_not_expected(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, [n for n in range(100) if n not in (7, 8, 30)])
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 100}, unacknowledged={ONE: [(8, 9), (40, 44)]})
    # Expected are 93; 7 and 30 of them are missing. 9 and 40 … 44 came although they were not acknowledged.
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
    reported = fit_unacknowledged({p.publisher: replace(body, unacknowledged=ranges) for p in publishers})
    assert all(report.unacknowledged_joined for report in reported.values())
    for one in publishers:
        one.send(1, range(10))
    report = subscriber.subscriber_report(
        CLIENT, 1, dict.fromkeys(reported, 2**62), unacknowledged={p: r.unacknowledged for p, r in reported.items()}
    )
    assert [(x.received, x.missing) for x in report.ledgers] == [(10, 0)] * 4


def test_the_list_of_missing_ranges_is_bounded_and_says_so(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, range(1, 1200, 2))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 1200})
    ledger = only_ledger(report)
    assert (ledger.received, ledger.missing, ledger.truncated) == (600, 600, True)
    assert ledger.missing_ranges == [(n, n) for n in range(0, 512, 2)]


def test_a_publisher_that_sent_nothing(subscriber: Bench) -> None:
    begun(subscriber)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 0})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=0, in_window=0, missing=0)
    assert (report.batches, report.first_ns, report.last_ns, report.latency.counts) == (0, 0, 0, [])


def test_late_messages_count_as_received_and_not_in_the_window(subscriber: Bench) -> None:
    one, window = begun(subscriber, 1, 1.0)
    one.send(1, range(50))
    got(subscriber, 1, 50)
    subscriber.await_end(window, 0.05)
    subscriber.stop([CLIENT], 1, window)
    one.send(1, range(50, 80))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 80})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=80, in_window=50, missing=0)
    assert report.last_ns > window.stop_ns


def test_an_early_stop_moves_the_end_of_the_window(subscriber: Bench) -> None:
    one, window = begun(subscriber, 1, 30.0)
    one.send(1, range(50))
    got(subscriber, 1, 50)
    subscriber.stop([CLIENT], 1, Window(window.start_ns, window.now_ns(), window.offset_ns))
    subscriber.peer.heard(Ack, [CLIENT], epoch=1, command="stop")
    one.send(1, range(50, 80))
    assert only_ledger(subscriber.subscriber_report(CLIENT, 1, {ONE: 80})).in_window == 50


def test_the_next_configure_closes_the_ledger(subscriber: Bench) -> None:
    one, _ = begun(subscriber)
    one.send(1, range(10))
    got(subscriber, 1, 10)
    connected(subscriber, 2, one)
    running(subscriber, 2)
    one.send(1, range(10, 14))
    one.send(2, range(20))
    got(subscriber, 2, 20)
    subscriber.send_finish([CLIENT], 1, {ONE: 14})
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 20})
    assert only_ledger(report) == LedgerCounts(publisher=ONE, received=20, in_window=20, missing=0)
    assert report.stale == 4
    assert not subscriber.peer.messages_of(Account, epoch=1)
