"""What a scenario asks of brokers, of topics or of Kafka's own tools is refused or translated when it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError, MissingDependencyError, UsageError
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.java_properties import consumer_config, java_config, producer_config, with_files, written
from hydra.kafkatest.system import KafkaSystem
from hydra.native import client_command

THREE = {"server.count": 3}
USERS = {"kafka.bootstrap": "h:9092"}


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"settings.replication_factor": 2}, "settings.replication_factor: 2 replicas need as many brokers"),
        ({**THREE, "sweep.vary.replication_factor": [1, 3, 4]}, "sweep.vary.replication_factor: 4 replicas"),
        ({"settings.partitions": 0}, "settings.partitions: must be 1 to 10000, not 0"),
        ({"settings.kill_broker_at": 0.5}, "needs at least 2 brokers, and server.count is 1"),
        ({**THREE, "settings.kill_broker_at": 1.0}, "settings.kill_broker_at: must be above 0 and below 1, not 1"),
        ({"kafka.tls": True, "kafka.properties": {"ssl.ca.pem": "x"}}, "kafka.properties.ssl.ca.pem: is Hydra's own"),
        ({**USERS, "kafka.tls": True}, "kafka.tls: has no effect in this run: it needs no kafka.bootstrap"),
        ({**USERS, "settings.kill_broker_at": 0.5}, "kill_broker_at: has no effect in this run: it needs no kafka.b"),
        ({**USERS, "sweep.vary.kill_broker_at": [0.5]}, "sweep.vary.kill_broker_at: has no effect in this run"),
        ({**USERS, "kafka.broker": {"num.io.threads": "4"}}, "kafka.broker: Hydra changes no settings"),
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
def test_what_cannot_be_is_refused_in_one_line(overrides: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as e:
        load_scenario("kafka-fixed", overrides)
    assert text in str(e.value)
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
    with pytest.raises(ConfigError, match=r"sweep\.points\.1\.replication_factor: 3 replicas need as many brokers"):
        load_scenario("kafka-fixed", {"sweep": {"duration_s": 1.0, "points": points}})


TOOL = {"client": "kafka-tool", "settings.messages": 1000}
PEM = "-----BEGIN X-----\nab\n-----END X-----\n"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"settings.messages": None}, "kafka-tool needs settings.messages"),
        ({"settings.payload": "json", "settings.message_size": 100}, "kafka-tool makes no JSON"),
        ({"sweep.vary": {"payload": ["zeros", "json"]}, "settings.message_size": 100}, "kafka-tool makes no JSON"),
        ({"settings.message_size_min": 24}, "records of one size"),
    ],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, Any], text: str) -> None:
    chosen = {key: value for key, value in (TOOL | changes).items() if value is not None}
    with pytest.raises(UsageError, match=text):
        load_scenario("kafka-fixed", chosen)


def test_a_search_is_refused() -> None:
    with pytest.raises(UsageError, match="kafka-tool only counts"):
        load_scenario("kafka-rate", {"client": TOOL["client"]})


@pytest.mark.parametrize("sizes", [{"settings.message_size": 10}, {"sweep.vary": {"message_size": [10, 100]}}])
def test_only_its_records_may_be_shorter_than_a_header(sizes: dict[str, Any]) -> None:
    assert load_scenario("kafka-fixed", TOOL | sizes).client == "kafka-tool"
    with pytest.raises(UsageError, match="must be 24"):
        load_scenario("kafka-fixed", sizes)


@pytest.mark.parametrize(
    ("properties", "config"),
    [
        ({"security.protocol": "ssl", "ssl.ca.location": "/ca"}, {
            "security.protocol": "SSL", "ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM",
        }),
        ({"sasl.mechanism": "plain", "sasl.username": 'a"b', "sasl.password": "c\\"}, {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="a\\"b" password="c\\\\";',
        }),
        ({"ssl.endpoint.identification.algorithm": "none"}, {"ssl.endpoint.identification.algorithm": ""}),
        # The other role's are left out.
        ({"message.max.bytes": "7", "max.partition.fetch.bytes": "8"}, {"max.request.size": "7"}),
    ],
)  # fmt: skip
def test_properties_in_javas_names(properties: dict[str, str], config: dict[str, str]) -> None:
    assert java_config(properties, "publisher") == config


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"ssl.crl.location": "/x"}, "nothing like the property 'ssl.crl.location'"),
        ({"sasl.mechanism": "GSSAPI", "sasl.password": "geheim"}, "for SASL GSSAPI"),
    ],
)
def test_properties_that_java_does_not_have(properties: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError, match=text) as refusal:
        java_config(properties, "publisher")
    assert "geheim" not in str(refusal.value)


def test_a_key_and_its_certificate_are_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(PEM)
    config = with_files(java_config({"ssl.key.location": str(tmp_path / "key")}, "subscriber"))
    assert config == {"ssl.keystore.key": PEM, "ssl.keystore.type": "PEM"}


def test_the_text_of_a_file_of_properties() -> None:
    assert written({"a": " b\\", "c": PEM, "d": "ü"}) == (
        "a=\\ b\\\\\nc=-----BEGIN X-----\\nab\\n-----END X-----\\n\nd=\\u00fc\n"
    )


def test_a_delivery_that_may_not_take_long_leaves_a_request_no_longer() -> None:
    kafka = KafkaConfigure(bootstrap="h:1", topic="t", offsets={}, delivery_timeout_ms=5000, linger_ms=100.4)
    config = producer_config(3, kafka, 100)
    assert (config["linger.ms"], config["request.timeout.ms"], config["client.id"]) == ("100", "4900", "hydra-3")
    assert "retries" not in config
    assert consumer_config(3, kafka)["fetch.max.wait.ms"] == "500"


def test_a_native_client_without_tls_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_command, "find", lambda: Path("/hydra-client"))
    monkeypatch.setattr(client_command, "_help", lambda _: "KIND: kafka-pub, kafka-sub\n\nTLS: nats\n")
    security = {"kafka.properties": {"security.protocol": "sasl_ssl"}}
    for more in ({**USERS, **security}, {"kafka.tls": True}):
        system = KafkaSystem(load_scenario("kafka-fixed", {"client": "native", **more}))
        with pytest.raises(MissingDependencyError, match=r"without TLS for kafka.*choose another --implementation"):
            system.program("subscriber")
    KafkaSystem(load_scenario("kafka-fixed", {"client": "native"})).program("subscriber")
