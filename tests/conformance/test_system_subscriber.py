"""What a subscriber of any system must do: prove its path, keep an exact account, drain, connect again.

Some cases are of tier("all"): tests/conformance/systems.py.
"""

from __future__ import annotations

from itertools import count

from hydra.model import LedgerCounts
from hydra.wire.messages import Ready
from hydra.wire.traffic import client_topics, topic_choice
from tests.conformance.bench import CLIENT, ONE, OTHER, STRANGER
from tests.conformance.system_stage import Subject, SystemStep
from tests.conformance.systems import each
from tests.conformance.zmq_subscribing import got


def alone(subject: Subject) -> bool:
    """Whether each subscriber has all messages."""
    return not subject.group


@each(alone)
def test_it_is_ready_when_every_publisher_was_heard_in_this_epoch(subscribing: SystemStep) -> None:
    bench = subscribing.bench
    settings, more = subscribing.prepared()
    bench.configure_subscribers([CLIENT], 4, settings, publishers={ONE: "", OTHER: ""}, **more)
    subscribing.probe(4, ONE)
    subscribing.probe(3, OTHER)
    subscribing.probe(4, STRANGER)
    subscribing.write(4, range(5), OTHER)
    subscribing.ends.write([b"short"], OTHER)
    bench.peer.stays(lambda: not bench.peer.messages_of(Ready), "ready without a probe of the other publisher")
    subscribing.probe(4, OTHER)
    bench.peer.heard(Ready, [CLIENT], epoch=4)


@each(alone)
def test_loss_duplicates_strangers_and_failed_messages_are_counted_exactly(subscribing: SystemStep) -> None:
    subscribing.begun(6, ONE, OTHER)
    subscribing.write(6, range(50), ONE, size=100)
    subscribing.write(6, [20, 21], ONE)
    subscribing.write(5, range(3), ONE)
    subscribing.write(6, range(4), STRANGER)
    subscribing.write(6, range(2, 30), OTHER)
    lost: dict[int, list[tuple[int, int]]] = {ONE: [(45, 59)], OTHER: [(0, 0)]}
    report = subscribing.report(6, {ONE: 60, OTHER: 30}, unacknowledged=lost)
    assert report.ledgers == [
        LedgerCounts(publisher=ONE, received=45, in_window=45, missing=0, duplicates=2, extra=5),
        LedgerCounts(publisher=OTHER, received=28, in_window=28, missing=1, missing_ranges=[(1, 1)]),
    ]
    # A system may spare a subscriber the messages of strangers.
    assert report.stale in (3, 7)


@each(alone)
def test_the_end_of_the_data_ends_the_drain_although_messages_are_missing(subscribing: SystemStep) -> None:
    subscribing.begun(1, ONE)
    subscribing.write(1, range(10), ONE)
    has_marks = subscribing.end_of_data() is None
    report = subscribing.report(1, {ONE: 12}, drain_max_s=1000, quiet_s=1000 if has_marks else 0.2)
    assert report.drain == ("marked" if has_marks else "quiet")
    assert report.ledgers == [LedgerCounts(ONE, 10, 10, 2, [(10, 11)])]


@each(alone)
def test_what_is_left_waiting_is_missing_and_stale_in_the_next_step(subscribing: SystemStep) -> None:
    window = subscribing.begun(1, ONE, seconds=0.2, receive_rate=100.0)
    for first in range(0, 2000, 500):
        subscribing.write(1, range(first, first + 500), ONE)
    subscribing.bench.await_end(window)
    end = subscribing.end_of_data()
    report = subscribing.bench.subscriber_report(CLIENT, 1, {ONE: 2000}, system=end, drain_max_s=0.0)
    (ledger,) = report.ledgers
    assert ledger.received + ledger.missing == 2000
    # A client may have taken all that its library had in one call.
    assert report.drain == ("deadline" if ledger.missing else "complete")
    if end is not None:
        assert report.undrained == ledger.missing
    subscribing.begun(2, ONE)
    subscribing.write(2, range(50), ONE)
    report = subscribing.report(2, {ONE: 50})
    assert report.ledgers == [LedgerCounts(publisher=ONE, received=50, in_window=50, missing=0)]
    assert report.stale <= ledger.missing


