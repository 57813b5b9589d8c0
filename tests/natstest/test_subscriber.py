"""What a NATS subscriber must do: count exactly, report what it left waiting, and how often it was too slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hydra.model import LedgerCounts
from hydra.system.local_server import LocalServer
from hydra.wire.messages import Ack, Error, Ready
from tests.conformance.bench import Bench, StepSettings, Window, step_settings, with_values
from tests.natstest.ends import Core, Ends, Stream, stopped
from tests.servers.running import kill, progressed
from tests.suite.waiting import wait_until

CLIENT = 3
ONE, OTHER, STRANGER = 100, 101, 666
PLAIN = step_settings()


@pytest.fixture(scope="module")
def subscriber(shared_bench: Bench, nats_client: str) -> Bench:
    shared_bench.launch(nats_client, "nats-sub", first_id=CLIENT)
    return shared_bench


def connected(
    bench: Bench,
    epoch: int,
    ends: Ends,
    *publishers: int,
    settings: StepSettings = PLAIN,
    system: Mapping[str, Any] | None = None,
) -> None:
    """Configures the subscriber from here on and proves that it hears these publishers."""
    bench.configure_subscribers(
        [CLIENT],
        epoch,
        settings,
        publishers=dict.fromkeys(publishers, ""),
        system={**ends.system(), **(system or {})},
        progress_s=0.05,
    )
    for publisher in publishers:
        ends.probe(epoch, publisher=publisher)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def began(bench: Bench, epoch: int, ends: Ends, *publishers: int) -> Window:
    """It is connected, and its window is longer than the test."""
    connected(bench, epoch, ends, *publishers)
    return bench.start([CLIENT], epoch, 30)


def test_it_counts_from_its_start_on(subscriber: Bench, epoch: int, data: Ends) -> None:
    data.write(epoch, range(40), publisher=ONE)
    began(subscriber, epoch, data, ONE)
    data.write(epoch, range(40, 100), publisher=ONE)
    report = subscriber.subscriber_report(CLIENT, epoch, {ONE: 100}, system=data.end_of_data())
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=60, in_window=60, missing=40, missing_ranges=[(0, 39)])
    ]
    assert (report.stale, report.undrained, report.drain) == (0, 0, "complete")
    assert report.system == {"slow_consumers": 0, "dropped": 0, "disconnects": 0}


def test_duplicates_strangers_and_failed_messages_are_told_exactly(subscriber: Bench, epoch: int, data: Ends) -> None:
    began(subscriber, epoch, data, ONE, OTHER)
    data.write(epoch, range(50), publisher=ONE)
    data.write(epoch, [20, 21], publisher=ONE)
    data.write(epoch - 1, range(3), publisher=ONE)
    data.write(epoch, range(4), publisher=STRANGER)
    data.write(epoch, range(2, 30), publisher=OTHER)
    lost: dict[int, list[tuple[int, int]]] = {ONE: [(45, 59)], OTHER: [(0, 0)]}
    sent, end = {ONE: 60, OTHER: 30}, data.end_of_data()
    report = subscriber.subscriber_report(CLIENT, epoch, sent, unacknowledged=lost, system=end)
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=45, in_window=45, missing=0, duplicates=2, extra=5),
        LedgerCounts(publisher=OTHER, received=28, in_window=28, missing=1, missing_ranges=[(1, 1)]),
    ]
    assert report.stale == 7


@pytest.mark.parametrize("consumer", ["push", "pull"])
def test_what_is_left_waiting_is_told(subscriber: Bench, epoch: int, stream: Stream, consumer: str) -> None:
    slow = with_values(PLAIN, receive_rate=100.0)
    connected(subscriber, epoch, stream, ONE, settings=slow, system={"consumer": consumer})
    window = subscriber.start([CLIENT], epoch, 0.2)
    stream.write(epoch, range(4000), publisher=ONE)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, epoch, {ONE: 4000}, system=stream.end_of_data(), drain_max_s=0.0)
    (ledger,) = report.ledgers
    assert report.drain == "deadline"
    assert ledger.received + ledger.missing == 4000
    assert 1_000 < report.undrained == ledger.missing


def test_a_slow_consumer_is_a_figure(subscriber: Bench, epoch: int, core: Core) -> None:
    """The library keeps no more for it than its limit, and throws the rest away."""
    slow = with_values(PLAIN, receive_rate=10.0)
    connected(subscriber, epoch, core, ONE, settings=slow, system={"pending_messages": 100})
    window = subscriber.start([CLIENT], epoch, 0.2)
    core.write(epoch, range(4000), publisher=ONE)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, epoch, {ONE: 4000}, quiet_s=0.1)
    (ledger,) = report.ledgers
    assert (report.system or {})["slow_consumers"] >= 1
    assert (report.system or {})["dropped"] == ledger.missing > 0


@pytest.mark.tier("all")
def test_a_reconnect_goes_on_where_it_stood(subscriber: Bench, epoch: int, stream: Stream) -> None:
    connected(subscriber, epoch, stream, ONE, settings=with_values(PLAIN, reconnect_rate=2.0))
    window = subscriber.start([CLIENT], epoch, 1.3)
    for first in range(0, 500, 100):
        stream.write(epoch, range(first, first + 100), publisher=ONE)
        subscriber.await_end(window, first / 400 - 1.25)
    subscriber.await_end(window)
    report = subscriber.subscriber_report(CLIENT, epoch, {ONE: 500}, system=stream.end_of_data(), drain_max_s=15)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing, ledger.duplicates) == (500, 0, 0)
    assert 1 <= report.reconnects <= 2  # due at 0.5 and 1 s, if the machine is that fast
    assert 1 <= len(report.absent) <= 2
    assert (report.system or {})["disconnects"] == 0


def test_it_leaves_one_consumer_on_the_stream(subscriber: Bench, epoch: int, stream: Stream) -> None:
    for number in range(3):
        connected(subscriber, epoch + number, stream, ONE, system={"max_ack_pending": 100 + number})
    assert stream.consumers() == 1


def test_a_stream_that_does_not_exist_is_an_error_and_not_the_end(
    subscriber: Bench, epoch: int, stream: Stream
) -> None:
    window = began(subscriber, epoch, stream, ONE)
    stream.write(epoch, range(5), publisher=ONE)
    progressed(subscriber, CLIENT, epoch, 5)
    bad = {**stream.system(), "stream": "there-is-none"}
    subscriber.send_configure([CLIENT], epoch + 1, PLAIN, publishers={ONE: ""}, system=bad)
    error = subscriber.peer.heard(Error, [CLIENT], epoch=epoch + 1)
    assert ("there-is-none" in error.message, error.fatal) == (True, False)
    subscriber.ignores_commands(CLIENT, (epoch, epoch + 1), window)
    connected(subscriber, epoch + 1, stream, ONE)


def test_no_subject_at_all_is_an_error(subscriber: Bench, epoch: int) -> None:
    subscriber.send_configure([CLIENT], epoch, publishers={ONE: ""})
    assert subscriber.peer.heard(Error, [CLIENT], epoch=epoch).message
    assert not subscriber.peer.messages_of(Ack, epoch=epoch, command="configure")


@pytest.mark.tier("all")
def test_a_server_that_dies_does_not_hang_the_drain(bench: Bench, nats_client: str, own_server: LocalServer) -> None:
    subscriber = bench
    bench.launch(nats_client, "nats-sub", first_id=CLIENT)
    with Stream(own_server.address) as stream:
        connected(subscriber, 1, stream, ONE)
        window = subscriber.start([CLIENT], 1, 0.5)
        stream.write(1, range(100), publisher=ONE)
        last = stream.last()
        progressed(subscriber, CLIENT, 1, 100)
        kill(own_server)
        subscriber.await_end(window)
        report = subscriber.subscriber_report(CLIENT, 1, {ONE: 150}, system={"last": last + 50}, drain_max_s=1.5)
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing_ranges) == (100, [(100, 149)])
    assert (report.undrained, report.drain) == (50, "deadline")
    assert (report.system or {})["disconnects"] >= 1
    ((_, back_ns, _),) = (report.system or {})["connection"]["disconnections"]
    assert back_ns == 0
    subscriber.peer.sync([CLIENT])


def test_what_a_stream_sends_again_is_a_duplicate(subscriber: Bench, epoch: int, stream: Stream) -> None:
    """Pushed ones: a consumer that is pulled sends nothing again before it is asked."""
    began(subscriber, epoch, stream, ONE)
    stream.expect_acks_within(0.3)
    (program,) = subscriber.groups
    with stopped(program.members()):
        stream.write(epoch, range(50), publisher=ONE)
        wait_until(lambda: stream.sent_again() == 50, "all 50 again", saw=stream.sent_again)
    progressed(subscriber, CLIENT, epoch, 100)  # otherwise the drain may end before the second ones are read
    report = subscriber.subscriber_report(CLIENT, epoch, {ONE: 50}, system=stream.end_of_data())
    (ledger,) = report.ledgers
    assert (ledger.received, ledger.missing) == (50, 0)
    assert ledger.duplicates >= 50
