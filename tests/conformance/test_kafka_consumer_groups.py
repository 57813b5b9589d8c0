"""What a Kafka subscriber must do as a member of a consumer group: each record reaches at least one of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from hydra.kafkatest.broker import LocalBroker
from hydra.model import SubscriberReport
from hydra.wire.messages import PROBE_EPOCH, Progress, Quit, Ready
from tests.conformance.bench import Bench, step_settings
from tests.conformance.conftest import Share
from tests.conformance.kafka_ends import Log, kill
from tests.suite.bitmaps import decode_bitmap
from tests.suite.waiting import LONG_S

FIRST, SECOND, THIRD = 3, 4, 5
PUBLISHER = 100
SESSION_MS = 6000
"""The shortest that brokers take."""
MEMBER = step_settings(session_timeout_ms=SESSION_MS)


@pytest.fixture
def members(share: Share, kafka_client: str) -> Bench:
    """Two subscribers."""
    return share(kafka_client, "kafka-sub", count=2)


@pytest.fixture
def three(bench: Bench, kafka_client: str) -> Bench:
    """Two subscribers, and a third one that may end."""
    bench.launch(kafka_client, "kafka-sub", first_id=FIRST, count=2)
    bench.launch(kafka_client, "kafka-sub", first_id=THIRD, arguments=("--respawns", "0"), group="one")
    return bench


def joined(bench: Bench, epoch: int, log: Log, ids: Sequence[int], begin: dict[int, int] | None = None) -> None:
    """Begins a step in which these are one group, and read from the log's end on by default."""
    system = {**(log.from_here() if begin is None else log.at(begin)), "group": f"{log.topic}-all"}
    others: dict[str, Any] = {"group": "all", "probe": begin is None, "progress_s": 0.05}
    bench.configure_subscribers(ids, epoch, MEMBER, publishers={PUBLISHER: ""}, system=system, **others)

    def ready() -> bool:
        # The last member with a partition may have read its probe: probes continue, as a publisher's do.
        for partition in range(log.partitions):
            log.write(PROBE_EPOCH, [epoch], publisher=PUBLISHER, partition=partition)
        return all(bench.peer.messages_of(Ready, client, epoch=epoch) for client in ids)

    if begin is None:
        bench.peer.wait(ready, f"readiness of {ids}", LONG_S)
    bench.start(ids, epoch, LONG_S)


def reports(bench: Bench, epoch: int, log: Log, ids: Sequence[int], sent: int) -> list[SubscriberReport]:
    """Finishes the step of these members."""
    to_end: dict[str, Any] = {"system": log.end_of_data(), "drain_max_s": LONG_S / 2, "timeout_s": LONG_S}
    return list(bench.subscriber_reports(ids, epoch, {PUBLISHER: sent}, **to_end).values())


def received(report: SubscriberReport) -> set[int]:
    """The sequences that a member lists."""
    (ledger,) = report.ledgers
    listed = decode_bitmap(ledger.received_bits)
    return {8 * byte + bit for byte, value in enumerate(listed) for bit in range(8) if value >> bit & 1}


def read(bench: Bench, epoch: int, ids: Sequence[int], messages: int) -> None:
    """Waits until these members together have reported this many messages."""

    def so_many() -> bool:
        reported = (bench.peer.messages_of(Progress, client, epoch=epoch) for client in ids)
        return sum(progress[-1].messages for progress in reported if progress) >= messages

    bench.peer.wait(so_many, f"{messages} messages", LONG_S)


def test_members_share_the_partitions_and_each_step_begins_at_its_offsets(members: Bench, wide_log: Log) -> None:
    for epoch in (1, 2):
        joined(members, epoch, wide_log, [FIRST, SECOND])
        wide_log.write(epoch, range(400), publisher=PUBLISHER)
        reported = reports(members, epoch, wide_log, [FIRST, SECOND], 400)
        parts = [received(report) for report in reported]
        assert parts[0] | parts[1] == set(range(400))
        assert len(parts[0]) == len(parts[1]) == 200
        assert [(r.drain, r.undrained, r.stale, r.ledgers[0].duplicates) for r in reported] == [("quiet", 0, 0, 0)] * 2
        assert reported[0].system is not None
        assert reported[0].system.keys() == {"rebalance_ms", "rebalances"}
        # The group of the first step continues in the second.
        joining = reported[1].system if epoch == 1 else None
        assert joining is None or (joining["rebalances"] >= 1 and joining["rebalance_ms"] > 0)
        # Records that must not count come in between; the next step begins behind it.
        wide_log.write(epoch, range(400, 450), publisher=PUBLISHER)