@each(alone)
def test_steps_follow_each_other_and_a_report_is_repeated(subscribing: SystemStep) -> None:
    for epoch, messages in ((1, 100), (2, 80)):
        subscribing.begun(epoch, ONE)
        subscribing.write(epoch, range(messages), ONE, size=60)
        report = subscribing.report(epoch, {ONE: messages})
        assert report.ledgers == [LedgerCounts(publisher=ONE, received=messages, in_window=messages, missing=0)]
        assert (report.bytes, report.stale, report.undrained, report.drain) == (60 * messages, 0, 0, "complete")
    subscribing.bench.send_finish([CLIENT], 2, {ONE: 80}, system=subscribing.end_of_data())
    subscribing.bench.reports_again(CLIENT, 2)


@each(alone)
def test_many_messages_at_once_arrive(subscribing: SystemStep) -> None:
    # As many as the queues of each system hold.
    subscribing.begun(1, ONE)
    for first in range(0, 3000, 500):
        subscribing.write(1, range(first, first + 500), ONE, size=100)
    report = subscribing.report(1, {ONE: 3000}, drain_max_s=15)
    assert [(x.received, x.missing, x.duplicates) for x in report.ledgers] == [(3000, 0, 0)]
    assert (report.bytes, report.drain) == (300_000, "complete")


@each(alone)
def test_a_receive_rate_holds_it_back_until_the_drain(subscribing: SystemStep) -> None:
    window = subscribing.begun(1, ONE, seconds=0.4, receive_rate=200.0)
    subscribing.write(1, range(600), ONE)
    subscribing.bench.await_end(window)
    (ledger,) = subscribing.report(1, {ONE: 600}).ledgers
    assert (ledger.received, ledger.missing) == (600, 0)
    assert 20 <= ledger.in_window <= 90


@each(lambda subject: "topics" in subject.delivery.traffic and not subject.group)
def test_it_has_an_exact_account_of_its_topics(subscribing: SystemStep) -> None:
    # One consumer of a log has one filter on old servers (docs/topics.md).
    subscribing.begun(3, ONE, topics=8, topics_per_client=1)
    traffic = subscribing.traffic
    topic, own = topic_choice(traffic, ONE), set(client_topics(traffic, CLIENT))
    mine = [n for n in range(200) if topic.at(n) in own]
    lost = mine[5]
    subscribing.write(3, [n for n in range(200) if n != lost], ONE)
    subscribing.write(3, [mine[8]], ONE)
    report = subscribing.report(3, {ONE: 200}, quiet_s=0.3)
    received = len(mine) - 1
    assert report.ledgers == [LedgerCounts(ONE, received, received, 1, [(lost, lost)], duplicates=1)]


@each(lambda subject: "wildcard" in subject.delivery.traffic and not subject.group)
def test_a_pattern_has_all_topics(subscribing: SystemStep) -> None:
    subscribing.begun(4, ONE, topics=8, wildcard=True)
    subscribing.write(4, range(100), ONE)
    (ledger,) = subscribing.report(4, {ONE: 100}).ledgers
    assert (ledger.received, ledger.missing) == (100, 0)


@each(alone)
def test_it_connects_again_and_goes_on(subscribing: SystemStep) -> None:
    """What is sent while it is away is lost, or is not: that depends on the system's guarantees."""
    bench = subscribing.bench
    window = subscribing.begun(1, ONE, seconds=1.0, reconnect_rate=3.0)
    for first in count(0, 10):
        subscribing.write(1, range(first, first + 10), ONE)
        bench.peer.poll()
        if window.expired():
            break
    sent = first + 10
    report = subscribing.report(1, {ONE: sent}, drain_max_s=15)
    (ledger,) = report.ledgers
    assert 1 <= report.reconnects <= 3
    assert len(report.absent) >= 1
    assert (ledger.received + ledger.missing, ledger.duplicates) == (sent, 0)
    if subscribing.end_of_data() is not None:
        assert ledger.missing == 0
    subscribing.begun(2, ONE)
    subscribing.write(2, range(20), ONE)
    assert [x.missing for x in subscribing.report(2, {ONE: 20}).ledgers] == [0]


@each(alone)
def test_a_setting_that_the_system_does_not_have_is_refused_by_name(subscribing: SystemStep) -> None:
    bench = subscribing.bench
    window = subscribing.begun(1, ONE)
    subscribing.write(1, range(5), ONE)
    got(bench, 1, 5)
    settings, more = subscribing.prepared()
    bench.send_configure([CLIENT], 2, settings, publishers={ONE: ""}, system={"no_such_setting": 1}, **more)
    bench.hears_why_not(CLIENT, 2, "no_such_setting")
    bench.ignores_commands(CLIENT, (1, 2), window)
    subscribing.begun(3, ONE)
