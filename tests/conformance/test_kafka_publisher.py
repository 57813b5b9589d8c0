"""What a Kafka publisher must do: the same as any publisher, and account for what the broker acknowledged."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest

from hydra.client.payload import PayloadBlock
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from hydra.model import Histogram
from hydra.model.settings import MOST_KEYS
from hydra.wire.messages import PROBE_EPOCH, Ack, Progress, Ready, Traffic
from tests.conformance.bench import CLIENT, Bench, StepSettings, Window, step_settings, with_values
from tests.conformance.conftest import Share
from tests.conformance.kafka_ends import IMPOSSIBLE, Log, kill
from tests.conformance.libraries import librdkafka_version
from tests.suite.waiting import LONG_S, TIME_FACTOR

STEADY = step_settings(rate=500.0, message_size=100, burst=50, msg_batch=50)


@pytest.fixture
def publisher(share: Share, kafka_client: str) -> Bench:
    return share(kafka_client, "kafka-pub")


def configured(
    bench: Bench, epoch: int, topic: Mapping[str, Any], settings: StepSettings = STEADY, **more: Any
) -> None:
    assert bench.configure_publisher(CLIENT, epoch, settings, system=topic, **more) == ""


@pytest.mark.parametrize("kind", ["kafka-pub", "kafka-sub"])
def test_it_names_the_library_that_it_has_loaded(share: Share, kafka_client: str, kind: str) -> None:
    peer = share(kafka_client, kind).peer
    hello, pid = peer.relay(), peer.process(CLIENT).pid
    if hello.implementation == "kafka-python":
        assert hello.versions["kafka-python"] == version("kafka-python")
    else:
        assert hello.versions["librdkafka"] == librdkafka_version(pid)


def test_configure_sent_twice_changes_nothing(publisher: Bench, log: Log) -> None:
    topic = log.from_here()
    configured(publisher, 1, topic)
    publisher.send_configure([CLIENT], 1, STEADY, system=topic)
    publisher.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    publisher.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=2)


def test_probes_reach_every_partition_until_the_start(publisher: Bench, wide_log: Log) -> None:
    configured(publisher, 5, wide_log.from_here())

    def probed() -> bool:
        found = [r for r in wide_log.read() if (r.epoch, r.publisher, r.sequence) == (PROBE_EPOCH, CLIENT, 5)]
        return {r.partition for r in found} == {0, 1, 2, 3}

    publisher.peer.wait(probed, "a probe in every partition")
    publisher.start([CLIENT], 5, 30)
    publisher.peer.sync([CLIENT])
    probes = sum(r.epoch == PROBE_EPOCH for r in wide_log.read())
    publisher.peer.stays(lambda: True, "", 0.3)
    assert sum(r.epoch == PROBE_EPOCH for r in wide_log.read()) == probes


@pytest.mark.parametrize("acks", ["0", "1"])
def test_a_configure_without_probe_ends_the_probes(publisher: Bench, wide_log: Log, acks: str) -> None:
    """With acks 0 there are no acknowledgements: what the log grows by from here on is what was sent."""
    topic, settings = wide_log.from_here(), with_values(STEADY, acks=acks)
    configured(publisher, 5, topic, settings)
    publisher.peer.wait(lambda: sum(wide_log.end().values()) > 0, "a probe")
    publisher.send_configure([CLIENT], 5, settings, system=topic, probe=False)
    publisher.peer.heard(Ready, [CLIENT], epoch=5, times=2)
    publisher.peer.heard(Ack, [CLIENT], epoch=5, command="configure", times=2)
    # Written when it was answered; with acks 0 the broker may still be at it.
    publisher.peer.stays(lambda: True, "", 0.3 if acks == "0" else 0.0)
    probes = sum(wide_log.end().values())
    publisher.peer.stays(lambda: sum(wide_log.end().values()) == probes, "a probe after their end", 0.7)
    _, report = publisher.publish(CLIENT, 5, 1.0, after_s=0.1)
    assert report.sent > 0
    publisher.peer.wait(lambda: sum(wide_log.end().values()) == probes + report.sent, "exactly what was sent")


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_schedule_is_kept_and_acknowledged(publisher: Bench, wide_log: Log, acks: str) -> None:
    configured(publisher, 2, wide_log.from_here(), with_values(STEADY, acks=acks), probe=False)
    window, report = publisher.publish(CLIENT, 2, 0.3, after_s=0.1)
    # All that was due, or less on a machine that others load: who is late at the end leaves messages out.
    count = report.sent
    assert 0 < count <= 150
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    assert report.bytes == count * 100
    assert report.system is not None
    assert report.system["batch_bytes"] > 100
    assert window.start_ns <= report.first_ns <= report.last_ns
    assert sum(report.lag.counts[1::2]) == count
    publisher.peer.wait(lambda: sum(wide_log.end().values()) == count, "all of them in the log")
    records = wide_log.read()
    assert sorted(r.sequence for r in records) == list(range(count))
    assert {(r.epoch, r.publisher, r.size) for r in records} == {(2, CLIENT, 100)}
    assert {r.partition for r in records} == {0, 1, 2, 3}
    assert all(r.time_ns == window.start_ns + r.sequence * 2_000_000 for r in records)
    for partition in range(4):
        sequences = [r.sequence for r in records if r.partition == partition]
        assert sequences == sorted(sequences)


def test_the_last_answer_is_taken_when_it_arrives(publisher: Bench, wide_log: Log) -> None:
    """Nothing wakes the publisher between its only message and the end of the window."""
    configured(publisher, 1, wide_log.from_here(), with_values(STEADY, rate=0.5), probe=False)
    _, report = publisher.publish(CLIENT, 1, 2.0)
    assert (report.sent, report.acknowledged) == (1, 1)
    assert report.last_ns - report.first_ns < 1_000_000_000
    assert sum(report.ack_latency.counts[1::2]) == 1
    assert report.ack_latency.max_us < 1_000_000


def test_rate_max(publisher: Bench, log: Log) -> None:
    configured(publisher, 1, log.from_here(), with_values(STEADY, rate="max"), probe=False, progress_s=0.05)
    _, report = publisher.publish(CLIENT, 1, 0.2)
    assert report.sent == report.acknowledged > 100
    assert report.lag == Histogram()
    assert publisher.peer.messages_of(Progress, CLIENT, epoch=1)
    assert [r.sequence for r in log.read()] == list(range(report.sent))


def test_an_early_stop_and_the_same_report_again(publisher: Bench, log: Log) -> None:
    configured(publisher, 1, log.from_here(), probe=False)
    window = publisher.start([CLIENT], 1, 30)
    publisher.peer.wait(lambda: sum(log.end().values()) > 50, "50 messages")
    stop = replace(window, stop_ns=window.now_ns())
    report = publisher.publisher_report(CLIENT, 1, stop)
    assert 50 < report.sent < 3000
    assert report.acknowledged == report.sent == sum(log.end().values())
    publisher.stop([CLIENT], 1, stop)
    publisher.reports_again(CLIENT, 1)


def test_settings_change_between_steps(publisher: Bench, log: Log) -> None:
    sent = []
    lingering = with_values(STEADY, linger_ms=5.0, burst=5, msg_batch=5)
    small = with_values(STEADY, batch_bytes=4096, compression="gzip")
    for epoch, settings in enumerate((STEADY, lingering, small), start=1):
        configured(publisher, epoch, log.from_here(), settings, probe=False)
        _, report = publisher.publish(CLIENT, epoch, 0.5)
        # A publisher that the machine kept waiting at the end of its window may have sent less.
        assert 0 < report.sent == report.acknowledged <= 250
        sent.append(report.sent)
        assert report.system is not None
        assert report.system["batch_bytes"] == settings.system.get("batch_bytes", report.system["batch_bytes"])
        assert 1 <= report.system["records_per_batch"] <= report.sent
        assert 1 <= report.system["records_per_request"] <= report.sent
        assert report.system["wire_bytes"] > 0
        assert report.system["compression_ratio"] > 0
    assert [r.epoch for r in log.read()] == [epoch for epoch, count in enumerate(sent, 1) for _ in range(count)]


@pytest.mark.tier("all")
@pytest.mark.parametrize("keys", [0, MOST_KEYS])
def test_a_full_batch_has_the_messages_that_were_asked_for(publisher: Bench, log: Log, keys: int) -> None:
    settings = with_values(STEADY, rate="max", message_size=24, msg_batch=1000, linger_ms=2000.0)
    configured(publisher, 1, log.from_here(), settings, probe=False, traffic=Traffic(keys=keys))
    _, report = publisher.publish(CLIENT, 1, 0.5)
    assert report.system is not None
    batches = report.sent / report.system["records_per_batch"]
    # The last batch has fewer. Shorter keys make room for a few more, and batches that fill slowly have a few less.
    assert report.sent / 1010 <= batches <= report.sent / 950 + 1


@pytest.mark.tier("all")
def test_a_topic_that_does_not_exist_is_an_error_and_not_the_end(publisher: Bench, log: Log) -> None:
    topic = log.from_here()
    nowhere = {**topic, "topic": f"{topic['topic']}-not", "offsets": {0: 0}}
    publisher.send_configure([CLIENT], 1, STEADY, system=nowhere)
    publisher.hears_why_not(CLIENT, 1)
    configured(publisher, 2, topic)


@pytest.mark.parametrize("properties", [{"no.such.thing": "1"}, {"acks": "all"}])
def test_a_property_that_cannot_be_is_an_error_that_names_it(
    publisher: Bench, log: Log, properties: dict[str, str]
) -> None:
    publisher.send_configure([CLIENT], 1, STEADY, system={**log.from_here(), "properties": properties})
    publisher.hears_why_not(CLIENT, 1, next(iter(properties)))


@pytest.mark.parametrize("doing", ["probing", "sending"])
def test_a_configure_that_fails_in_the_middle_is_an_error_and_not_the_end(
    publisher: Bench, log: Log, doing: str
) -> None:
    """Nothing is left to send with: what belongs to the step before must not try."""
    topic = log.from_here()
    configured(publisher, 1, topic)
    publisher.peer.wait(lambda: sum(log.end().values()) > 0, "a probe")
    window = Window(time.time_ns(), time.time_ns() + 10**9, 0)
    if doing == "sending":
        window = publisher.start([CLIENT], 1, 30)
        publisher.await_moment(window, 0.1)
    publisher.send_configure([CLIENT], 2, STEADY, system={**topic, "properties": IMPOSSIBLE})
    publisher.hears_why_not(CLIENT, 2)
    publisher.send_configure([CLIENT], 1, STEADY, system=topic)
    publisher.ignores_commands(CLIENT, (1, 2), window)
    configured(publisher, 2, topic)


def test_payloads_are_compressed_as_they_are_to_be(publisher: Bench, log: Log) -> None:
    """The broker keeps what the producer has made of a batch: of zeros a few bytes, of random ones all."""
    sizes = []
    for epoch, payload in enumerate(("zeros", "random", "json"), start=1):
        sized: dict[str, Any] = {"message_size": 1000, "message_size_min": 800, "payload": payload}
        settings = with_values(STEADY, compression="gzip", linger_ms=50.0, **sized)
        configured(publisher, epoch, log.from_here(), settings, probe=False)
        before = log.stored_bytes()
        _, report = publisher.publish(CLIENT, epoch, 0.2)
        assert report.acknowledged > 0
        assert report.bytes == PayloadBlock(settings.shared).total_bytes(report.sent)
        sizes.append((log.stored_bytes() - before) / report.bytes)
    zeros, random, json = sizes
    assert zeros < 0.3
    assert random > 0.95
    assert zeros < json < 0.3


def test_no_topic_at_all_is_an_error(publisher: Bench) -> None:
    publisher.send_configure([CLIENT], 1, STEADY)
    publisher.hears_why_not(CLIENT, 1)


@pytest.mark.tier("all")
def test_a_broker_that_dies_leaves_an_honest_report(
    bench: Bench, kafka_client: str, own_broker: LocalBroker, own_log: Log
) -> None:
    bench.launch(kafka_client, "kafka-pub", first_id=CLIENT)
    configured(bench, 1, own_log.from_here(), probe=False)
    window = bench.start([CLIENT], 1, 60 * TIME_FACTOR)
    bench.await_moment(window, 1.0)
    kill(own_broker)
    bench.await_moment(window, 2.0)
    bench.peer.sync([CLIENT])
    assert not window.expired()
    report = bench.publisher_report(CLIENT, 1, replace(window, stop_ns=window.now_ns()), LONG_S)
    open_ended = sum(last - first + 1 for first, last in report.unacknowledged)
    assert report.acknowledged + open_ended == report.sent
    assert open_ended > 0
    assert report.acknowledged > 0
    bench.peer.sync([CLIENT])


@pytest.fixture
def limited_topic(broker: LocalBroker) -> Iterator[dict[str, Any]]:
    """A topic whose batches have at most 2,000 bytes."""
    topics = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
    topic = topics.create("small", config={"max.message.bytes": "2000"})
    yield {"bootstrap": broker.bootstrap, "topic": topic, "offsets": {0: 0}}
    topics.end()


@pytest.fixture
def quota(broker: LocalBroker) -> Iterator[None]:
    """Each client may send 1,000 bytes/s, by Kafka's mean over 10 s."""
    alter_quota(broker.bootstrap, 1000.0)
    yield
    alter_quota(broker.bootstrap, None)


