"""What a Kafka subscriber must do: every message from the start offset on, exactly, and report what it left waiting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.kafkatest.broker import LocalBroker
from hydra.model import LedgerCounts
from hydra.wire.messages import Ack, Error, Ready
from tests.conformance.bench import CLIENT, ONE, OTHER, STRANGER, Bench, StepSettings, Window, with_values
from tests.conformance.conftest import Share
from tests.conformance.kafka_ends import IMPOSSIBLE, Log, kill
from tests.conformance.zmq_subscribing import got

PLAIN = StepSettings()


@pytest.fixture
def subscriber(share: Share, kafka_client: str) -> Bench:
    return share(kafka_client, "kafka-sub")


def connected(bench: Bench, epoch: int, log: Log, *publishers: int, settings: StepSettings = PLAIN) -> None:
    """Configures the subscriber from the log's end on and proves that it hears these publishers."""
    bench.configure_subscribers(
        [CLIENT], epoch, settings, publishers=dict.fromkeys(publishers, ""), system=log.from_here(), progress_s=0.05
    )
    for publisher in publishers:
        log.probe(epoch, publisher=publisher)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def begun(
    bench: Bench, epoch: int, log: Log, *publishers: int, settings: StepSettings = PLAIN, seconds: float = 30.0
) -> Window:
    """The same, in a window."""
    connected(bench, epoch, log, *publishers, settings=settings)
    return bench.start([CLIENT], epoch, seconds)


def test_it_counts_from_its_start_offset_on(subscriber: Bench, wide_log: Log) -> None:
    wide_log.write(1, range(40), publisher=ONE)
    begun(subscriber, 1, wide_log, ONE)
    wide_log.write(1, range(40, 100), publisher=ONE)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 100}, system=wide_log.end_of_data())
    # Partitions are not in order with each other.
    assert [replace(x, reordered=0) for x in report.ledgers] == [
        LedgerCounts(publisher=ONE, received=60, in_window=60, missing=40, missing_ranges=[(0, 39)])
    ]
    assert (report.stale, report.undrained, report.drain) == (0, 0, "complete")


def test_nothing_is_missed_between_configure_and_the_first_fetch(subscriber: Bench, log: Log) -> None:
    log.write(9, range(10), publisher=ONE)
    start = log.from_here()
    log.probe(1, publisher=ONE)
    log.write(1, range(500), publisher=ONE)
    subscriber.configure_subscribers([CLIENT], 1, publishers={ONE: ""}, system=start)
    subscriber.peer.heard(Ready, [CLIENT], epoch=1)
    subscriber.start([CLIENT], 1, 30)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 500}, system=log.end_of_data())
    assert [(x.received, x.missing, x.duplicates) for x in report.ledgers] == [(500, 0, 0)]
    assert report.stale == 0


def test_the_offset_of_every_partition_is_its_own(subscriber: Bench, wide_log: Log) -> None:
    wide_log.write(1, range(40), publisher=ONE)
    wide_log.probe(1, publisher=ONE)
    # Partition p holds p, p + 4, …; of partition 1 the first three are left out, of 2 all ten.
    subscriber.configure_subscribers([CLIENT], 1, publishers={ONE: ""}, system=wide_log.at({0: 0, 1: 3, 2: 10, 3: 0}))
    subscriber.peer.heard(Ready, [CLIENT], epoch=1)
    subscriber.start([CLIENT], 1, 30)
    (ledger,) = subscriber.subscriber_report(CLIENT, 1, {ONE: 40}, system=wide_log.end_of_data()).ledgers
    missing = sorted(n for first, last in ledger.missing_ranges for n in range(first, last + 1))
    assert missing == sorted([1, 5, 9, *range(2, 40, 4)])


