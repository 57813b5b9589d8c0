"""What the first contact with the user's cluster finds out: pure decisions, and a real broker that rejects a run."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, UsageError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.first_contact import (
    configs_of,
    reach_all,
    refused,
    require_brokers,
    require_in_sync,
    require_rights,
    require_size,
    unreachable,
)
from hydra.kafkatest.librdkafka import Complaint, text
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Cluster, Topics
from tests.integration.command import hydra, refusal


def error(code: int, output: str = "") -> KafkaException:
    return KafkaException(KafkaError(code, output))


def test_a_broker_that_cannot_be_reached_is_named_by_its_address() -> None:
    cluster = Cluster("c", 2, frozenset(), {1: "a:1", 2: "b:2"})
    one = unreachable("h:1", cluster, {2: "Connection refused"})
    assert str(one) == (
        "Kafka at h:1 advertises broker 2 at b:2, which does not answer: Connection refused; "
        "make b:2 reachable from this machine, or correct advertised.listeners of this broker"
    )
    assert "(2 of 2 brokers do not answer)" in str(unreachable("h:1", cluster, {1: "", 2: ""}))


@pytest.fixture
def full() -> Iterator[str]:
    """An address whose kernel drops the packets of further clients, because its queue is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.tier("test")
def test_brokers_that_refuse_or_drop_connections_are_all_tried_at_once(full: str) -> None:
    cluster = Cluster("c", 3, frozenset(), {1: "h:1", 2: full, 3: "127.0.0.1:1"})
    with pytest.raises(UsageError) as refused:
        reach_all("h:1", cluster, {})
    assert f"advertises broker 2 at {full}, which does not answer: no answer" in refused.value.what
    assert "(2 of 3 brokers do not answer)" in refused.value.what


@pytest.mark.tier("test")
def test_named_addresses_that_do_not_answer_are_no_error_while_another_one_does(broker: LocalBroker) -> None:
    system = KafkaSystem(load_scenario("kafka-fixed", {"kafka.bootstrap": f"127.0.0.1:1,{broker.bootstrap}"}))
    system.check()
    assert [str(warning) for warning in system.warnings()] == [
        "Kafka does not answer at 127.0.0.1:1 (Connection refused); "
        "clients use the other addresses of --servers; leave out those that are wrong"
    ]


@pytest.mark.parametrize(("copies", "brokers"), [(3, 1), (3, 2)])
def test_more_replicas_than_brokers_are_refused_with_both_numbers(copies: int, brokers: int) -> None:
    require_brokers("h:1", brokers, brokers)
    with pytest.raises(UsageError, match=f"{copies} replicas needs {copies} brokers, and Kafka at h:1 has {brokers} "):
        require_brokers("h:1", brokers, copies)


@pytest.mark.parametrize(
    ("more", "most", "refused"),
    [
        ({"settings.message_size": 2000}, 1000, "a message of 2000 bytes needs a batch of 2070 bytes, .* accepts 1000"),
        ({"settings.message_size": 2000}, 3000, ""),
        ({"settings.message_size": 2000}, None, ""),
        ({"settings.message_size": 2000, "settings.compression": "zstd"}, 1000, ""),
        ({"settings.message_size": 2000, "kafka.topic": {"max.message.bytes": "5000"}}, 1000, ""),
        ({"settings.message_size": 2000, "kafka.topic": {"max.message.bytes": "500"}}, 3000, "max.message.bytes"),
        ({"settings.message_sizes": "24-100:1,100-4000:1"}, 3000, "a message of 4000 bytes"),
    ],
)
def test_a_message_that_is_too_large_is_refused_with_both_numbers(
    more: dict[str, Any], most: int | None, refused: str
) -> None:
    scenario = load_scenario("kafka-fixed", {"kafka.bootstrap": "h:1", **more})
    if not refused:
        require_size("h:1", scenario, most)
        return
    with pytest.raises(UsageError, match=refused):
        require_size("h:1", scenario, most)


@pytest.mark.parametrize(
    ("code", "output", "what"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "", "does not allow this user to create and describe topics"),
        (KafkaError.POLICY_VIOLATION, "at most 3 partitions", "refuses the topics of this run: at most 3 partitions"),
        (KafkaError.INVALID_CONFIG, "", "refuses the topics of this run: Broker: "),
    ],
)
def test_a_cluster_that_would_reject_the_topics_says_why(code: int, output: str, what: str) -> None:
    assert what in refused("h:1", error(code, output)).what


