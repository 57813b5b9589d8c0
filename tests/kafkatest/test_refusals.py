"""What a scenario asks of brokers and topics is refused when it is loaded, in one line that names the key."""

from __future__ import annotations

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError

THREE = {"server.count": 3}
USERS = {"kafka.bootstrap": "h:9092"}


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"settings.replication_factor": 2}, "settings.replication_factor: 2 replicas need as many brokers"),
        ({**THREE, "sweep.vary.replication_factor": [1, 3, 4]}, "sweep.vary.replication_factor: 4 replicas"),
        ({"settings.partitions": 0}, "settings.partitions: must be 1 to 10000, not 0"),
        ({"settings.kill_broker_at": 0.5}, "needs at least 2 brokers, and server.count is 1"),
        ({**THREE, "settings.kill_broker_at": 1.0}, "above 0 and below 1, not 1.0"),
        ({**THREE, **USERS, "settings.kill_broker_at": 0.5}, "brokers of yours are never killed"),
        ({**THREE, **USERS, "sweep.vary.kill_broker_at": [0.5]}, "sweep.vary.kill_broker_at: brokers of yours"),
        ({**USERS, "kafka.broker": {"num.io.threads": "4"}}, "kafka.broker: brokers of yours keep their settings"),
        ({"kafka.broker": {"listeners": "PLAINTEXT://:1"}}, "kafka.broker.listeners: is Hydra's own to set"),
        ({"kafka.broker": {"ssl.keystore.type": "JKS"}}, "kafka.broker.ssl.keystore.type: is Hydra's own"),
        ({"kafka.broker": {"num.io.thread": "4"}}, "did you mean num.io.threads?"),
        ({"kafka.broker": {"num.io.threads": "many"}}, "must be a whole number, not 'many'"),
        ({"kafka.broker": {"num.io.threads": "0"}}, "must be at least 1, not '0'"),
        ({"kafka.broker": {"compression.zstd.level": "23"}}, "at most 22, not '23'"),
        ({"kafka.broker": {"auto.leader.rebalance.enable": "yes"}}, "must be true or false, not 'yes'"),
        ({"kafka.topic": {"min.insync.replica": "2"}}, "did you mean min.insync.replicas?"),
        ({"kafka.topic": {"compression.type": "lz5"}}, "must be one of uncompressed, zstd, lz4"),
        ({"kafka.topic": {"num.io.threads": "4"}}, "no setting of this name for a topic"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as e:
        load_scenario("kafka-fixed", overrides)
    assert said in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "overrides",
    [
        {**THREE, "sweep.vary.replication_factor": [1, 3]},
        {**THREE, "settings.kill_broker_at": 0.5},
        {**USERS, "settings.replication_factor": 5},
        {**USERS, "kafka.topic": {"a.setting.of.a.newer.kafka": "1"}},
        {"kafka.broker": {"num.io.threads": "4", "log.flush.interval.messages": "1"}},
        {"kafka.topic": {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}},
    ],
)
def test_what_can_be_is_loaded(overrides: dict[str, object]) -> None:
    assert load_scenario("kafka-fixed", overrides).system == "kafka"


def test_points_are_looked_at_like_all_other_rows() -> None:
    points = [{"name": "one", "replication_factor": 1}, {"name": "three", "replication_factor": 3}]
    with pytest.raises(ConfigError, match=r"sweep\.points\.replication_factor: 3 replicas need as many brokers"):
        load_scenario("kafka-fixed", {"sweep": {"duration_s": 1.0, "points": points}})
