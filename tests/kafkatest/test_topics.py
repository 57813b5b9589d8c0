"""A run's own topics on a cluster, and their offsets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from hydra.client.server_interface import free_ports
from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, UsageError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Topics, topic_part
from hydra.model import with_values
from hydra.system import wait_alone
from tests.suite.waiting import SOON_S, wait_until


def test_the_life_of_a_topic(topics: Topics, broker: LocalBroker) -> None:
    name = topics.create("data", partitions=3)
    assert name == topics.name("data")
    assert topics.end_offsets(name) == {0: 0, 1: 0, 2: 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, count in ((0, 5), (2, 1)):
        for _ in range(count):
            producer.produce(name, b"x", None, partition)
    assert producer.flush(SOON_S) == 0
    assert topics.end_offsets(name) == {0: 5, 1: 0, 2: 1}
    topics.delete(name)
    with pytest.raises(ServerError):
        topics.end_offsets(name)


def test_only_own_topics_are_deleted_and_made(topics: Topics, broker: LocalBroker) -> None:
    foreign = topics.create("data")
    with closing(Topics(broker.bootstrap, {}, "other")) as other:
        assert other.name("data") == "hydra-other-data"
        with pytest.raises(ServerError, match="not created by this run"):
            other.delete(foreign)
    with pytest.raises(ServerError, match="already exists"):
        topics.create("data")
    with pytest.raises(ServerError, match=r"(?i)replication factor"):
        topics.create("more", replication_factor=3)
    assert topics.end_offsets(foreign) == {0: 0}


@pytest.mark.tier("test")
def test_a_cluster_that_does_not_answer_is_refused_before_anything_is_made() -> None:
    (port,) = free_ports("127.0.0.1", 1)
    system = KafkaSystem(load_scenario("kafka-fixed", {"kafka.bootstrap": f"127.0.0.1:{port}"}))
    with pytest.raises(UsageError) as e:
        system.check()
    for text in (f"127.0.0.1:{port} does not answer", "Connection refused", "--servers"):
        assert text in str(e.value)
    assert "\n" not in str(e.value)


def test_a_pause_that_finds_no_turn_is_told_like_any_other_silence() -> None:
    """An earlier question, which was given up, still keeps the thread."""
    silent = "Kafka at h:1 does not answer"
    with closing(Topics("h:1", {}, "run", lambda *_: False)) as it, pytest.raises(ServerError, match=silent):
        it._pause()


@pytest.mark.parametrize(
    ("run", "part"),
    [
        ("kafka-fixed-20261121-171131", "kafka-fixed-20261121-171131"),
        ("Größe ist 3 µm", "Gro-e-ist-3-m"),
        ("my run", "my-run"),
        ("a/b\n..", "a-b-.."),
        ("運行", "-"),
        ("x" * 255, "x" * 150),
    ],
)
def test_any_folder_name_gives_a_topic_that_kafka_takes(run: str, part: str) -> None:
    assert topic_part(run) == part


@pytest.mark.tier("all")
def test_between_steps_all_but_the_last_one_is_deleted(broker: LocalBroker, tmp_path: Path) -> None:
    scenario = load_scenario("kafka-fixed", {"kafka.bootstrap": broker.bootstrap, "kafka.partitions": 2})
    system, no_acks = KafkaSystem(scenario), with_values(scenario.settings, {"acks": "0"})
    system.open("run", tmp_path, wait_alone)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})

    def beginnings(topic: str) -> dict[int, int]:
        offsets = {p: reader.get_watermark_offsets(TopicPartition(topic, p), SOON_S) for p in (0, 1)}
        return {p: first for p, (first, _) in offsets.items()}

    try:
        kept = []
        for step in range(3):
            reported = system.configure(scenario.settings)
            topic = reported["topic"]
            assert reported["offsets"] == {"0": 5 * step, "1": 0}
            for _ in range(5):
                producer.produce(topic, b"x", None, 0)
            assert producer.flush(SOON_S) == 0
            assert system.finish() == {"end_offsets": {"0": 5 * (step + 1), "1": 0}}
            beginning = {0: max(0, 5 * (step - 1)), 1: 0}
            wait_until(lambda: beginnings(topic) == beginning, "the log to begin with the last step")  # noqa: B023
            end = system.servers.log_end(no_acks)
            assert end is not None
            kept.append(end - beginning[0])
        assert system.servers.log_end(scenario.settings) == system.servers.log_end(no_acks)
        assert kept == [5, 10, 10]
    finally:
        system.close()
        reader.close()
    assert not list((tmp_path / "topics").glob("*"))
