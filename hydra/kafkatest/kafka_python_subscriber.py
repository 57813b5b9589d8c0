"""The subscribing side of kafka-python clients."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from hydra.client.transport import DEAF_AT_MOST_S
from hydra.kafkatest import kafka_python_common
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.kafka_python_common import common_config, explained, text
from hydra.kafkatest.membership import ASK_FOR_S, Membership
from hydra.kafkatest.properties import kafka_python_named
from hydra.kafkatest.transports import ConsumerTransport, fetch_config, session_config

LEAVE_WAIT_S: Final = 1.0


class KafkaPythonSubscriber(ConsumerTransport[Any]):
    """Takes batches from a KafkaConsumer."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self._group: _Group | None = None
        self._early: Mapping[TopicPartition, list[Any]] = {}

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        found, self._early = self._early or self._poll(timeout_s, limit), {}
        positions = self._positions if self._member is None else self._member.positions
        values: list[bytes] = []
        for partition, records in found.items():
            if partition.partition in positions:
                positions[partition.partition] = records[-1].offset + 1
            values += [r.value for r in records]
        if self._member is not None:
            self._commit(self._member.uncommitted())
            values += self._member.probes()
        return values

    def close(self) -> None:
        """See transport.py. A member leaves its group."""
        consumer, self._consumer = self._consumer, None
        self._early = {}
        if consumer is not None:
            with contextlib.suppress(KafkaError):
                # The library hands the partitions back first, see _Group.
                consumer.close(autocommit=False, timeout_ms=0 if self._member is None else LEAVE_WAIT_S * 1000)

    def _config(self, kafka: KafkaConfigure) -> dict[str, Any]:
        return consumer_config(self._client, kafka)

    def _open(self) -> None:
        with explained():
            if self._consumer is None:
                self._consumer = KafkaConsumer(**self._built_from)
            if self._member is not None:
                self._group = _Group(self._consumer, self._topic, self._member)
                self._group.join()
                return
            self._group = None
            mine = {TopicPartition(self._topic, p): offset for p, offset in self._positions.items()}
            self._consumer.assign(list(mine))
            for partition, offset in mine.items():
                self._consumer.seek(partition, offset)

    def _seek(self, positions: Mapping[int, int]) -> None:
        self._early = {}
        if self._group is not None:
            self._group.seek(list(positions))

    def _hear(self) -> None:
        self._early = self._poll(DEAF_AT_MOST_S, 1)

    def _commit(self, offsets: Mapping[int, int]) -> None:
        if self._group is not None:
            self._group.commit(offsets)

    def _committed(self, partitions: list[int]) -> dict[int, int]:
        return {} if self._group is None else self._group.committed(partitions)

    def _poll(self, timeout_s: float, limit: int) -> Mapping[TopicPartition, list[Any]]:
        try:
            found = self._opened().poll(timeout_ms=min(timeout_s, DEAF_AT_MOST_S) * 1000, max_records=limit)
        except KafkaError as e:
            if getattr(e, "retriable", False):
                return {}
            raise OSError(f"Kafka refuses to give its messages: {text(e)}") from None
        return found if self._group is None else self._group.settled(found)


class _Group(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """The member that a subscriber is, and what the library asks of it while partitions change hands.

    It asks on a thread of its own, where nothing may wait: the group's offsets are asked for afterwards.
    """

    def __init__(self, consumer: Any, topic: str, member: Membership) -> None:
        self._consumer = consumer
        self._topic = topic
        self._member = member
        self._given: list[int] | None = None

    def join(self) -> None:
        """Joins with a new connection.

        Raises:
            OSError: the cluster does not know the topic.
        """
        deadline = time.monotonic() + kafka_python_common.CONNECT_TIMEOUT_MS / 1000
        self._consumer.subscribe([self._topic], listener=self)
        # A leader of the group that has not heard of the topic would give everybody nothing, for minutes. One that
        # hears of it after it has joined joins again, and kafka-python 3.0 loses the partitions of that second time.
        while self._topic not in self._consumer.topics():
            if time.monotonic() > deadline:
                raise OSError(f"Kafka does not know {self._topic}")

    def settled(self, found: Mapping[TopicPartition, list[Any]]) -> Mapping[TopicPartition, list[Any]]:
        """What a poll gave, without what belongs before the positions of partitions that have just been given."""
        given, self._given = self._given, None
        if given is None:
            return found
        starts = self._member.given(given, self.committed(given))
        moved = {p for p, start in starts.items() if start != self._member.earliest(p)}
        self.seek(moved)
        return {tp: records for tp, records in found.items() if tp.partition not in moved}

    def seek(self, partitions: Iterable[int]) -> None:
        """Moves the library to the member's positions."""
        for p in partitions:
            with contextlib.suppress(ValueError, KeyError):  # it has been taken back meanwhile
                self._consumer.seek(TopicPartition(self._topic, p), self._member.positions[p])

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Tells the group where the member stands, if anywhere."""
        if offsets:
            self._consumer.commit_async(self._told(offsets), callback=self._on_commit)

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """The group's offsets. Where it does not tell, there are none: what is read twice is counted."""
        found: dict[int, int] = {}
        with contextlib.suppress(KafkaError):
            for p in partitions:
                offset = self._consumer.committed(TopicPartition(self._topic, p), timeout_ms=ASK_FOR_S * 1000)
                if offset is not None:
                    found[p] = offset
        return found

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """See kafka-python."""
        self._given = [tp.partition for tp in assigned if tp.topic == self._topic]
        for tp in assigned:
            # Right unless the group has committed something of this step, which cannot be asked for here.
            self._consumer.seek(tp, self._member.earliest(tp.partition))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        offsets = self._told(self._member.uncommitted(now=True))
        self._given = None
        self._member.lost()
        if offsets:
            with contextlib.suppress(KafkaError):
                await self._consumer.commit_async(offsets, callback=self._on_commit)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        self._given = None
        self._member.lost()

    def _told(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition(self._topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}

    def _on_commit(self, _: object, answer: object) -> None:
        if isinstance(answer, BaseException):
            self._member.refused()


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, Any]:
    """The library's configuration for these settings; ValueError where a property cannot be used."""
    strategy = {"partition_assignment_strategy": (RangePartitionAssignor,)} if kafka.group else {}
    return {
        **kafka_python_named({**fetch_config(kafka), **session_config(kafka)}, "subscriber"),
        **strategy,
        **common_config(client, kafka, "subscriber"),
        "group_id": kafka.group or None,
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }
