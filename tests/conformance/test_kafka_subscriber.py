"""What a Kafka subscriber must do: every message from the start offset on, exactly, and say what it left waiting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.model import LedgerCounts
from hydra.wire.messages import Ack, Error, Progress, Ready, Report
from tests.conformance.bench import Bench, StepSettings, same_answer, step_settings, with_values
from tests.conformance.kafka_ends import IMPOSSIBLE, Log, kill

CLIENT = 3
ONE, OTHER, STRANGER = 100, 101, 666
PLAIN = step_settings()
SLOW = 20.0


@pytest.fixture
def subscriber(bench: Bench, kafka_client: str) -> Bench:
    bench.launch(kafka_client, "kafka-sub", first_id=CLIENT)
    return bench


def connected(bench: Bench, epoch: int, log: Log, *publishers: int, settings: StepSettings = PLAIN) -> None:
    """Configures the subscriber from the log's end on and proves that it hears these publishers."""
    bench.configure_subscribers(
        [CLIENT],
        epoch,
        settings,
        publishers=dict.fromkeys(publishers, ""),
        system=log.from_here(),
        progress_s=0.05,
        timeout_s=SLOW,
    )
    for publisher in publishers:
        log.probe(epoch, publisher=publisher)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch, timeout_s=SLOW)


def got(bench: Bench, epoch: int, messages: int) -> None:
    bench.peer.wait(
        lambda: any(p.messages >= messages for p in bench.peer.said(Progress, CLIENT, epoch=epoch)),
        f"progress of {messages} messages",
    )


def test_it_counts_from_its_start_offset_on(subscriber: Bench, wide_log: Log) -> None:
    wide_log.write(1, range(40), publisher=ONE)
    connected(subscriber, 1, wide_log, ONE)
    subscriber.start([CLIENT], 1, 30)
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
    subscriber.configure_subscribers([CLIENT], 1, publishers={ONE: ""}, system=start, timeout_s=SLOW)
    subscriber.peer.heard(Ready, [CLIENT], epoch=1, timeout_s=SLOW)
    subscriber.start([CLIENT], 1, 30)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 500}, system=log.end_of_data())
    assert [(x.received, x.missing, x.duplicates) for x in report.ledgers] == [(500, 0, 0)]
    assert report.stale == 0


def test_the_offset_of_every_partition_is_its_own(subscriber: Bench, wide_log: Log) -> None:
    wide_log.write(1, range(40), publisher=ONE)
    wide_log.probe(1, publisher=ONE)
    # Partition p holds p, p + 4, …; of partition 1 the first three are left out, of 2 all ten.
    subscriber.configure_subscribers(
        [CLIENT], 1, publishers={ONE: ""}, system=wide_log.at({0: 0, 1: 3, 2: 10, 3: 0}), timeout_s=SLOW
    )
    subscriber.peer.heard(Ready, [CLIENT], epoch=1, timeout_s=SLOW)
    subscriber.start([CLIENT], 1, 30)
    (ledger,) = subscriber.subscriber_report(CLIENT, 1, {ONE: 40}, system=wide_log.end_of_data()).ledgers
    missing = sorted(n for first, last in ledger.missing_ranges for n in range(first, last + 1))
    assert missing == sorted([1, 5, 9, *range(2, 40, 4)])


def test_the_last_sequence_does_not_end_the_drain_of_other_partitions(subscriber: Bench, wide_log: Log) -> None:
    connected(subscriber, 1, wide_log, ONE)
    subscriber.start([CLIENT], 1, 30)
    wide_log.write(1, [4999], publisher=ONE, partition=3)
    got(subscriber, 1, 1)
    wide_log.write(1, range(4999), publisher=ONE, partition=0, size=1000)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 5000}, system=wide_log.end_of_data())
    assert [(x.received, x.missing) for x in report.ledgers] == [(5000, 0)]
    assert (report.undrained, report.drain) == (0, "complete")