def test_the_last_sequence_does_not_end_the_drain_of_other_partitions(subscriber: Bench, wide_log: Log) -> None:
    begun(subscriber, 1, wide_log, ONE)
    wide_log.write(1, [1999], publisher=ONE, partition=3)
    got(subscriber, 1, 1)
    wide_log.write(1, range(1999), publisher=ONE, partition=0, size=1000)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 2000}, system=wide_log.end_of_data())
    assert [(x.received, x.missing) for x in report.ledgers] == [(2000, 0)]
    assert (report.undrained, report.drain) == (0, "complete")


def test_duplicates_strangers_and_failed_messages_are_told_exactly(subscriber: Bench, log: Log) -> None:
    begun(subscriber, 6, log, ONE, OTHER)
    log.write(6, range(50), publisher=ONE)
    log.write(6, [20, 21], publisher=ONE)
    log.write(5, range(3), publisher=ONE)
    log.write(6, range(4), publisher=STRANGER)
    log.write(6, range(2, 30), publisher=OTHER)
    unacknowledged = {ONE: [(45, 59)], OTHER: [(0, 0)]}
    report = subscriber.subscriber_report(
        CLIENT, 6, {ONE: 60, OTHER: 30}, unacknowledged=unacknowledged, system=log.end_of_data()
    )
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=45, in_window=45, missing=0, duplicates=2, extra=5),
        LedgerCounts(publisher=OTHER, received=28, in_window=28, missing=1, missing_ranges=[(1, 1)]),
    ]
    assert report.stale == 7


def test_steps_follow_each_other(subscriber: Bench, wide_log: Log) -> None:
    begun(subscriber, 1, wide_log, ONE)
    wide_log.write(1, range(100), publisher=ONE)
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 100}, system=wide_log.end_of_data()).ledgers[0].missing == 0
    # Records that must not count come in between; the next start offset lies behind it.
    wide_log.write(1, range(100, 150), publisher=ONE)
    begun(subscriber, 2, wide_log, ONE)
    wide_log.write(2, range(80), publisher=ONE)
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 80}, system=wide_log.end_of_data())
    assert [(x.received, x.missing, x.duplicates, x.extra) for x in report.ledgers] == [(80, 0, 0, 0)]
    subscriber.send_finish([CLIENT], 2, {ONE: 80}, system=wide_log.end_of_data())
    subscriber.reports_again(CLIENT, 2)


def test_what_is_left_waiting_is_told(subscriber: Bench, log: Log) -> None:
    window = begun(subscriber, 1, log, ONE, settings=with_values(PLAIN, receive_rate=100.0), seconds=0.3)
    log.write(1, range(5_000), publisher=ONE)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 5_000}, system=log.end_of_data(), drain_max_s=0.0)
    (ledger,) = report.ledgers
    assert report.drain == "deadline"
    assert ledger.received + ledger.missing == 5_000
    assert 1_000 < report.undrained == ledger.missing


def test_a_receive_rate_holds_it_back_until_the_drain(subscriber: Bench, log: Log) -> None:
    window = begun(subscriber, 1, log, ONE, settings=with_values(PLAIN, receive_rate=200.0), seconds=0.5)
    log.write(1, range(1000), publisher=ONE)
    subscriber.await_end(window)
    (ledger,) = subscriber.subscriber_report(CLIENT, 1, {ONE: 1000}, system=log.end_of_data()).ledgers
    assert (ledger.received, ledger.missing) == (1000, 0)
    assert 0 < ledger.in_window <= 105


def test_a_fetch_is_answered_when_there_is_enough_or_after_its_time(subscriber: Bench, log: Log) -> None:
    lazy = with_values(PLAIN, fetch_min_bytes=1_000_000, fetch_wait_max_ms=3000)
    window = begun(subscriber, 1, log, ONE, settings=lazy, seconds=1.0)
    for n in range(10):
        log.write(1, [n], publisher=ONE)
        subscriber.await_moment(window, (n + 1) / 20)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 10}, system=log.end_of_data(), drain_max_s=15)
    assert [ledger.missing for ledger in report.ledgers] == [0]
    # At the defaults it is one batch a message.
    assert report.batches <= 2


