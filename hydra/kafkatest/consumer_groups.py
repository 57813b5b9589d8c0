"""The controller's side of consumer groups: their ids on the cluster, whose they are, and their end.

Every question waits for the cluster: it is for the thread of :class:`hydra.kafkatest.topics.Topics`.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from hydra.kafkatest.librdkafka import code

ASK_FOR_S: Final = 8.0
"""How long a cluster has to answer one question about groups."""
_ABSENT: Final = frozenset({KafkaError.GROUP_ID_NOT_FOUND})


def group_id(topic: str, name: str, *, exact: bool) -> str:
    """What a step's group is called on the cluster, "" for none: of no other run unless the user says ``exact``."""
    return name if exact or not name else f"{topic}-{name}"


def there(admin: AdminClient, group: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the cluster knows a group, and who its members are: client id and host.

    Raises:
        KafkaException: the cluster refuses, or does not answer.
    """
    future = admin.describe_consumer_groups([group], request_timeout=ASK_FOR_S)[group]
    try:
        found = future.result(ASK_FOR_S)
    except KafkaException as e:
        if code(e) in _ABSENT:
            return False, ()
        raise
    members = tuple(f"{member.client_id} on {member.host.lstrip('/')}" for member in found.members)
    # Kafka before 4.0 describes a group that does not exist as a dead one.
    return found.state != ConsumerGroupState.DEAD, members


def delete(admin: AdminClient, group: str) -> bool:
    """Deletes a group; False while it still has members.

    Raises:
        KafkaException: the cluster refuses, or does not answer.
    """
    try:
        admin.delete_consumer_groups([group], request_timeout=ASK_FOR_S)[group].result(ASK_FOR_S)
    except KafkaException as e:
        if code(e) == KafkaError.NON_EMPTY_GROUP:
            return False
        if code(e) not in _ABSENT:
            raise
    return True


def of_topic(admin: AdminClient, topic: str) -> list[str]:
    """The groups whose id begins with a topic's name, as far as this user may see them.

    Raises:
        KafkaException: the cluster refuses, or does not answer.
    """
    found = admin.list_consumer_groups(request_timeout=ASK_FOR_S).result(ASK_FOR_S)
    return sorted(group.group_id for group in found.valid if group.group_id.startswith(f"{topic}-"))
