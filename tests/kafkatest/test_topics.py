from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from hydra.errors import BrokerError
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.template import free_ports
from hydra.kafkatest.topics import Topics


def test_the_life_of_a_topic(broker: EmbeddedBroker) -> None:
    topics = Topics(broker.bootstrap, {}, "life")
    name = topics.create("data", partitions=3)
    assert name == "hydra-life-data"
    assert topics.end_offsets(name) == {0: 0, 1: 0, 2: 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, count in ((0, 5), (2, 1)):
        for _ in range(count):
            producer.produce(name, b"x", None, partition)
    assert producer.flush(10) == 0
    assert topics.end_offsets(name) == {0: 5, 1: 0, 2: 1}
    assert topics.start_offsets(name) == {0: 0, 1: 0, 2: 0}
    topics.delete(name)
    with pytest.raises(BrokerError):
        topics.end_offsets(name)


def test_only_own_topics_are_deleted(topics: Topics, broker: EmbeddedBroker) -> None:
    foreign = topics.create("data")
    with pytest.raises(BrokerError, match="not created by this run"):
        Topics(broker.bootstrap, {}, "other").delete(foreign)
    with pytest.raises(BrokerError, match="already exists"):
        topics.create("data")
    assert topics.end_offsets(foreign) == {0: 0}


def test_a_topic_that_the_cluster_cannot_hold(topics: Topics) -> None:
    with pytest.raises(BrokerError, match=r"(?i)replication factor"):
        topics.create("data", replication_factor=3)


def test_nobody_answers() -> None:
    (port,) = free_ports("127.0.0.1", 1)
    began = time.monotonic()
    with pytest.raises(BrokerError) as e:
        Topics(f"127.0.0.1:{port}", {}, "x").create("data")
    assert time.monotonic() - began < 10
    assert f"127.0.0.1:{port}" in str(e.value)
    assert "--bootstrap" in str(e.value)