def alter_quota(bootstrap: str, bytes_per_s: float | None) -> None:
    """AlterClientQuotas for the default of all clients, which no library offers; None removes the quota."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    entity = struct.pack(">i", 1) + text("client-id") + struct.pack(">h", -1)
    change = (
        struct.pack(">i", 1) + text("producer_byte_rate") + struct.pack(">d?", bytes_per_s or 0.0, bytes_per_s is None)
    )
    request = struct.pack(">hhi", 49, 0, 1) + text("test") + struct.pack(">i", 1) + entity + change + b"\0"
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as one:
        one.sendall(struct.pack(">i", len(request)) + request)
        answer = one.recv(4096)
    # Size, correlation, throttle time, number of entries, error.
    assert struct.unpack_from(">h", answer, 16) == (0,), answer


def test_a_message_above_the_topics_limit_is_rejected_with_the_reason(
    publisher: Bench, limited_topic: dict[str, Any]
) -> None:
    large = with_values(STEADY, rate=100.0, message_size=3000, burst=1, msg_batch=1)
    configured(publisher, 1, limited_topic, large, probe=False)
    _, report = publisher.publish(CLIENT, 1, 0.2, after_s=0.1)
    assert report.system is not None
    reported = report.system["acceptance"]
    assert (reported["reason"], reported["messages"], report.acknowledged) == ("message_too_large", report.sent, 0)


def test_messages_that_a_quota_keeps_back_are_not_accepted_and_the_quota_is_the_reason(
    bench: Bench, kafka_client: str, log: Log, quota: None
) -> None:
    bench.launch(kafka_client, "kafka-pub", first_id=CLIENT)
    fast = with_values(STEADY, message_size=1000, burst=1, msg_batch=1, delivery_timeout_ms=500)
    assert bench.configure_publisher(CLIENT, 1, fast, system=log.from_here(), probe=False) == ""
    _, report = bench.publish(CLIENT, 1, 0.2, after_s=0.1)
    assert report.system is not None
    assert report.system["acceptance"]["reason"] == "quota"
    assert report.acknowledged < report.sent