def test_a_reconnect_goes_on_where_it_stood(subscriber: Bench, wide_log: Log) -> None:
    window = begun(subscriber, 1, wide_log, ONE, settings=with_values(PLAIN, reconnect_rate=1.0), seconds=2.9)
    for first in range(0, 500, 100):
        wide_log.write(1, range(first, first + 100), publisher=ONE)
        subscriber.await_moment(window, first / 200)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 500}, system=wide_log.end_of_data(), drain_max_s=15)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing, ledger.duplicates) == (500, 0, 0)
    assert report.reconnects == 2  # due at 1 and 2 s
    assert 1 <= len(report.absent) <= 2


def test_an_offset_that_does_not_exist_is_an_error(bench: Bench, kafka_client: str, log: Log) -> None:
    bench.launch(kafka_client, "kafka-sub", first_id=CLIENT)
    log.write(1, range(10), publisher=ONE)
    bench.send_configure([CLIENT], 1, publishers={ONE: ""}, system=log.at({0: 10**6}))
    assert bench.peer.heard(Error, [CLIENT]).message


def test_a_configure_that_fails_in_the_middle_is_an_error_and_not_the_end(subscriber: Bench, log: Log) -> None:
    """Nothing is left to read with: what belongs to the step before must not try."""
    window = begun(subscriber, 1, log, ONE)
    log.write(1, range(5), publisher=ONE)
    got(subscriber, 1, 5)
    bad = {**log.from_here(), "properties": IMPOSSIBLE}
    subscriber.send_configure([CLIENT], 2, PLAIN, publishers={ONE: ""}, system=bad)
    subscriber.hears_why_not(CLIENT, 2)
    subscriber.ignores_commands(CLIENT, (1, 2), window)
    connected(subscriber, 2, log, ONE)


def test_no_topic_at_all_is_an_error(subscriber: Bench) -> None:
    subscriber.send_configure([CLIENT], 1, publishers={ONE: ""})
    subscriber.hears_why_not(CLIENT, 1)
    assert not subscriber.peer.messages_of(Ack, command="configure")


@pytest.mark.parametrize(
    "more",
    [
        *({"offset": {0: 0}}, {"acks": "2"}, {"linger_ms": -1}, {"msg_batch": 2**63}),
        *({"offsets": {partition: 0}} for partition in ("-1", "01", "2147483648")),
    ],
)
def test_what_the_system_does_not_know_is_refused_by_name(subscriber: Bench, log: Log, more: dict[str, object]) -> None:
    subscriber.send_configure([CLIENT], 1, publishers={ONE: ""}, system={**log.from_here(), **more})
    subscriber.hears_why_not(CLIENT, 1, next(iter(more)))


def test_a_finish_that_cannot_be_read_is_an_error_and_not_the_end(subscriber: Bench, log: Log) -> None:
    begun(subscriber, 1, log, ONE)
    log.write(1, range(5), publisher=ONE)
    subscriber.send_finish([CLIENT], 1, {ONE: 5}, system={"end_offset": {}})
    subscriber.hears_why_not(CLIENT, 1, "end_offset")
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 5}, system=log.end_of_data())
    assert [x.received for x in report.ledgers] == [5]


@pytest.mark.tier("all")
def test_a_broker_that_dies_does_not_hang_the_drain(
    bench: Bench, kafka_client: str, own_broker: LocalBroker, own_log: Log
) -> None:
    bench.launch(kafka_client, "kafka-sub", first_id=CLIENT)
    window = begun(bench, 1, own_log, ONE, seconds=0.5)
    own_log.write(1, range(100), publisher=ONE)
    end = own_log.end()
    got(bench, 1, 100)
    kill(own_broker)
    bench.await_end(window)
    waiting = {partition: offset + 50 for partition, offset in end.items()}
    report = bench.subscriber_report(CLIENT, 1, {ONE: 150}, system={"end_offsets": waiting}, drain_max_s=1.5)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing_ranges) == (100, [(100, 149)])
    assert (report.undrained, report.drain) == (50, "deadline")
    bench.peer.sync([CLIENT])