def test_duplicates_strangers_and_failed_messages_are_told_exactly(subscriber: Bench, log: Log) -> None:
    connected(subscriber, 6, log, ONE, OTHER)
    subscriber.start([CLIENT], 6, 30)
    log.write(6, range(50), publisher=ONE)
    log.write(6, [20, 21], publisher=ONE)
    log.write(5, range(3), publisher=ONE)
    log.write(6, range(4), publisher=STRANGER)
    log.write(6, range(2, 30), publisher=OTHER)
    subscriber.tell_finish(
        [CLIENT],
        6,
        {ONE: 60, OTHER: 30},
        unacknowledged={ONE: [(45, 59)], OTHER: [(0, 0)]},
        system=log.end_of_data(),
    )
    report = subscriber.peer.heard(Report, [CLIENT], epoch=6, timeout_s=SLOW).subscriber
    assert report is not None
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=45, in_window=45, missing=0, duplicates=2, extra=5),
        LedgerCounts(publisher=OTHER, received=28, in_window=28, missing=1, missing_ranges=[(1, 1)]),
    ]
    assert report.stale == 7


def test_steps_follow_each_other(subscriber: Bench, wide_log: Log) -> None:
    connected(subscriber, 1, wide_log, ONE)
    subscriber.start([CLIENT], 1, 30)
    wide_log.write(1, range(100), publisher=ONE)
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 100}, system=wide_log.end_of_data()).ledgers[0].missing == 0
    # What nobody is to count comes in between; the next start offset lies behind it.
    wide_log.write(1, range(100, 150), publisher=ONE)
    connected(subscriber, 2, wide_log, ONE)
    subscriber.start([CLIENT], 2, 30)
    wide_log.write(2, range(80), publisher=ONE)
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 80}, system=wide_log.end_of_data())
    assert [(x.received, x.missing, x.duplicates, x.extra) for x in report.ledgers] == [(80, 0, 0, 0)]
    subscriber.tell_finish([CLIENT], 2, {ONE: 80}, system=wide_log.end_of_data())
    subscriber.peer.heard(Report, [CLIENT], epoch=2, times=2)
    assert same_answer(*subscriber.peer.said(Report, CLIENT, epoch=2))


def test_what_is_left_waiting_is_told(subscriber: Bench, log: Log) -> None:
    connected(subscriber, 1, log, ONE, settings=with_values(PLAIN, receive_rate=100.0))
    window = subscriber.start([CLIENT], 1, 0.5)
    log.write(1, range(20_000), publisher=ONE)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 20_000}, system=log.end_of_data(), drain_max_s=0.0)
    (ledger,) = report.ledgers
    assert report.drain == "deadline"
    assert ledger.received + ledger.missing == 20_000
    assert 1_000 < report.undrained == ledger.missing


def test_a_receive_rate_holds_it_back_until_the_drain(subscriber: Bench, log: Log) -> None:
    connected(subscriber, 1, log, ONE, settings=with_values(PLAIN, receive_rate=200.0))
    window = subscriber.start([CLIENT], 1, 1.0)
    log.write(1, range(2000), publisher=ONE)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 2000}, system=log.end_of_data())
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing) == (2000, 0)
    assert 100 <= ledger.in_window <= 205


def test_a_fetch_is_answered_when_there_is_enough_or_after_its_time(subscriber: Bench, log: Log) -> None:
    connected(subscriber, 1, log, ONE, settings=with_values(PLAIN, fetch_min_bytes=1_000_000, fetch_wait_max_ms=2000))
    window = subscriber.start([CLIENT], 1, 2.0)
    for n in range(10):
        log.write(1, [n], publisher=ONE)
        subscriber.await_end(window, n / 10 - 1.9)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 10}, system=log.end_of_data())
    assert [ledger.missing for ledger in report.ledgers] == [0]
    # At the defaults it is one batch a message.
    assert report.batches <= 2


