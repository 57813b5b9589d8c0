from __future__ import annotations

import os
import signal
import struct
import time
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from hydra.client.transport import PublisherTransport, SubscriberTransport
from hydra.kafkatest import confluent, confluent_publisher, kafka_python, kafka_python_common
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics
from hydra.model import SharedSettings
from hydra.servers.ports import free_ports
from hydra.wire.header import pack, pack_batch, unpack_batch
from hydra.wire.messages import Configure

from .conftest import wait_until

N = 5000


def told(epoch: int, bootstrap: str, topic: str, offsets: dict[int, int], **settings: Any) -> Configure:
    names = ("rate", "message_size")
    shared = SharedSettings(burst=100, **{name: settings[name] for name in names if name in settings})
    system = {name: value for name, value in settings.items() if name not in names}
    system |= {"bootstrap": bootstrap, "topic": topic, "offsets": offsets}
    return Configure(epoch=epoch, settings=shared, publishers=[], probe=False, system=system)


def messages(epoch: int, first: int, count: int, size: int = 24) -> list[bytes]:
    return pack_batch(epoch, 7, first, np.zeros(count, np.uint64), [bytes(size - 24)] * count)


def send(publisher: PublisherTransport, epoch: int, first: int, count: int, size: int = 24) -> None:
    deadline = time.monotonic() + 30
    while count > 0:
        assert time.monotonic() < deadline, "the library took the messages"
        batch = messages(epoch, first, min(100, count), size)
        accepted = publisher.send(batch, first)
        publisher.poll()
        first, count = first + accepted, count - accepted


def take(subscriber: SubscriberTransport, count: int, deadline_s: float = 20.0) -> npt.NDArray[np.void]:
    values: list[bytes] = []
    deadline = time.monotonic() + deadline_s
    while len(values) < count and time.monotonic() < deadline:
        values += subscriber.receive(0.1, 1000)
    return unpack_batch(values)