def test_a_member_without_partitions_is_ready_and_waits_for_the_others(members: Bench, log: Log) -> None:
    joined(members, 1, log, [FIRST, SECOND])
    log.write(1, range(100), publisher=PUBLISHER)
    reported = reports(members, 1, log, [FIRST, SECOND], 100)
    assert sorted(len(received(report)) for report in reported) == [0, 100]
    assert [(r.drain, r.undrained) for r in reported] == [("quiet", 0)] * 2


def test_what_is_there_already_is_read_from_the_steps_beginning(members: Bench, wide_log: Log) -> None:
    wide_log.write(9, range(20), publisher=PUBLISHER)
    begin = wide_log.end()
    wide_log.write(1, range(1000), publisher=PUBLISHER)
    joined(members, 1, wide_log, [FIRST, SECOND], begin)
    reported = reports(members, 1, wide_log, [FIRST, SECOND], 1000)
    assert received(reported[0]) | received(reported[1]) == set(range(1000))
    assert sum(report.stale for report in reported) == 0


@pytest.mark.tier("all")
def test_the_others_take_over_from_a_member_that_is_killed(three: Bench, wide_log: Log) -> None:
    all_clients = [FIRST, SECOND, THIRD]
    joined(three, 1, wide_log, all_clients)
    wide_log.write(1, range(400), publisher=PUBLISHER)
    read(three, 1, all_clients, 400)
    os.kill(three.peer.process(THIRD).pid, signal.SIGKILL)
    wide_log.write(1, range(400, 800), publisher=PUBLISHER)
    reported = reports(three, 1, wide_log, [FIRST, SECOND], 800)
    # It had not committed what it had read by then: it is read again, and nothing is missing.
    assert received(reported[0]) | received(reported[1]) == set(range(800))
    assert [report.undrained for report in reported] == [0, 0]


@pytest.mark.tier("all")
def test_a_member_that_leaves_hands_over_what_it_has_read(three: Bench, wide_log: Log) -> None:
    all_clients = [FIRST, SECOND, THIRD]
    joined(three, 1, wide_log, all_clients)
    wide_log.write(1, range(400), publisher=PUBLISHER)
    read(three, 1, all_clients, 400)
    three.peer.send_to([THIRD], Quit())
    assert three.await_exit(three.groups[-1]) == 0
    wide_log.write(1, range(400, 800), publisher=PUBLISHER)
    reported = reports(three, 1, wide_log, [FIRST, SECOND], 800)
    own = received(reported[0]) | received(reported[1])
    assert own > set(range(400, 800))
    # Not what the third had read.
    assert len(own) < 800
    assert sum(report.ledgers[0].duplicates for report in reported) == 0


@pytest.mark.tier("all")
def test_a_member_whose_coordinator_died_joins_the_next_steps_group_in_time(
    bench: Bench, kafka_client: str, log: Log, own_broker: LocalBroker, own_log: Log
) -> None:
    bench.launch(kafka_client, "kafka-sub", first_id=FIRST, count=2)
    joined(bench, 1, own_log, [FIRST, SECOND])
    own_log.write(1, range(100), publisher=PUBLISHER)
    read(bench, 1, [FIRST, SECOND], 100)
    kill(own_broker)
    joined(bench, 2, log, [FIRST, SECOND])
    log.write(2, range(100), publisher=PUBLISHER)
    reported = reports(bench, 2, log, [FIRST, SECOND], 100)
    assert received(reported[0]) | received(reported[1]) == set(range(100))
