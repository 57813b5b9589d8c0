"""The subscribing side of kafka-python clients."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    KafkaError,
)
from kafka.structs import OffsetAndMetadata

from hydra.client.transport import DEAF_AT_MOST_S, read_system
from hydra.kafkatest import kafka_python_common
from hydra.kafkatest.control_messages import KafkaConfigure, KafkaFinish
from hydra.kafkatest.kafka_python_common import common_config, explained, text
from hydra.kafkatest.membership import ASK_FOR_S, JOIN_WITHIN_S, Membership, heartbeat_ms, longest_poll_ms
from hydra.wire.messages import Configure, SystemObject

LEAVE_WAIT_S: Final = 1.0


class Subscriber:
    """Takes batches from a KafkaConsumer: of every partition of the topic, or of its part as a group's member."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._consumer: Any = None
        self._config: dict[str, Any] = {}
        self._topic = ""
        self._positions: dict[int, int] = {}
        self._group: _Group | None = None
        self._early: Mapping[TopicPartition, list[Any]] = {}

    def configure(self, command: Configure) -> None:
        """See transport.py. The connection is kept unless the cluster, the properties, fetches or the group changed.

        A member of a group returns when the group has told which partitions are its own.
        """
        kafka = read_system(command.system, KafkaConfigure)
        config = consumer_config(self._client, kafka)
        fresh = self._consumer is None or config != self._config
        if fresh:
            self.close()
            self._config = config
        if kafka.group:
            self._configure_member(command, kafka, fresh=fresh or kafka.topic != self._topic)
            return
        if not fresh and kafka.topic == self._topic and kafka.offsets == self._positions:
            return  # it stands there already, and a seek would throw away what it has fetched
        self._group, self._topic, self._positions = None, kafka.topic, dict(kafka.offsets)
        self._open()

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        found, self._early = self._early or self._poll(timeout_s, limit), {}
        positions = self._positions if self._group is None else self._group.member.positions
        values: list[bytes] = []
        for partition, records in found.items():
            if partition.partition in positions:
                positions[partition.partition] = records[-1].offset + 1
            values += [r.value for r in records]
        if self._group is not None:
            self._group.commit()
            values += self._group.member.probes()
        return values

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. The new connection goes on where the old one stood, or joins the group again."""
        began_ns = time.monotonic_ns()
        self.close()
        self._open()
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py: the sum of end offset − position."""
        ends = read_system(system, KafkaFinish).end_offsets
        if self._group is None:
            return sum(max(0, end - self._positions.get(p, 0)) for p, end in ends.items())
        if self._group.member.has_read(ends):
            self._group.commit(now=True)
        return self._group.member.undrained(ends, self._group.committed)

    def report_system(self) -> dict[str, Any] | None:
        """What the group's rebalances took, of a member."""
        return None if self._group is None else self._group.member.report()

    def close(self) -> None:
        """See transport.py. A member leaves its group."""
        consumer, self._consumer = self._consumer, None
        self._early = {}
        if consumer is not None:
            with contextlib.suppress(KafkaError):
                # The library hands the partitions back first, see _Group.
                consumer.close(autocommit=False, timeout_ms=0 if self._group is None else LEAVE_WAIT_S * 1000)

    def _opened(self) -> Any:
        if self._consumer is None:
            raise OSError("the subscriber is not configured")
        return self._consumer

    def _open(self) -> None:
        """Connects if there is no connection, and seeks to the positions or joins the group."""
        with explained():
            if self._consumer is None:
                self._consumer = KafkaConsumer(**self._config)
            if self._group is not None:
                self._group.join(self._consumer)
                return
            mine = {TopicPartition(self._topic, p): offset for p, offset in self._positions.items()}
            self._consumer.assign(list(mine))
            for partition, offset in mine.items():
                self._consumer.seek(partition, offset)

    def _poll(self, timeout_s: float, limit: int) -> Mapping[TopicPartition, list[Any]]:
        try:
            found = self._opened().poll(timeout_ms=min(timeout_s, DEAF_AT_MOST_S) * 1000, max_records=limit)
        except KafkaError as e:
            if getattr(e, "retriable", False):
                return {}
            raise OSError(f"Kafka refuses to give its messages: {text(e)}") from None
        return found if self._group is None else self._group.settled(found)

    def _configure_member(self, command: Configure, kafka: KafkaConfigure, *, fresh: bool) -> None:
        if fresh or self._group is None:
            self._topic, self._group = kafka.topic, _Group(kafka.topic)
            self._group.member.step(command, kafka.offsets)
            self._open()
        elif self._group.member.step(command, kafka.offsets):
            self._early = {}
            self._group.seek(list(self._group.member.positions))
        deadline = time.monotonic() + JOIN_WITHIN_S
        while not self._group.member.assigned:
            self._early = self._poll(DEAF_AT_MOST_S, 1)
            if time.monotonic() > deadline:
                raise OSError(f"the consumer group {kafka.group} gave no partitions within {JOIN_WITHIN_S:g} s")