def test_a_reconnect_goes_on_where_it_stood(subscriber: Bench, wide_log: Log) -> None:
    connected(subscriber, 1, wide_log, ONE, settings=with_values(PLAIN, reconnect_rate=2.0))
    window = subscriber.start([CLIENT], 1, 1.3)
    for first in range(0, 500, 100):
        wide_log.write(1, range(first, first + 100), publisher=ONE)
        subscriber.await_end(window, first / 400 - 1.25)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 500}, system=wide_log.end_of_data(), drain_max_s=15)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing, ledger.duplicates) == (500, 0, 0)
    assert report.reconnects == 2
    assert 1 <= len(report.absent) <= 2


def test_an_offset_that_does_not_exist_is_an_error(subscriber: Bench, log: Log) -> None:
    log.write(1, range(10), publisher=ONE)
    subscriber.tell_configure([CLIENT], 1, publishers={ONE: ""}, system=log.at({0: 10**6}))
    assert subscriber.peer.heard(Error, [CLIENT], timeout_s=SLOW).message


def test_a_configure_that_fails_in_the_middle_is_an_error_and_not_the_end(subscriber: Bench, log: Log) -> None:
    """Nothing is left to read with: what belongs to the step before must not try."""
    connected(subscriber, 1, log, ONE)
    window = subscriber.start([CLIENT], 1, 30)
    log.write(1, range(5), publisher=ONE)
    got(subscriber, 1, 5)
    bad = {**log.from_here(), "properties": IMPOSSIBLE}
    subscriber.tell_configure([CLIENT], 2, PLAIN, publishers={ONE: ""}, system=bad)
    assert not subscriber.peer.heard(Error, [CLIENT], epoch=2, timeout_s=SLOW).fatal
    subscriber.ignores_commands(CLIENT, (1, 2), window)
    connected(subscriber, 2, log, ONE)


def test_no_topic_at_all_is_an_error(subscriber: Bench) -> None:
    subscriber.tell_configure([CLIENT], 1, publishers={ONE: ""})
    assert subscriber.peer.heard(Error, [CLIENT], epoch=1).message
    assert not subscriber.peer.said(Ack, command="configure")


@pytest.mark.parametrize(
    "more",
    [
        {"offset": {0: 0}},
        {"acks": "2"},
        {"linger_ms": -1},
        {"msg_batch": 2**63},
        {"offsets": {"-1": 0}},
        {"offsets": {"01": 0}},
        {"offsets": {"2147483648": 0}},
    ],
)
def test_what_the_system_does_not_know_is_refused_by_name(subscriber: Bench, log: Log, more: dict[str, object]) -> None:
    subscriber.tell_configure([CLIENT], 1, publishers={ONE: ""}, system={**log.from_here(), **more})
    error = subscriber.peer.heard(Error, [CLIENT], epoch=1)
    assert next(iter(more)) in error.message
    assert not error.fatal


def test_a_finish_that_cannot_be_read_is_an_error_and_not_the_end(subscriber: Bench, log: Log) -> None:
    connected(subscriber, 1, log, ONE)
    subscriber.start([CLIENT], 1, 30)
    log.write(1, range(5), publisher=ONE)
    subscriber.tell_finish([CLIENT], 1, {ONE: 5}, system={"end_offset": {}})
    error = subscriber.peer.heard(Error, [CLIENT], epoch=1)
    assert "end_offset" in error.message
    assert not error.fatal
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 5}, system=log.end_of_data())
    assert [x.received for x in report.ledgers] == [5]


def test_a_broker_that_dies_does_not_hang_the_drain(subscriber: Bench, own_broker: EmbeddedBroker) -> None:
    log = Log(own_broker, 1)
    connected(subscriber, 1, log, ONE)
    window = subscriber.start([CLIENT], 1, 0.5)
    log.write(1, range(100), publisher=ONE)
    end = log.end()
    got(subscriber, 1, 100)
    kill(own_broker)
    subscriber.await_end(window)
    waiting = {partition: offset + 50 for partition, offset in end.items()}
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 150}, system={"end_offsets": waiting}, drain_max_s=1.5)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing_ranges) == (100, [(100, 149)])
    assert (report.undrained, report.drain) == (50, "deadline")
    assert subscriber.peer.sync([CLIENT]) < 3.0
