"""The controller's side of Kafka: a run's own topics and their offsets, and its consumer groups.

A thread of its own makes every call of the cluster, so the controller serves its clients meanwhile.
"""

from __future__ import annotations

import contextlib
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from hydra.errors import ServerError, UsageError
from hydra.kafkatest.access_refusals import rejection
from hydra.kafkatest.cluster_calls import (
    ASK_GROUP_FOR_S,
    CHANGE_TIMEOUT_S,
    DELETE_TIMEOUT_S,
    PREFIX,
    QUESTION_TIMEOUT_S,
    ClusterCalls,
    admin_client,
)
from hydra.kafkatest.librdkafka import Complaint, code, is_refusal
from hydra.system import Waiting, wait_alone
from hydra.system.worker_thread import WorkerThread

REACH_TIMEOUT_S: Final = 1.6
"""How long a cluster may take for the first answer, before anything is created."""
POLL_S: Final = 0.02
_LONGEST_PART: Final = 150
"""The most characters of a run's name in its topic's name, which may have 249 in all."""

_LEADER_MOVES: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
    }
)
"""Errors of a partition whose leader changes, or is not ready yet."""
_NEWBORN: Final = _LEADER_MOVES | {KafkaError.UNKNOWN_TOPIC_OR_PART}
"""Errors of a topic just after its creation."""

_BROKER_LOST: Final = _LEADER_MOVES | {
    KafkaError._TRANSPORT,  # names of the library's own codes begin with an underscore
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
}
"""Errors of requests for a partition whose leader is dead, before the cluster has detected that."""


_ANSWERED_BEFORE: Final = (
    "it has answered this run before: see the brokers' logs, because a full disk or too few open files end a broker"
)

_T = TypeVar("_T")


