"""Runs whose subscribers are a consumer group: the account, what is left on the cluster, and a group in use."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics, group_id
from tests.integration.command import assert_all_arrived, hydra, table
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("all")

GROUP = ("--set", "settings.group=all", "--set", "warmup_s=0", "--rate", 200, "--duration", 0.5, "--partitions", 2)


@contextmanager
def other_consumer(broker: LocalBroker, topic: str, group: str) -> Iterator[Consumer]:
    """A consumer of another program that has joined a group."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        wait_until(joined, "a consumer to join its group", LONG_S)
        yield consumer
    finally:
        consumer.close()


@pytest.mark.parametrize("exact", [False, True])
def test_a_group_gets_everything_once_and_nothing_of_it_is_left(
    exact: bool, broker: LocalBroker, tmp_path: Path
) -> None:
    run, name = tmp_path / "run", uuid.uuid4().hex
    own = ("--set", f"settings.group={name}", "--set", f"kafka.exact_group={str(exact).lower()}")
    hydra("kafka-fixed", "--bootstrap", broker.bootstrap, *GROUP, *own, "--clients", "1,3", "--out", run)
    one, three = table(run)
    for row in (one, three):
        assert (row["group"], row["failed_clients"], row["duplicates"]) == (name, "0", "0")
        assert_all_arrived({**row, "total_rx": int(row["clients"]) * float(row["total_rx"])}, 100)
        assert float(row["rebalances"]) >= 1
        assert float(row["rebalance_ms"]) > 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    left = [found.group_id for found in admin.list_consumer_groups().result(SOON_S).valid]
    assert not [group for group in left if name in group]


def test_a_group_of_somebody_else_is_refused_and_left_alone(
    broker: LocalBroker, topics: Topics, tmp_path: Path
) -> None:
    topic, name = topics.create("other"), uuid.uuid4().hex
    own = ("--set", f"settings.group={name}", "--set", "kafka.exact_group=true")
    with other_consumer(broker, topic, name) as consumer:
        words = ("kafka-fixed", "--bootstrap", broker.bootstrap, *GROUP, *own, "--clients", "1")
        requests = hydra(*words, "--out", tmp_path / "run", expect=2)
        assert f"the consumer group {name}" in requests.stderr
        assert "1 members" in requests.stderr
        consumer.poll(0.1)
        assert len(consumer.assignment()) == 1
    assert not [t for t in topics.describe().topics if t.startswith("hydra-run-")]


def test_a_group_is_deleted_when_nobody_is_in_it(broker: LocalBroker, topics: Topics) -> None:
    topic = topics.create("data")
    group = group_id(topic, "all", exact=False)
    assert topics.group(group) == (False, ())
    with other_consumer(broker, topic, group) as consumer:
        known, members = topics.group(group)
        assert known
        assert [member.partition(" on ")[0] for member in members] == ["rdkafka"]
        topics.remove_groups([group])
        assert topics.groups_of(topic) == [group]
        consumer.poll(0.1)
        assert consumer.assignment()
    topics.remove_groups(topics.groups_of(topic))
    assert topics.groups_of(topic) == []