def test_an_empty_reason_is_replaced_by_that_of_its_code() -> None:
    group = KafkaError.GROUP_AUTHORIZATION_FAILED
    assert text(error(group, "ConsumerGroupDescribe: ")) == "ConsumerGroupDescribe: Broker: Group authorization failed"
    assert text(error(group, "no: really")) == "no: really"


def test_a_broker_that_answers_is_not_blamed_for_an_earlier_connection() -> None:
    complaint = Complaint()
    complaint(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert complaint.explain(error(KafkaError.POLICY_VIOLATION, "too many")) == "too many"
    assert "Connection refused" in complaint.explain(error(KafkaError._TIMED_OUT))


def test_a_port_of_another_protocol_is_not_a_matter_of_sizes() -> None:
    complaint = Complaint()
    complaint(KafkaError(KafkaError._BAD_MSG, "Invalid response size 1213486160: increase receive.message.max.bytes"))
    assert complaint.explain(TimeoutError()) == "what answers at this port does not speak Kafka"


@pytest.mark.tier("test")
def test_a_cluster_that_has_answered_before_is_not_a_matter_of_its_address() -> None:
    def silent() -> None:
        raise TimeoutError

    with contextlib.closing(Topics("127.0.0.1:1", {}, "")) as topics:
        with pytest.raises(ServerError, match="look at --servers"):
            topics._ask(silent, 1.0, "answer")
        topics._ask(lambda: None, 1.0, "answer")
        with pytest.raises(ServerError, match="see the brokers' logs, because a full disk"):
            topics._ask(silent, 1.0, "answer")


@pytest.mark.parametrize(("acks", "refused"), [("all", True), ("1", False)])
def test_more_replicas_in_sync_than_replicas_are_refused_with_both_numbers(acks: str, refused: bool) -> None:
    more = {"kafka.bootstrap": "h:1", "settings.acks": acks, "kafka.topic": {"min.insync.replicas": "2"}}
    scenario = load_scenario("kafka-fixed", more)
    if not refused:
        require_in_sync(scenario)
        return
    with pytest.raises(UsageError, match=r"needs 2 replicas in sync .*, and the topic has 1"):
        require_in_sync(scenario)


def test_every_configuration_of_a_topic_is_tried() -> None:
    more = {"sweep.vary": {"partitions": [1, 2]}, "kafka.replication_factor": 2, "kafka.bootstrap": "h:1"}
    scenario = load_scenario("kafka-fixed", more)
    assert sorted((config.partitions, config.replicas) for config in configs_of(scenario)) == [(1, 2), (2, 2)]


def test_rights_on_a_topic_that_are_missing_are_named() -> None:
    class Limited(Topics):
        def __init__(self) -> None: ...

        bootstrap = "h:1"

        def lacks(self, topic: str, rights: object) -> list[str]:
            return ["READ", "DELETE"]

    with pytest.raises(UsageError, match=r"does not allow this user to read and delete topics .* grant Create"):
        require_rights(Limited(), "hydra-run")


def test_an_existing_topic_cannot_be_used_and_the_error_says_so() -> None:
    assert refusal("kafka-fixed", "--topic", "orders") == (
        "--topic: Hydra measures with a topic of its own, and cannot use an existing one; leave it out"
    )


def test_a_cluster_that_would_reject_a_run_is_known_before_anything_is_made(broker: LocalBroker) -> None:
    def system(**more: object) -> KafkaSystem:
        return KafkaSystem(load_scenario("kafka-fixed", {"kafka.bootstrap": broker.bootstrap, **more}))

    system().check()
    for more, what in (
        ({"kafka.topic": {"min.insync.replicas": "1", "retention.ms": "-5"}}, "refuses the topics of this run: .*"),
        ({"kafka.replication_factor": 3}, "needs 3 brokers, and Kafka at .* has 1 broker"),
    ):
        with pytest.raises(UsageError, match=what):
            system(**more).check()


@pytest.mark.tier("all")
def test_a_command_that_the_cluster_would_reject_leaves_nothing(broker: LocalBroker, tmp_path: Path) -> None:
    more = ("--replication-factor", 3, "--out", tmp_path / "run")
    done = hydra("kafka-fixed", "--servers", broker.bootstrap, *more, expect=2)
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
