"""What conformance tests do not see of the transports of both Python libraries, on a real broker."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from hydra.client.server_interface import free_ports
from hydra.client.transport import PublisherTransport, SubscriberTransport
from hydra.kafkatest import confluent, kafka_python
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from hydra.model import SharedSettings
from hydra.wire.data_message import pack, pack_batch, unpack_batch
from hydra.wire.messages import Configure
from tests.kafkatest.conftest import opened
from tests.servers.running import kill
from tests.suite.waiting import SOON_S, wait_until

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("unclosed_sockets")]

FLUSH_S = 2.0


def configured(
    epoch: int, bootstrap: str, topic: str, offsets: dict[int, int] | None = None, **settings: Any
) -> Configure:
    names = {"rate", "message_size"} & settings.keys()
    shared = SharedSettings(burst=100, **{name: settings.pop(name) for name in names})
    system = {**settings, "bootstrap": bootstrap, "topic": topic, "offsets": offsets or {}}
    return Configure(epoch=epoch, number=1, settings=shared, publishers=[], probe=False, system=system)


def messages(epoch: int, first: int, count: int, size: int = 24) -> list[bytes]:
    return pack_batch(epoch, 7, first, np.zeros(count, np.uint64), [bytes(size - 24)] * count)


def send(publisher: PublisherTransport, epoch: int, first: int, count: int, size: int = 24) -> None:
    """Sends messages and waits until each of them was answered."""
    sent = 0

    def all_sent() -> bool:
        nonlocal sent
        sent += publisher.send(messages(epoch, first + sent, min(100, count - sent), size), first + sent)
        return sent == count

    wait_until(all_sent, "the library to take the messages", between=publisher.poll)
    assert publisher.flush(SOON_S)


def take(subscriber: SubscriberTransport, count: int, first: int = 0) -> None:
    values: list[bytes] = []

    def all_received() -> bool:
        values.extend(subscriber.receive(0.1, 1000))
        return len(values) >= count

    wait_until(all_received, f"{count} messages", saw=lambda: len(values))
    assert unpack_batch(values)["sequence"].tolist() == list(range(first, first + count))


@pytest.fixture
def publisher(library: ModuleType) -> Iterator[Any]:
    made = opened(library, "kafka-pub", 1)
    yield made
    made.close()
    made.close()


def test_a_subscriber_goes_back_on_the_connection_that_is_there(
    library: ModuleType, publisher: Any, broker: LocalBroker, topics: Topics
) -> None:
    topic = topics.create("data")
    publisher.configure(configured(1, broker.bootstrap, topic))
    send(publisher, 1, 0, 300)
    with contextlib.closing(opened(library, "kafka-sub", 2)) as subscriber:
        for epoch, first in ((1, 0), (2, 290)):
            subscriber.configure(configured(epoch, broker.bootstrap, topic, {0: first}))
            assert subscriber.undrained({"end_offsets": {0: 300}}) == 300 - first
            take(subscriber, 300 - first, first)
            assert subscriber.undrained({"end_offsets": {0: 300}}) == 0


def test_only_a_changed_producer_setting_makes_a_new_producer(
    publisher: Any, broker: LocalBroker, topics: Topics
) -> None:
    topic = topics.create("data")
    publisher.configure(configured(1, broker.bootstrap, topic))
    first = publisher._producer
    assert publisher.report_system()["batch_bytes"] >= 61
    publisher.configure(configured(2, broker.bootstrap, topic, rate=5.0))
    assert publisher._producer is first
    publisher.configure(configured(3, broker.bootstrap, topic, linger_ms=5.0))
    assert publisher._producer is not first
    publisher.configure(configured(4, broker.bootstrap, topic, acks="0"))
    send(publisher, 4, 0, 100)
    assert publisher.delivery() is None
    # It is unknown when the broker has them.
    wait_until(lambda: topics.end_offsets(topic) == {0: 100}, "the log to grow by what was sent")


STEPS: list[dict[str, Any]] = [
    {"acks": "1"},
    {"acks": "all", "idempotence": True, "max_in_flight": 1, "retries": 2, "delivery_timeout_ms": 20_000},
    {"acks": "all", "compression": "gzip", "buffer_memory": 2**20, "idempotence": True},
]


def test_a_producer_obeys_its_settings_and_tells_what_it_achieved(
    publisher: Any, broker: LocalBroker, topics: Topics
) -> None:
    topic = topics.create("data", partitions=2)
    before = {0: 0, 1: 0}
    for epoch, settings in enumerate(STEPS, 1):
        publisher.configure(configured(epoch, broker.bootstrap, topic, message_size=100, linger_ms=2000.0, **settings))
        began_ns = time.monotonic_ns()
        send(publisher, epoch, 0, 1000, 100)
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


def producer_ids(broker: LocalBroker, topic: str) -> int:
    """How many idempotent producers wrote to a topic, by the batches' headers in its log."""
    found: set[int] = set()
    for file in broker.folder.rglob(f"{topic}-0/*.log"):
        log, place = file.read_bytes(), 0
        while place + 61 <= len(log):
            (length,) = struct.unpack_from(">i", log, place + 8)
            found.update(struct.unpack_from(">q", log, place + 43))
            place += 12 + length
    return len(found - {-1})