class _Group(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """The member that a subscriber is, and what the library asks of it while partitions change hands.

    It asks on a thread of its own, where nothing may wait: the group's offsets are asked for afterwards.
    """

    def __init__(self, topic: str) -> None:
        self.member = Membership()
        self._topic = topic
        self._consumer: Any = None
        self._given: list[int] | None = None

    def join(self, consumer: Any) -> None:
        """Joins with a new connection.

        Raises:
            OSError: the cluster does not know the topic.
        """
        self._consumer = consumer
        deadline = time.monotonic() + kafka_python_common.CONNECT_TIMEOUT_MS / 1000
        consumer.subscribe([self._topic], listener=self)
        # A leader of the group that has not heard of the topic would give everybody nothing, for minutes. One that
        # hears of it after it has joined joins again, and kafka-python 3.0 loses the partitions of that second time.
        while self._topic not in consumer.topics():
            if time.monotonic() > deadline:
                raise OSError(f"Kafka does not know {self._topic}")

    def settled(self, found: Mapping[TopicPartition, list[Any]]) -> Mapping[TopicPartition, list[Any]]:
        """What a poll gave, without what belongs before the positions of partitions that have just been given."""
        given, self._given = self._given, None
        if given is None:
            return found
        starts = self.member.given(given, self.committed(given))
        moved = {p for p, start in starts.items() if start != self.member.earliest(p)}
        self.seek(moved)
        return {tp: records for tp, records in found.items() if tp.partition not in moved}

    def seek(self, partitions: Iterable[int]) -> None:
        """Moves the library to the member's positions."""
        for p in partitions:
            with contextlib.suppress(ValueError, KeyError):  # it has been taken back meanwhile
                self._consumer.seek(TopicPartition(self._topic, p), self.member.positions[p])

    def commit(self, *, now: bool = False) -> None:
        """Tells the group where the member stands, if it is time to."""
        if offsets := self._told(self.member.uncommitted(now=now)):
            self._consumer.commit_async(offsets, callback=self._on_commit)

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
            self._consumer.seek(tp, self.member.earliest(tp.partition))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        offsets = self._told(self.member.uncommitted(now=True))
        self._given = None
        self.member.lost()
        if offsets:
            with contextlib.suppress(KafkaError):
                await self._consumer.commit_async(offsets, callback=self._on_commit)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        self._given = None
        self.member.lost()

    def _told(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition(self._topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}

    def _on_commit(self, _: object, answer: object) -> None:
        if isinstance(answer, BaseException):
            self.member.refused()


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, Any]:
    """The library's configuration for these settings; ValueError where a property cannot be used."""
    fetches = {
        "fetch_min_bytes": kafka.fetch_min_bytes,
        "fetch_max_wait_ms": kafka.fetch_wait_max_ms,
        "fetch_max_bytes": kafka.fetch_max_bytes,
        "max_partition_fetch_bytes": kafka.max_partition_fetch_bytes,
        "check_crcs": kafka.check_crcs,
    }
    group: dict[str, Any] = {}
    if kafka.group:
        group["partition_assignment_strategy"] = (RangePartitionAssignor,)
        if kafka.session_timeout_ms is not None:
            group["session_timeout_ms"] = kafka.session_timeout_ms
            group["heartbeat_interval_ms"] = heartbeat_ms(kafka.session_timeout_ms)
            group["max_poll_interval_ms"] = longest_poll_ms(kafka.session_timeout_ms)
    return {
        **fetches,
        **group,
        **common_config(client, kafka, "subscriber"),
        "group_id": kafka.group or None,
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }
