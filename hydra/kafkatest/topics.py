"""The controller's side of Kafka: a run's own topics and their offsets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

# The stubs do not export the two, the documentation does.
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from hydra.errors import BrokerError
from hydra.kafkatest.properties import confluent_config

CONNECT_TIMEOUT_S: Final = 8.0
REQUEST_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.02
PREFIX: Final = "hydra"

_LEADER_MOVES: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
    }
)
"""What a partition answers while its leader changes, or is not quite ready."""
_NEWBORN: Final = _LEADER_MOVES | {KafkaError.UNKNOWN_TOPIC_OR_PART}
"""What a topic may answer in the first moments after its creation."""

_T = TypeVar("_T")


class Topics:
    """The topics of one run on one cluster; it deletes those that it created, and never another.

    Arguments:
        bootstrap: ``host:port``, or several with commas.
        properties: the user's Kafka properties (properties.py).
        run: the run's name; every topic starts with it.

    Raises:
        UsageError: a property cannot be used.
    """

    def __init__(self, bootstrap: str, properties: Mapping[str, str], run: str) -> None:
        self._bootstrap = bootstrap
        self._run = run
        self._mine: list[str] = []
        self._last_error = ""
        self._admin = _admin(bootstrap, properties, self._on_error)

    @property
    def created(self) -> tuple[str, ...]:
        """Names of the topics that exist because of this object."""
        return tuple(self._mine)

    def check(self, timeout_s: float = CONNECT_TIMEOUT_S) -> int:
        """Asks the cluster for its brokers; returns how many there are.

        Raises:
            BrokerError: nobody answered in ``timeout_s``.
        """
        try:
            return len(self._admin.list_topics(timeout=timeout_s).brokers)
        except KafkaException as e:
            raise self._error("does not answer", e) from None

    def create(
        self, name: str, partitions: int = 1, replication_factor: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Creates ``hydra-<run>-<name>`` and waits until every partition has a leader; returns the full name.

        Raises:
            BrokerError: the cluster is not reachable, refuses, or names no leaders in time.
        """
        self.check()
        topic = f"{PREFIX}-{self._run}-{name}"
        new = NewTopic(topic, partitions, replication_factor, config=dict(config or {}))
        self._result(
            self._admin.create_topics([new], request_timeout=REQUEST_TIMEOUT_S)[topic], f"refuses to create {topic}"
        )
        self._mine.append(topic)
        # The leaders answer for their partitions some ms after the metadata names them.
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while len(self._offsets(topic, latest, _NEWBORN)) < partitions:
            if time.monotonic() > deadline:
                raise BrokerError(f"{topic} at {self._bootstrap} does not get its {partitions} partitions")
            self._admin.poll(POLL_S)
        return topic

    def start_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the first message kept, by partition. Errors as for ``end_offsets``."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset that the next message will get, by partition.

        Raises:
            BrokerError: the cluster is not reachable, or does not know the topic.
        """
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def delete(self, topic: str) -> None:
        """Deletes a topic of this object's and waits until the cluster does not list it any more.

        Raises:
            BrokerError: it is not one of ours, or the cluster refuses.
        """
        if topic not in self._mine:
            raise BrokerError(f"the topic {topic} was not created by this run", "delete it with Kafka's own tools")
        future = self._admin.delete_topics([topic], request_timeout=REQUEST_TIMEOUT_S)[topic]
        self._result(future, f"refuses to delete {topic}")
        self._mine.remove(topic)
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while topic in self._listed() and time.monotonic() < deadline:
            self._admin.poll(POLL_S)

    def close(self) -> None:
        """Deletes what is left of this object's topics; a cluster that is gone keeps them, silently."""
        for topic in tuple(self._mine):
            with contextlib.suppress(BrokerError):
                self.delete(topic)

    def _listed(self) -> set[str]:
        try:
            return set(self._admin.list_topics(timeout=CONNECT_TIMEOUT_S).topics)
        except KafkaException as e:
            raise self._error("does not list its topics", e) from None

    def _offsets(self, topic: str, which: OffsetSpec, passing: frozenset[int] = _LEADER_MOVES) -> dict[int, int]:
        """Asks again while the answer is an error that passes."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                return self._ask_offsets(topic, which)
            except KafkaException as e:
                if e.args[0].code() not in passing or time.monotonic() > deadline:
                    raise self._error(f"does not tell the offsets of {topic}", e) from None
            self._admin.poll(POLL_S)

    def _ask_offsets(self, topic: str, which: OffsetSpec) -> dict[int, int]:
        described = self._admin.list_topics(topic, timeout=CONNECT_TIMEOUT_S).topics[topic]
        if described.error is not None:
            raise KafkaException(described.error)
        asked = {TopicPartition(topic, p): which for p in sorted(described.partitions)}
        futures = self._admin.list_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
        return {tp.partition: int(f.result(REQUEST_TIMEOUT_S + 5.0).offset) for tp, f in futures.items()}

    def _result(self, future: Future[_T], what: str) -> _T:
        try:
            return future.result(REQUEST_TIMEOUT_S + 5.0)
        except KafkaException as e:
            raise self._error(what, e) from None

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def _error(self, what: str, e: KafkaException) -> BrokerError:
        self._admin.poll(0)  # lets the library say what it ran into
        detail = self._last_error or _text(e)
        return BrokerError(
            f"Kafka at {self._bootstrap} {what}: {detail}", "look at --bootstrap and the --kafka-prop settings"
        )


def cluster_id(bootstrap: str, timeout_s: float) -> str | None:
    """The id of the cluster behind an address, None when nobody answers in ``timeout_s``."""
    return membership(bootstrap, timeout_s)[0]


def membership(bootstrap: str, timeout_s: float) -> tuple[str | None, int]:
    """The id of the cluster behind an address and how many brokers it has; (None, 0) when nobody answers in time."""
    with contextlib.suppress(KafkaException):
        answer = _admin(bootstrap, {}, lambda _: None).list_topics(timeout=timeout_s)
        return answer.cluster_id, len(answer.brokers)
    return None, 0


def _admin(bootstrap: str, properties: Mapping[str, str], on_error: object) -> AdminClient:
    config: dict[str, object] = {
        # The library's own lines on stderr would tear the progress display; its errors come as exceptions.
        "log_level": 0,
        **confluent_config(properties, role=None),
        "bootstrap.servers": bootstrap,
        "client.id": f"{PREFIX}-controller",
        "error_cb": on_error,
    }
    return AdminClient(config)  # type: ignore[arg-type]  # the stub leaves callbacks out


def _text(e: KafkaException) -> str:
    error = e.args[0]
    return error.str() if isinstance(error, KafkaError) else str(error)
