"""Calls of a Kafka cluster that block, so a thread of its own makes them, and not the controller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection, TopicPartition

# The stubs do not export the last two, the documentation does.
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from hydra.client.tls import ClientTls
from hydra.errors import UsageError
from hydra.kafkatest.librdkafka import code, text
from hydra.kafkatest.properties import confluent_config, kafka_python_arguments, kafka_python_config, trusting

QUESTION_TIMEOUT_S: Final = 4.0
"""How long a cluster may take to answer during a run, for metadata or offsets."""
CHANGE_TIMEOUT_S: Final = 30.0
"""How long a cluster may take to create a topic and to elect leaders of all its partitions."""
DELETE_TIMEOUT_S: Final = 8.0
ASK_GROUP_FOR_S: Final = 8.0
"""How long a cluster may take to answer a request about consumer groups."""
PREFIX: Final = "hydra"
_NO_GROUP: Final = frozenset({KafkaError.GROUP_ID_NOT_FOUND})

_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class ClusterCalls:
    """The calls of one cluster; KafkaException: it rejects a call, or does not answer.

    Arguments:
        bootstrap: ``host:port``, or several, separated by commas.
        properties: the user's Kafka properties (properties.py).
        on_error: takes the library's errors.

    Raises:
        UsageError: a property cannot be used.
    """

    def __init__(self, bootstrap: str, properties: Mapping[str, str], on_error: object) -> None:
        self._bootstrap = bootstrap
        self._properties = properties
        self._admin = admin_client(bootstrap, properties, on_error)

    def _failed_creations(
        self, topics: Sequence[str], partitions: int, config: Mapping[str, str], replicas: Mapping[str, Any]
    ) -> dict[str, KafkaException]:
        """Creates topics; returns the error of each that the cluster has not created, by its name.

        Args:
            topics: their names.
            partitions: the number of partitions of each.
            config: the settings of each.
            replicas: the number or the places of their replicas, as the library names them.
        """
        new = [NewTopic(topic, partitions, config=dict(config), **replicas) for topic in topics]
        failed: dict[str, KafkaException] = {}
        for topic, answer in self._admin.create_topics(new, request_timeout=CHANGE_TIMEOUT_S).items():
            try:
                answer.result(CHANGE_TIMEOUT_S)
            except KafkaException as e:
                failed[topic] = e
        return failed

    def _deleted(self, topics: list[str]) -> bool:
        """Whether all of these topics were there."""
        answers = self._admin.delete_topics(topics, request_timeout=DELETE_TIMEOUT_S)
        all_existed = True
        for answer in answers.values():
            try:
                answer.result(DELETE_TIMEOUT_S)
            except KafkaException as e:
                if code(e) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                all_existed = False  # another process deleted it, or it was never created
        return all_existed

    def _offsets_of(self, topics: Sequence[str], *, led: bool) -> list[dict[int, int]]:
        if len(topics) == 1:
            found = self._metadata(topics[0], QUESTION_TIMEOUT_S)
        else:
            found = self._admin.list_topics(timeout=QUESTION_TIMEOUT_S)
            for topic in topics:
                if topic not in found.topics:
                    raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, topic))
                if (error := found.topics[topic].error) is not None:
                    raise KafkaException(error)
        offsets = self._offset_requests(found, topics, QUESTION_TIMEOUT_S, led=led)
        return [offsets[topic] for topic in topics]

    def _rights(self, topic: str) -> frozenset[str]:
        """The names of the operations on a topic that this user may do."""
        topics = TopicCollection([topic])
        description = self._admin.describe_topics(
            topics, include_authorized_operations=True, request_timeout=QUESTION_TIMEOUT_S
        )
        return frozenset(
            right.name for right in description[topic].result(QUESTION_TIMEOUT_S).authorized_operations or ()
        )

    def _metadata(self, topic: str, timeout_s: float) -> ClusterMetadata:
        found = self._admin.list_topics(topic, timeout=timeout_s)
        error = found.topics[topic].error
        if error is not None:
            raise KafkaException(error)
        return found

    def _offset_requests(
        self, found: ClusterMetadata, topics: Sequence[str], timeout_s: float, *, led: bool = False
    ) -> dict[str, dict[int, int]]:
        """Requests offsets from the leader of every partition, or of every partition with a leader."""
        requests = {
            TopicPartition(topic, p): _LATEST
            for topic in topics
            for p, partition in sorted(found.topics[topic].partitions.items())
            if not led or partition.leader >= 0
        }
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        if not requests:
            return offsets
        for tp, answer in self._admin.list_offsets(requests, request_timeout=timeout_s).items():
            offsets[tp.topic][tp.partition] = int(answer.result(timeout_s).offset)
        return offsets

    def leaders(self, topic: str, timeout_s: float) -> frozenset[str]:
        """``host:port`` of every broker that leads a partition, after each of them has answered.

        The call blocks, so the controller's thread must not make it.

        Raises:
            KafkaException, TimeoutError: the cluster, or a leader, did not answer within twice ``timeout_s``.
        """
        found = self._metadata(topic, timeout_s)
        self._offset_requests(found, [topic], timeout_s)
        led = {partition.leader for partition in found.topics[topic].partitions.values()}
        return frozenset(f"{b.host}:{b.port}" for b in found.brokers.values() if b.id in led)

    def leader(self, topic: str, partition: int, timeout_s: float) -> str:
        """``host:port`` of the broker that leads a partition; blocks, as ``leaders`` does.

        Raises:
            KafkaException: the cluster did not answer, or the partition has no leader now.
        """
        found = self._metadata(topic, timeout_s)
        leader = found.topics[topic].partitions[partition].leader
        if leader not in found.brokers:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return f"{found.brokers[leader].host}:{found.brokers[leader].port}"

    def move(self, topic: str, partition: int, brokers: int, timeout_s: float) -> list[int]:
        """Moves a partition to the next brokers in the order of their ids, 1 to ``brokers``; returns their ids.

        Blocks, as ``leaders`` does, until the cluster has accepted the move, which then continues.

        Raises:
            KafkaException: the cluster did not answer, or rejects the move.
        """
        # confluent-kafka has no such call.
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError as OtherError
        from kafka.structs import TopicPartition as OtherPartition

        replicas = self._metadata(topic, timeout_s).topics[topic].partitions[partition].replicas
        moved = [replica % brokers + 1 for replica in replicas]
        try:
            tls = {name: value for name, value in self._properties.items() if name in trusting(ClientTls())}
            arguments = kafka_python_arguments(kafka_python_config(tls, None))
            admin = KafkaAdminClient(bootstrap_servers=self._bootstrap.split(","), **arguments)
            try:
                moves = admin.alter_partition_reassignments({OtherPartition(topic, partition): moved})
            finally:
                admin.close()
        except OtherError as e:
            raise KafkaException(KafkaError(KafkaError._FAIL, str(e))) from e
        if refused := next((error for error in moves.values() if error is not None), None):
            raise KafkaException(KafkaError(KafkaError._FAIL, getattr(refused, "__name__", str(refused))))
        return moved

    def _group(self, group: str) -> tuple[bool, tuple[str, ...]]:
        """Whether the cluster has a group, and the client id and host of each member."""
        future = self._admin.describe_consumer_groups([group], request_timeout=ASK_GROUP_FOR_S)[group]
        try:
            found = future.result(ASK_GROUP_FOR_S)
        except KafkaException as e:
            if code(e) in _NO_GROUP:
                return False, ()
            raise
        members = tuple(f"{member.client_id} on {member.host.lstrip('/')}" for member in found.members)
        # Kafka before 4.0 describes a group that does not exist as a dead one.
        return found.state != ConsumerGroupState.DEAD, members

    def _delete_group(self, group: str) -> bool:
        """Deletes a group; False while it still has members."""
        try:
            self._admin.delete_consumer_groups([group], request_timeout=ASK_GROUP_FOR_S)[group].result(ASK_GROUP_FOR_S)
        except KafkaException as e:
            if code(e) == KafkaError.NON_EMPTY_GROUP:
                return False
            if code(e) not in _NO_GROUP:
                raise
        return True

    def _groups_of(self, topic: str) -> list[str]:
        """The groups whose id begins with a topic's name, and that this user may see."""
        found = self._admin.list_consumer_groups(request_timeout=ASK_GROUP_FOR_S).result(ASK_GROUP_FOR_S)
        return sorted(group.group_id for group in found.valid if group.group_id.startswith(f"{topic}-"))


def admin_client(bootstrap: str, properties: Mapping[str, str], on_error: object) -> AdminClient:
    """A client for requests about a cluster; raises UsageError if the library rejects a property."""
    config: dict[str, object] = {
        # The library's lines on stderr would break the progress display; its errors arrive as exceptions.
        "log_level": 0,
        **confluent_config(properties, role=None),
        "bootstrap.servers": bootstrap,
        "client.id": f"{PREFIX}-controller",
        "error_cb": on_error,
    }
    try:
        return AdminClient(config)  # type: ignore[arg-type]  # the stub leaves callbacks out
    except KafkaException as e:
        raise UsageError(
            f"Kafka's library refuses the configuration: {text(e)}", "look at the --kafka-prop settings"
        ) from None
