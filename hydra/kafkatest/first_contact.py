"""The first contact with the user's cluster: what a run needs of the cluster is known before anything is made on it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from itertools import product
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from hydra.errors import ServerError, UsageError
from hydra.kafkatest.cluster_calls import PREFIX, admin_client
from hydra.kafkatest.librdkafka import code, is_refusal, text
from hydra.kafkatest.record_batch_size import batch_bytes, longest_key
from hydra.kafkatest.settings import groups_of, spec_of
from hydra.kafkatest.step_topic import TopicConfig, topic_config_of
from hydra.kafkatest.topics import Cluster, Topics, UnreachedError, unreachable_broker
from hydra.model import Scenario, with_values
from hydra.system.worker_thread import in_time

_BROKERS_WITHIN_S: Final = 3.0
"""How long all brokers together may take for their first answers."""
_ANSWER_WITHIN_S: Final = 1.5
_NO_RIGHT: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
_NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_DELETION_DISABLED})
RIGHTS: Final = ("READ", "WRITE")
"""The rights on a topic that a run needs, and that Kafka states only of one that exists."""
_IN_SYNC: Final = "min.insync.replicas"
_LIMIT: Final = "message.max.bytes"
_LIMIT_OF_TOPIC: Final = "max.message.bytes"


def examine(scenario: Scenario) -> dict[str, str]:
    """Asks the user's cluster for everything that the run will need, and makes nothing.

    Returns:
        Why each of several addresses that the user names does not answer.

    Raises:
        UsageError: the cluster does not answer, one of its brokers cannot be reached, or it would reject the run.
    """
    spec = spec_of(scenario)
    with contextlib.closing(Topics(spec.bootstrap, spec.properties, "")) as topics:
        cluster = topics.reach()
        silent = reach_all(spec.bootstrap, cluster, spec.properties)
        require_brokers(spec.bootstrap, cluster.brokers, max(config.replicas for config in configs_of(scenario)))
        require_in_sync(scenario)
        admin = admin_client(spec.bootstrap, spec.properties, lambda _: None)
        try:
            require_size(spec.bootstrap, scenario, _largest(admin, cluster))
            _try_topics(admin, scenario)
            _try_description(admin)
        except (KafkaException, TimeoutError) as e:
            if is_refusal(e):
                raise refused(spec.bootstrap, e) from None
            raise UsageError(f"Kafka at {spec.bootstrap} does not answer: {text(e)}", "check --servers") from None
        for group in groups_of(scenario):
            _try_group(topics, group if spec.exact_group else f"{PREFIX}-check-{secrets.token_hex(4)}-{group}")
    return silent


def reach_all(bootstrap: str, cluster: Cluster, properties: Mapping[str, str]) -> dict[str, str]:
    """Asks every broker at the address that it advertises, and at each of several that the user names, all at once.

    Returns:
        Why each address that the user names does not answer; the libraries choose among them.

    Raises:
        UsageError: an advertised address does not answer.
    """
    named = [address.strip() for address in bootstrap.split(",")] if "," in bootstrap else []
    further = {number: address for number, address in cluster.addresses.items() if address != bootstrap}

    def why_silent(address: str) -> str:
        with contextlib.closing(Topics(address, properties, "")) as topics:
            try:
                topics.reach()
            except UnreachedError as e:
                return e.reason
        return ""

    names = list(dict.fromkeys([*named, *further.values()]))
    answers = dict(zip(names, in_time(why_silent, names, _BROKERS_WITHIN_S), strict=True))
    why = {address: "no answer in time" if answer is None else answer for address, answer in answers.items()}
    silent = {number: why[address] for number, address in further.items() if why[address]}
    if silent:
        raise unreachable(bootstrap, cluster, silent)
    return {address: why[address] for address in named if why[address]}


def unreachable(bootstrap: str, cluster: Cluster, silent: Mapping[int, str]) -> UsageError:
    """The error for brokers that do not answer at the addresses that they advertise.

    Args:
        bootstrap: the addresses at which the cluster answered.
        cluster: its description.
        silent: why each of these brokers does not answer, by its id.
    """
    number, why = next(iter(silent.items()))
    more = f" ({len(silent)} of {cluster.brokers} brokers do not answer)" if len(silent) > 1 else ""
    return unreachable_broker(bootstrap, number, cluster.addresses[number], why, more)


def require_brokers(bootstrap: str, brokers: int, copies: int) -> None:
    """Raises UsageError if a topic has more replicas than the cluster has brokers."""
    if copies > brokers:
        have = "1 broker" if brokers == 1 else f"{brokers} brokers"
        raise UsageError(
            f"a topic with {copies} replicas needs {copies} brokers, and Kafka at {bootstrap} has {have}",
            "lower --replication-factor, or add brokers",
        )


def require_in_sync(scenario: Scenario) -> None:
    """Raises UsageError if acknowledgements of all replicas need more of them in sync than a topic has."""
    for config in configs_of(scenario):
        least = config.settings.get(_IN_SYNC, "")
        if "all" in scenario.values_of("acks") and least.isdecimal() and int(least) > config.replicas:
            raise UsageError(
                f"acks all needs {least} replicas in sync ({_IN_SYNC}), and the topic has {config.replicas}",
                f"raise --replication-factor, or lower kafka.topic.{_IN_SYNC}",
            )


def require_size(bootstrap: str, scenario: Scenario, most_bytes: int | None) -> None:
    """Raises UsageError if the cluster takes no uncompressed message as large as the largest of a scenario.

    Args:
        bootstrap: the addresses of the cluster.
        scenario: the scenario.
        most_bytes: the largest batch that the brokers accept by default; None: it is unknown.
    """
    of_topic = spec_of(scenario).topic.get(_LIMIT_OF_TOPIC, "")
    most_bytes = int(of_topic) if of_topic.isdecimal() else most_bytes
    keys = max(int(value) for value in scenario.values_of("keys") if isinstance(value, int))
    needed = batch_bytes(1, scenario.largest_bytes, longest_key(keys))
    if most_bytes is None or needed <= most_bytes or "none" not in scenario.values_of("compression"):
        return
    raise UsageError(
        f"a message of {scenario.largest_bytes} bytes needs a batch of {needed} bytes, and Kafka at {bootstrap} "
        f"accepts {most_bytes} ({_LIMIT_OF_TOPIC if of_topic else _LIMIT})",
        f"lower --message-size, or raise the limit with --set kafka.topic.{_LIMIT_OF_TOPIC}={needed}",
    )


def _largest(admin: AdminClient, cluster: Cluster) -> int | None:
    """The largest batch in bytes that a broker accepts by default; None if this user may not read it."""
    if not cluster.addresses:
        return None
    resource = ConfigResource(ResourceType.BROKER, str(min(cluster.addresses)))
    try:
        found = admin.describe_configs([resource], request_timeout=_ANSWER_WITHIN_S)[resource].result(_ANSWER_WITHIN_S)
    except KafkaException as e:
        if is_refusal(e):
            return None
        raise
    return int(found[_LIMIT].value) if _LIMIT in found else None


def configs_of(scenario: Scenario) -> list[TopicConfig]:
    """The different configurations of the topics of all rows."""
    found: list[TopicConfig] = []
    for partitions, replicas in product(*(scenario.values_of(name) for name in ("partitions", "replication_factor"))):
        values = {"partitions": partitions, "replication_factor": replicas}
        config = topic_config_of(scenario, with_values(scenario.settings, values))
        if config not in found:
            found.append(config)
    return found


def _try_topics(admin: AdminClient, scenario: Scenario) -> None:
    """Has the cluster validate topics as those of the run, by its rights, limits and policy, without creating them."""
    new = [
        NewTopic(_unused(), config.partitions, config.replicas, config=dict(config.settings))
        for config in configs_of(scenario)
    ]
    answers = admin.create_topics(new, validate_only=True, request_timeout=_ANSWER_WITHIN_S)
    for answer in answers.values():
        answer.result(2 * _ANSWER_WITHIN_S)


def _try_description(admin: AdminClient) -> None:
    """Has a topic deleted that does not exist, which Kafka rejects otherwise for a user who may not describe it.

    A request for its description could create it.
    """
    for answer in admin.delete_topics([_unused()], request_timeout=_ANSWER_WITHIN_S).values():
        try:
            answer.result(2 * _ANSWER_WITHIN_S)
        except KafkaException as e:
            if code(e) not in _NO_TOPIC:
                raise


def _unused() -> str:
    return f"{PREFIX}-check-{secrets.token_hex(8)}"


def refused(bootstrap: str, e: BaseException) -> UsageError:
    """The error for a cluster that would reject the topics of the run."""
    if code(e) in _NO_RIGHT:
        return no_right(bootstrap, "create and describe")
    return UsageError(
        f"Kafka at {bootstrap} refuses the topics of this run: {text(e)}",
        "change --partitions, --replication-factor or the settings under kafka.topic",
    )


def no_right(bootstrap: str, what: str) -> UsageError:
    """The error for a user who lacks a right on the topics of a run.

    Args:
        bootstrap: the addresses of the cluster.
        what: the missing rights, as text.
    """
    return UsageError(
        f"Kafka at {bootstrap} does not allow this user to {what} topics whose names begin with {PREFIX}-",
        f"grant Create, Describe, Read, Write and Delete on topics with the prefix {PREFIX}-",
    )


def require_rights(topics: Topics, topic: str) -> None:
    """Raises UsageError if this user may not read or write a topic of the run, which exists only now."""
    if missing := topics.lacks(topic, RIGHTS):
        raise no_right(topics.bootstrap, " and ".join(right.lower() for right in missing))


def _try_group(topics: Topics, group: str) -> None:
    """Asks for a consumer group.

    Raises:
        UsageError: the group has members, or this user may not use it.
    """
    try:
        known_and_free(topics, group)
    except ServerError as e:
        raise UsageError(e.what, "grant Read on this consumer group, or name another one") from None


def known_and_free(topics: Topics, group: str) -> bool:
    """Whether the cluster has a consumer group already.

    Raises:
        UsageError: the group has members.
        ServerError: the cluster does not answer.
    """
    known, members = topics.group(group)
    if members:
        raise UsageError(
            f"the consumer group {group} at {topics.bootstrap} is in use: {len(members)} members, one is {members[0]}",
            "name another group, or wait until these members have left",
        )
    return known