def test_a_message_that_the_broker_does_not_take_has_failed(publisher: Any, broker: LocalBroker) -> None:
    topic = f"small-{uuid.uuid4().hex}"
    small = NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})  # without a name it is deleted before the answer comes
    admin.create_topics([small])[topic].result(SOON_S)
    publisher.configure(configured(1, broker.bootstrap, topic, message_size=3000, msg_batch=1))
    publisher.send(messages(1, 0, 3, 3000), 0)
    assert publisher.flush(SOON_S)
    delivery = publisher.delivery()
    assert (delivery.acknowledged, delivery.failed) == (0, 3)
    assert delivery.ack_latency.counts == []
    assert delivery.unacknowledged == [(0, 2)]


def test_answers_of_the_last_epoch_do_not_count(publisher: Any, broker: LocalBroker, topics: Topics) -> None:
    topic = topics.create("data")
    for epoch, count in ((1, 50), (2, 20)):
        publisher.configure(configured(epoch, broker.bootstrap, topic, linger_ms=200.0))
        publisher.send(messages(epoch, 0, count), 0)
    assert publisher.flush(SOON_S)
    assert publisher.delivery().acknowledged == 20


@pytest.mark.tier("test")
def test_a_cluster_that_does_not_answer(publisher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent, "CONNECT_TIMEOUT_S", 0.3)
    monkeypatch.setattr(kafka_python, "CONNECT_TIMEOUT_MS", 300)
    (port,) = free_ports("127.0.0.1", 1)
    with pytest.raises(OSError, match="does not answer"):
        publisher.configure(configured(1, f"127.0.0.1:{port}", "x"))


@contextmanager
def paused(broker: LocalBroker) -> Iterator[None]:
    """No thread of the broker runs: each of them is stopped by itself."""
    assert broker.pids is not None
    tasks = Path(f"/proc/{broker.pids[1]}/task")

    def stopped() -> bool:
        return all((task / "stat").read_text().rpartition(") ")[2].startswith("T") for task in tasks.iterdir())

    os.kill(broker.pids[1], signal.SIGSTOP)
    try:
        wait_until(stopped, "all of the broker's threads to stand still")
        yield
    finally:
        os.kill(broker.pids[1], signal.SIGCONT)


def test_a_broker_that_is_paused_and_dies_blocks_nobody(own_broker: LocalBroker) -> None:
    """Both libraries: a broker of its own is dear."""
    with ExitStack() as stack:
        topics = Topics(own_broker.bootstrap, {}, "dying")
        stack.callback(topics.end)
        pairs: list[tuple[Any, Any]] = []
        for library in (confluent, kafka_python):
            topic = topics.create(library.__name__.rpartition(".")[2])
            publisher, subscriber = opened(library, "kafka-pub", 1), opened(library, "kafka-sub", 2)
            stack.callback(publisher.close)
            stack.callback(subscriber.close)
            publisher.configure(configured(1, own_broker.bootstrap, topic))
            subscriber.configure(configured(1, own_broker.bootstrap, topic, {0: 0}))
            assert publisher.send(messages(1, 0, 300), 0) == 300
            wait_until(lambda: topics.end_offsets(topic) == {0: 300}, "the broker to have them")  # noqa: B023
            pairs.append((publisher, subscriber))

        with paused(own_broker):
            for publisher, _ in pairs:
                assert publisher.send(messages(1, 300, 1), 300) == 1
                began_ns = time.monotonic_ns()
                assert not publisher.flush(FLUSH_S)
                assert time.monotonic_ns() - began_ns > 0.95e9 * FLUSH_S
                delivery = publisher.delivery()
                # The broker has all 300, and may have been stopped before it acknowledged the last batch.
                assert 0 < delivery.acknowledged <= 300
                assert delivery.unacknowledged == [(delivery.acknowledged, 300)]
                # Their answers had come, and the one that did not come does not move their time to the flush's end.
                assert delivery.last_ack_ns < began_ns + 0.5e9 * FLUSH_S
        for publisher, subscriber in pairs:
            assert publisher.flush(SOON_S)
            take(subscriber, 301)

        kill(own_broker)
        wait_until(lambda: not own_broker.alive(), "its end")
        for publisher, subscriber in pairs:
            # There is no answer any more: a wait for it would not end.
            assert publisher.send(messages(1, 301, 100), 301) == 100
            assert not publisher.flush(0.3)
            delivery = publisher.delivery()
            assert (delivery.acknowledged, delivery.failed + delivery.pending) == (301, 100)
            assert delivery.unacknowledged == [(301, 400)]
            assert [len(subscriber.receive(timeout_s, 100)) for timeout_s in (0.3, 0)] == [0, 0]


def test_a_flush_waits_for_probes_too(
    publisher: Any, library: ModuleType, broker: LocalBroker, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create("data")
    monkeypatch.setattr(f"{type(publisher).__module__}.PROBE_FLUSH_S", 0.0)
    publisher.configure(configured(1, broker.bootstrap, topic, acks="all", linger_ms=60_000.0))
    publisher.probe(pack(0, 7, 1, 0, 24))
    assert publisher.flush(SOON_S)
    assert topics.end_offsets(topic) == {0: 1}


@pytest.mark.tier("quick")
def test_kinds_name_both_clients(library: ModuleType) -> None:
    kinds = library.kinds()
    assert {name: kind.role for name, kind in kinds.items()} == {"kafka-pub": "publisher", "kafka-sub": "subscriber"}
    assert all(kind.versions() for kind in kinds.values())
