"""The topic of a run's steps: one as long as its configuration stays, another one where that changes."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import ServerError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.step_topic import DataTopic, first_settings, topic_config_of
from hydra.kafkatest.topic_registry import TopicRegistry
from hydra.kafkatest.topics import Topics
from hydra.model import with_values


@pytest.mark.parametrize(
    ("overrides", "partitions", "replicas", "config"),
    [
        ({"kafka.partitions": 4}, 4, 1, {"retention.ms": "7200000"}),
        ({"settings.partitions": 2}, 2, 1, {"retention.ms": "7200000"}),
        ({"sweep.vary.partitions": [3, 6]}, 3, 1, {"retention.ms": "7200000"}),
        ({"settings.keep": True}, 1, 1, {"retention.ms": "-1", "retention.bytes": "-1"}),
        ({"kafka.topic": {"retention.ms": "5"}}, 1, 1, {"retention.ms": "5"}),
        ({"kafka.bootstrap": "h:1", "settings.replication_factor": 3}, 1, 3, {}),
    ],
)
def test_a_steps_topic_is_as_its_settings_say_or_else_as_the_table_says(
    overrides: dict[str, object], partitions: int, replicas: int, config: dict[str, str]
) -> None:
    scenario = load_scenario("kafka-fixed", {"sweep.duration_s": 1800, **overrides})
    needed = topic_config_of(scenario, first_settings(scenario))
    assert (needed.partitions, needed.replicas, needed.settings) == (partitions, replicas, config)


@pytest.mark.tier("test")
def test_a_step_that_needs_another_topic_gets_it_and_the_old_one_goes_a_step_later(
    broker: LocalBroker, topics: Topics, tmp_path: Path
) -> None:
    scenario = load_scenario("kafka-fixed", {"kafka.topic": {"max.message.bytes": "70000"}})
    records = TopicRegistry(tmp_path)
    stranger = Topics(broker.bootstrap, {}, uuid.uuid4().hex[:8])
    others = stranger.create("data")
    data = DataTopic(topics, 1, records, "run")
    configs = [topic_config_of(scenario, with_values(scenario.settings, {"partitions": n})) for n in (2, 3)]
    assert data.use(configs[0])
    first = data.name
    assert not data.use(configs[0])
    assert data.use(configs[1])
    second = data.name
    assert sorted(data.end_offsets()) == [0, 1, 2]
    assert {first, second, others} <= topics.describe().topics
    assert set(records.all()) == {first, second}
    assert not data.use(configs[1])
    assert first not in topics.describe().topics
    assert set(records.all()) == {second}
    assert data.close() == ()
    assert topics.reach().topics & {first, second, others} == {others}
    assert records.all() == {}
    stranger.close()


@pytest.mark.tier("test")
def test_a_topic_that_is_there_already_is_neither_used_nor_removed(broker: LocalBroker, tmp_path: Path) -> None:
    run = uuid.uuid4().hex[:8]
    other, own = Topics(broker.bootstrap, {}, run), Topics(broker.bootstrap, {}, run)
    others = other.create("data")
    scenario = load_scenario("kafka-fixed")
    data = DataTopic(own, 1, TopicRegistry(tmp_path), "run")
    with pytest.raises(ServerError, match=f"refuses to create {others}: .*already exists"):
        data.use(topic_config_of(scenario, scenario.settings))
    assert data.close() == ()
    assert others in other.describe().topics
    other.close()