class UnreachedError(UsageError):
    """A cluster does not answer, or rejects this user; ``reason`` is why, without its addresses."""

    def __init__(self, what: str, reason: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's description of itself; ``addresses`` are those that its brokers advertise, by their ids."""

    id: str
    brokers: int
    topics: frozenset[str]
    addresses: Mapping[int, str] = field(default_factory=dict)


def unreachable_broker(bootstrap: str, broker: int, address: str, why: str, more: str = "") -> UnreachedError:
    """The error for a broker that does not answer at the address that it advertises.

    Args:
        bootstrap: the addresses at which the cluster answered.
        broker: its id.
        address: the advertised address.
        why: why it does not answer.
        more: what else is known, with a space before it.
    """
    return UnreachedError(
        f"Kafka at {bootstrap} advertises broker {broker} at {address}, which does not answer: {why}{more}",
        why,
        f"make {address} reachable from this machine, or correct advertised.listeners of this broker",
    )


class Topics(ClusterCalls):
    """The topics of one run on one cluster; only ``remove`` deletes topics that this object did not create.

    Arguments:
        bootstrap: ``host:port``, or several, separated by commas.
        properties: the user's Kafka properties (properties.py).
        run: the run's name, which every topic's name contains.
        wait: waits for the cluster.

    Raises:
        UsageError: a property cannot be used.
    """

    def __init__(self, bootstrap: str, properties: Mapping[str, str], run: str, wait: Waiting = wait_alone) -> None:
        self._complaint = Complaint()
        super().__init__(bootstrap, properties, self._complaint)
        self._run = run
        self._own_topics: list[str] = []
        self._remedy = "look at --servers and the --kafka-prop settings"
        self._background = WorkerThread(wait)

    @property
    def bootstrap(self) -> str:
        """The addresses of the cluster."""
        return self._bootstrap

    @property
    def created(self) -> tuple[str, ...]:
        """Names of the topics that exist because of this object."""
        return tuple(self._own_topics)

    def reach(self) -> Cluster:
        """The cluster's description, requested before anything is created.

        Raises:
            UnreachedError: the cluster does not answer within about ``REACH_TIMEOUT_S``, or rejects this user.
        """
        deadline = time.monotonic() + REACH_TIMEOUT_S
        while True:
            try:
                return self.describe(REACH_TIMEOUT_S / 4)
            except ServerError as e:
                if self._complaint.refused or time.monotonic() > deadline:
                    found = rejection(self._bootstrap, self._properties, self._complaint.error)
                    if found is None and (broker := self._complaint.broker) and broker[1] not in self._bootstrap:
                        # The library asks this broker, and not the address that answered.
                        why = rejection(broker[1], self._properties, None)
                        reason = why.reason if why else "no answer in time"
                        raise unreachable_broker(self._bootstrap, *broker, reason) from None
                    what = str(found.at(f"Kafka at {self._bootstrap}")) if found else e.what
                    reason = found.reason if found else self._complaint.explain(TimeoutError())
                    raise UnreachedError(what, reason, (found and found.remedy) or e.remedy) from None

    def describe(self, timeout_s: float = QUESTION_TIMEOUT_S) -> Cluster:
        """The cluster's description.

        Raises:
            ServerError: the cluster did not answer within ``timeout_s``.
        """
        found = self._ask(lambda: self._admin.list_topics(timeout=timeout_s), timeout_s, "answer")
        addresses = {number: f"{broker.host}:{broker.port}" for number, broker in found.brokers.items()}
        return Cluster(found.cluster_id or "", len(found.brokers), frozenset(found.topics), addresses)

    def lacks(self, topic: str, rights: Iterable[str]) -> list[str]:
        """Those of these rights (names of ``AclOperation``) that this user does not have on a topic.

        Raises:
            ServerError: the cluster rejects the call or does not answer.
        """
        held = self._ask(lambda: self._rights(topic), QUESTION_TIMEOUT_S, f"describe {topic}")
        # A cluster that does not state the rights is not doubted.
        return [right for right in rights if held and right not in held]

    def name(self, name: str) -> str:
        """The full name of a topic of this run."""
        return f"{PREFIX}-{self._run}-{name}"

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, str] | None = None,
        placement: list[list[int]] | None = None,
    ) -> str:
        """Creates ``hydra-<run>-<name>`` and waits until every partition has a leader; returns the full name.

        Args:
            name: the last part of the topic's name.
            partitions: the number of partitions.
            replication_factor: the number of replicas of each partition.
            config: the settings of the topic.
            placement: the brokers' ids for each partition, its leader first; None leaves it to the cluster.

        Raises:
            ServerError: the cluster is not reachable, rejects the topic, or elects no leaders in time.
        """
        return self.create_all([name], partitions, replication_factor, config, placement)[0]

    def create_all(
        self,
        names: Sequence[str],
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, str] | None = None,
        placement: list[list[int]] | None = None,
    ) -> list[str]:
        """Creates several topics alike; see :meth:`create`."""
        topics = [self.name(name) for name in names]
        replicas: dict[str, Any] = {"replication_factor": replication_factor}
        if placement is not None:
            replicas = {"replica_assignment": placement}
        self.describe()
        # Recorded now, so the topics are also deleted if this call is interrupted.
        self._own_topics += topics
        what = topics[0] if len(topics) == 1 else f"{topics[0]} and {len(topics) - 1} more"
        self._ask(lambda: self._create(topics, partitions, config or {}, replicas), CHANGE_TIMEOUT_S, f"create {what}")
        deadline = time.monotonic() + CHANGE_TIMEOUT_S
        # The leaders answer for their partitions some ms after the metadata names them.
        while any(len(each) < partitions for each in self._offsets(topics, _NEWBORN, deadline)):
            if time.monotonic() > deadline:
                raise ServerError(f"{what} at {self._bootstrap} does not get its {partitions} partitions")
            self._pause()
        return topics

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset that the next message will get, by partition.

        Raises:
            ServerError: the cluster is not reachable, or has no such topic.
        """
        return self._offsets([topic])[0]

    def end_offsets_of(self, topics: Sequence[str], within_s: float | None = None) -> list[dict[int, int]]:
        """The ``end_offsets`` of several topics.

        Args:
            topics: their names.
            within_s: how long the answer may take after a restart of the brokers; None: they were not restarted.
        """
        if within_s is None:
            return self._offsets(topics)
        return self._offsets(topics, _BROKER_LOST, time.monotonic() + within_s)

    def led_offsets(self, topic: str, within_s: float) -> dict[int, int]:
        """The ``end_offsets`` of the partitions with a leader, once every leader answers.

        Use this call after a broker died: its partitions get another leader, or none, within ``within_s``.

        Raises:
            ServerError: a leader of a partition did not answer within ``within_s``.
        """
        return self._offsets([topic], _BROKER_LOST, time.monotonic() + within_s, led=True)[0]

    def forget(self, topic: str, before: Mapping[int, int]) -> None:
        """Requests the deletion of the messages before an offset of each partition, and does not wait for it.

        A cluster that rejects the request keeps them until the topic is deleted.
        """
        offsets = [TopicPartition(topic, partition, offset) for partition, offset in before.items() if offset > 0]
        if offsets:
            self._admin.delete_records(offsets, request_timeout=QUESTION_TIMEOUT_S)

    def delete(self, topic: str) -> None:
        """Deletes a topic that this object created, and waits until the cluster does not list it any more.

        Raises:
            ServerError: this object did not create it, or the cluster rejects the call or does not answer.
        """
        if topic not in self._own_topics:
            raise ServerError(
                f"the topic {topic} was not created by this run", "delete the topic with Kafka's own tools"
            )
        self.delete_all([topic])

    def delete_all(self, topics: Sequence[str]) -> None:
        """Deletes these topics, without those that this object did not create; see :meth:`delete`."""
        created = [topic for topic in topics if topic in self._own_topics]
        if not created:
            return
        what = created[0] if len(created) == 1 else f"{created[0]} and {len(created) - 1} more"
        self._ask(lambda: self._deleted(created), DELETE_TIMEOUT_S, f"delete {what}")
        self._await_removal(created)
        self._own_topics = [topic for topic in self._own_topics if topic not in created]

    def remove(self, topic: str) -> bool:
        """Deletes a topic of any creator, and waits until the cluster does not list it any more.

        Returns:
            False if the cluster reports that there is no such topic. A topic that it does not list may exist: a new
            one, or one that it hides from this user.

        Raises:
            ServerError: the cluster rejects the call or does not answer.
        """
        was_removed = self._ask(lambda: self._deleted([topic]), DELETE_TIMEOUT_S, f"delete {topic}")
        self._await_removal([topic])
        return was_removed

    def _await_removal(self, topics: Sequence[str]) -> None:
        deadline = time.monotonic() + DELETE_TIMEOUT_S
        while left := self.describe().topics & {*topics}:
            if time.monotonic() > deadline:
                raise ServerError(f"Kafka at {self._bootstrap} still lists {min(left)} after it was deleted")
            self._pause()

    def group(self, group: str) -> tuple[bool, tuple[str, ...]]:
        """Whether the cluster has a consumer group, and the group's members.

        Raises:
            ServerError: the cluster rejects the call or does not answer.
        """
        what = f"describe the consumer group {group}"
        return self._ask(lambda: self._group(group), 2 * ASK_GROUP_FOR_S, what)

    def remove_groups(self, groups: Iterable[str]) -> None:
        """Deletes consumer groups without members.

        A group that stays, also because this user may not delete it, loses its offsets with its topic; the cluster
        removes it after its last member has left.
        """
        for group in groups:
            with contextlib.suppress(ServerError):
                what = f"delete the consumer group {group}"
                self._ask(partial(self._delete_group, group), 2 * ASK_GROUP_FOR_S, what)

    def groups_of(self, topic: str) -> list[str]:
        """The consumer groups that are named after a topic and that this user may see."""
        with contextlib.suppress(ServerError):
            return self._ask(lambda: self._groups_of(topic), 2 * ASK_GROUP_FOR_S, "list the consumer groups")
        return []

    def close(self) -> None:
        """Deletes the remaining topics of this object, if the cluster answers.

        ``created`` then contains those that were not deleted.
        """
        with contextlib.suppress(ServerError):
            if self._own_topics:
                self.describe(REACH_TIMEOUT_S)  # detects a dead cluster once, and early
            self.delete_all(self.created)
        self.end()

    def end(self) -> None:
        """Ends the thread; topics that were created stay."""
        self._background.close()

    def _offsets(
        self,
        topics: Sequence[str],
        passing: frozenset[int] = _LEADER_MOVES,
        deadline: float | None = None,
        *,
        led: bool = False,
    ) -> list[dict[int, int]]:
        """Requests offsets again while the errors are transient; ``led`` leaves out partitions without a leader.

        The offsets are those of each topic, by partition.
        """
        deadline = time.monotonic() + QUESTION_TIMEOUT_S if deadline is None else deadline
        what = f"return the offsets of {topics[0]}"
        while True:
            try:
                return self._background.ask(lambda: self._offsets_of(topics, led=led), 2 * QUESTION_TIMEOUT_S)
            except (KafkaException, TimeoutError) as e:
                if code(e) not in passing or time.monotonic() > deadline:
                    raise self._error(what, e) from None
            self._pause()

    def _pause(self) -> None:
        """Waits a moment before the next request.

        Raises:
            ServerError: earlier requests, which were given up, still occupy the thread.
        """
        try:
            self._background.ask(lambda: self._admin.poll(POLL_S), POLL_S)
        except TimeoutError as e:
            raise self._error("answer", e) from None

    def _ask(self, call: Callable[[], _T], within_s: float, what: str) -> _T:
        try:
            answer = self._background.ask(call, within_s)
        except (KafkaException, TimeoutError) as e:
            raise self._error(what, e) from None
        self._complaint.forget()
        self._remedy = _ANSWERED_BEFORE
        return answer

    def _error(self, what: str, e: KafkaException | TimeoutError) -> ServerError:
        self._admin.poll(0)  # lets the library report its errors
        verb = "refuses to" if is_refusal(e) else "does not"
        return ServerError(
            f"Kafka at {self._bootstrap} {verb} {what}: {self._complaint.explain(e)}",
            self._remedy,
        )

    # --- calls of the thread -----------------------------------------------------------------------------------------

    def _create(
        self, topics: Sequence[str], partitions: int, config: Mapping[str, str], replicas: Mapping[str, Any]
    ) -> None:
        failed = self._failed_creations(topics, partitions, config, replicas)
        for topic, e in failed.items():
            # Such a topic was not created, or another process created it; after a timeout it may come.
            if is_refusal(e) and code(e) != KafkaError.REQUEST_TIMED_OUT:
                self._own_topics.remove(topic)
        for e in failed.values():
            raise e


def topic_part(name: str) -> str:
    """A run's name as a part of a topic's name: the letters, digits, dots, dashes and underscores that Kafka accepts.

    An ä becomes an a; characters without such a letter become a dash.
    """
    plain = unicodedata.normalize("NFKD", name)
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", kept)[:_LONGEST_PART]


def group_id(topic: str, name: str, *, exact: bool) -> str:
    """The id of a step's group on the cluster, "" for none; only with ``exact`` may other runs have the same."""
    return name if exact or not name else f"{topic}-{name}"


def membership(bootstrap: str, timeout_s: float, properties: Mapping[str, str]) -> tuple[str | None, int]:
    """The id of the cluster at an address and its number of brokers; (None, 0) if it does not answer in time."""
    with contextlib.suppress(KafkaException):
        answer = admin_client(bootstrap, properties, lambda _: None).list_topics(timeout=timeout_s)
        return answer.cluster_id, len(answer.brokers)
    return None, 0