@pytest.fixture(params=[confluent, kafka_python], ids=["confluent", "kafka_python"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    chosen: ModuleType = request.param
    return chosen


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(("acks", "size"), [("1", 24), ("all", 1000)])
def test_what_was_sent_arrives_from_the_start_offset_on(
    library: ModuleType, broker: EmbeddedBroker, topics: Topics, partitions: int, acks: str, size: int
) -> None:
    topic = topics.create("data", partitions=partitions)
    publisher, subscriber = library.Publisher(1), library.Subscriber(2)
    settings: dict[str, Any] = {"acks": acks, "message_size": size}
    try:
        publisher.configure(told(1, broker.bootstrap, topic, {}, **settings))
        publisher.probe(pack(0, 7, 1, 0, size))
        send(publisher, 1, 0, 300, size)
        assert publisher.flush(10)
        start = topics.end_offsets(topic)
        assert sum(start.values()) == 300 + partitions

        publisher.configure(told(2, broker.bootstrap, topic, start, **settings))
        subscriber.configure(told(2, broker.bootstrap, topic, start, **settings))
        send(publisher, 2, 0, N, size)
        assert publisher.flush(10)
        delivery = publisher.delivery()
        assert (delivery.acknowledged, delivery.failed, delivery.pending) == (N, 0, 0)
        assert delivery.unacknowledged == []
        assert 0 < delivery.last_ack_ns <= time.monotonic_ns()

        end = topics.end_offsets(topic)
        assert subscriber.undrained({"end_offsets": end}) == N
        headers = take(subscriber, N)
        assert set(headers["epoch"].tolist()) == {2}
        assert sorted(headers["sequence"].tolist()) == list(range(N))
        assert subscriber.undrained({"end_offsets": end}) == 0
        assert len(subscriber.receive(0, 10)) == 0

        # Back to an offset in the middle, on the connection that is there; then a new one goes on from there.
        middle = {p: offset - 10 for p, offset in end.items()}
        subscriber.configure(told(3, broker.bootstrap, topic, middle, **settings))
        began_ns, ended_ns = subscriber.reconnect()
        assert began_ns < ended_ns
        assert subscriber.undrained({"end_offsets": end}) == 10 * partitions
        assert len(take(subscriber, 10 * partitions)) == 10 * partitions
        assert subscriber.undrained({"end_offsets": end}) == 0
    finally:
        publisher.close()
        publisher.close()
        subscriber.close()
        subscriber.close()


def test_only_a_changed_producer_setting_makes_a_new_producer(
    library: ModuleType, broker: EmbeddedBroker, topics: Topics
) -> None:
    topic = topics.create("data")
    publisher = library.Publisher(1)
    try:
        publisher.configure(told(1, broker.bootstrap, topic, {}))
        first = publisher._producer
        assert publisher.report_system()["batch_bytes"] >= 61
        publisher.configure(told(2, broker.bootstrap, topic, {}, rate=5.0))
        assert publisher._producer is first
        publisher.configure(told(3, broker.bootstrap, topic, {}, linger_ms=5.0))
        assert publisher._producer is not first
        publisher.configure(told(4, broker.bootstrap, topic, {}, acks="0"))
        send(publisher, 4, 0, 100)
        assert publisher.flush(10)
        assert publisher.delivery() is None
        # Nothing tells when the broker has them.
        wait_until(lambda: topics.end_offsets(topic) == {0: 100}, 5.0, "the log grew by what was sent")
    finally:
        publisher.close()


STEPS: list[dict[str, Any]] = [
    {"acks": "1"},
    {"acks": "all", "idempotence": True, "max_in_flight": 1, "retries": 2, "delivery_timeout_ms": 20_000},
    {"acks": "all", "compression": "gzip", "buffer_memory": 2**20, "idempotence": True},
]


def test_a_producer_obeys_its_settings_and_tells_what_it_achieved(
    library: ModuleType, broker: EmbeddedBroker, topics: Topics
) -> None:
    topic = topics.create("data", partitions=2)
    publisher = library.Publisher(1)
    before: dict[int, int] = {0: 0, 1: 0}
    try:
        for epoch, settings in enumerate(STEPS, 1):
            publisher.configure(
                told(epoch, broker.bootstrap, topic, {}, message_size=100, linger_ms=2000.0, **settings)
            )
            began_ns = time.monotonic_ns()
            send(publisher, epoch, 0, 1000, 100)
            assert publisher.flush(10)
            took_us = (time.monotonic_ns() - began_ns) // 1000
            delivery = publisher.delivery()
            assert delivery.acknowledged == sum(delivery.ack_latency.counts[1::2]) == 1000
            assert 0 < delivery.ack_latency.min_us <= delivery.ack_latency.max_us <= took_us
            achieved = publisher.report_system()
            # 500 messages a partition, in batches of 100: full ones, as they would linger for long otherwise. One that
            # takes more than 63 ms to fill has a few less.
            assert 80 <= achieved["records_per_batch"] <= 100
            assert achieved["records_per_batch"] <= achieved["records_per_request"] <= 200
            framed = 100 / 110 if settings.get("compression") is None else 20
            assert achieved["compression_ratio"] == pytest.approx(framed, rel=0.05 if framed < 1 else 0.9)
            assert achieved["wire_bytes"] == pytest.approx(100_000 / achieved["compression_ratio"])
            end = topics.end_offsets(topic)
            assert {p: end[p] - before[p] for p in end} == {0: 500, 1: 500}
            before = end
        assert producer_ids(broker, topic) == 2, "two of the three steps were idempotent"
    finally:
        publisher.close()


def producer_ids(broker: EmbeddedBroker, topic: str) -> int:
    """How many idempotent producers wrote to a topic, by the batches' headers in its log."""
    found = set()
    for file in broker._folder.rglob(f"{topic}-0/*.log"):
        log, place = file.read_bytes(), 0
        while place + 61 <= len(log):
            (length,) = struct.unpack_from(">i", log, place + 8)
            (producer,) = struct.unpack_from(">q", log, place + 43)
            found.add(producer)
            place += 12 + length
    return len(found - {-1})


def test_a_message_that_the_broker_does_not_take_has_failed(library: ModuleType, broker: EmbeddedBroker) -> None:
    topic = f"small-{uuid.uuid4().hex}"
    small = NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # without a name it is gone before the answer comes
    admin.create_topics([small])[topic].result(10)
    publisher = library.Publisher(1)
    try:
        publisher.configure(told(1, broker.bootstrap, topic, {}, message_size=3000, msg_batch=1))
        publisher.send(messages(1, 0, 3, 3000), 0)
        assert publisher.flush(10)
        delivery = publisher.delivery()
        assert (delivery.acknowledged, delivery.failed) == (0, 3)
        assert delivery.ack_latency.counts == []
        assert delivery.unacknowledged == [(0, 2)]
    finally:
        publisher.close()


def test_answers_of_the_last_epoch_do_not_count(library: ModuleType, broker: EmbeddedBroker, topics: Topics) -> None:
    topic = topics.create("data")
    publisher = library.Publisher(1)
    try:
        publisher.configure(told(1, broker.bootstrap, topic, {}, linger_ms=200.0))
        publisher.send(messages(1, 0, 50), 0)
        publisher.configure(told(2, broker.bootstrap, topic, {}, linger_ms=200.0))
        publisher.send(messages(2, 0, 20), 0)
        assert publisher.flush(10)
        assert publisher.delivery().acknowledged == 20
    finally:
        publisher.close()


def test_an_offset_that_is_not_there_is_an_error(library: ModuleType, broker: EmbeddedBroker, topics: Topics) -> None:
    subscriber = library.Subscriber(1)
    try:
        subscriber.configure(told(1, broker.bootstrap, topics.create("data"), {0: 1_000_000}))
        with pytest.raises(OSError, match="Kafka refuses"):
            take(subscriber, 1)
    finally:
        subscriber.close()


@pytest.mark.processes
def test_a_cluster_that_does_not_answer(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_publisher, "CONNECT_TIMEOUT_S", 1.0)
    monkeypatch.setattr(kafka_python_common, "CONNECT_TIMEOUT_MS", 1000)
    (port,) = free_ports("127.0.0.1", 1)
    publisher = library.Publisher(1)
    with pytest.raises(OSError, match="does not answer"):
        publisher.configure(told(1, f"127.0.0.1:{port}", "x", {}))
    publisher.close()


def test_a_broker_that_dies_blocks_nobody(library: ModuleType, own_broker: EmbeddedBroker) -> None:
    topics = Topics(own_broker.bootstrap, {}, "dying")
    topic = topics.create("data")
    publisher, subscriber = library.Publisher(1), library.Subscriber(2)
    publisher.configure(told(1, own_broker.bootstrap, topic, {}))
    subscriber.configure(told(1, own_broker.bootstrap, topic, {0: 0}))
    send(publisher, 1, 0, 500)
    assert publisher.flush(10)
    assert len(take(subscriber, 500)) == 500
    own_broker.stop()

    began = time.monotonic()
    accepted = publisher.send(messages(1, 500, 100), 500)
    assert accepted == 100
    assert time.monotonic() - began < 0.5
    assert not publisher.flush(0.3)
    delivery = publisher.delivery()
    assert (delivery.acknowledged, delivery.failed + delivery.pending) == (500, 100)
    assert delivery.unacknowledged == [(500, 599)]

    began = time.monotonic()
    assert len(subscriber.receive(0.3, 100)) == 0
    assert len(subscriber.receive(0, 100)) == 0
    assert time.monotonic() - began < 1.0

    for transport in (publisher, subscriber):
        began = time.monotonic()
        transport.close()
        assert time.monotonic() - began < 1.5


def stopped(broker: EmbeddedBroker) -> bool:
    """Whether no thread of the broker runs any more: each of them is stopped by itself."""
    assert broker.pids is not None
    tasks = Path(f"/proc/{broker.pids[1]}/task").iterdir()
    return all((task / "stat").read_text().rpartition(") ")[2].startswith("T") for task in tasks)


def test_one_unanswered_message_does_not_move_the_time_of_the_others(
    library: ModuleType, own_broker: EmbeddedBroker
) -> None:
    topics = Topics(own_broker.bootstrap, {}, "paused")
    topic = topics.create("data")
    publisher = library.Publisher(1)
    publisher.configure(told(1, own_broker.bootstrap, topic, {}))
    try:
        assert publisher.send(messages(1, 0, 300), 0) == 300
        wait_until(lambda: topics.end_offsets(topic) == {0: 300}, 10.0, "the broker has them")
        assert own_broker.pids is not None
        os.kill(own_broker.pids[1], signal.SIGSTOP)
        try:
            wait_until(lambda: stopped(own_broker), 10.0, "all of the broker's threads stand still")
            assert publisher.send(messages(1, 300, 1), 300) == 1
            began_ns = time.monotonic_ns()
            assert not publisher.flush(2.0)
            assert time.monotonic_ns() - began_ns > 1.9e9
            delivery = publisher.delivery()
        finally:
            os.kill(own_broker.pids[1], signal.SIGCONT)
        # The broker has all 300, and may have been stopped before it said so of the last batch.
        assert 0 < delivery.acknowledged <= 300
        assert delivery.unacknowledged == [(delivery.acknowledged, 300)]
        assert delivery.last_ack_ns - began_ns < 0.5e9
    finally:
        publisher.close()


def test_a_flush_waits_for_probes_too(
    library: ModuleType, broker: EmbeddedBroker, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create("data")
    monkeypatch.setattr(f"{library.Publisher.__module__}.PROBE_FLUSH_S", 0.0)
    publisher = library.Publisher(1)
    try:
        publisher.configure(told(1, broker.bootstrap, topic, {}, acks="all", linger_ms=60_000.0))
        publisher.probe(pack(0, 7, 1, 0, 24))
        assert publisher.flush(10.0)
        assert topics.end_offsets(topic) == {0: 1}
    finally:
        publisher.close()


def test_kinds_name_both_clients(library: ModuleType) -> None:
    kinds = library.kinds()
    assert {name: kind.role for name, kind in kinds.items()} == {"kafka-pub": "publisher", "kafka-sub": "subscriber"}
    assert all(kind.versions() for kind in kinds.values())
