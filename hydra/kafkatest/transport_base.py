"""The common part of the transports of Kafka's two Python libraries."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Final, Generic, TypeVar

from hydra.client.ack_ledger import AckLatency, AckLedger, Sequences
from hydra.client.transport import Delivery, read_system
from hydra.kafkatest.connection_losses import ConnectionLosses
from hydra.kafkatest.control_messages import PLACES, KafkaConfigure, KafkaFinish, topic_names
from hydra.kafkatest.group_membership import JOIN_WITHIN_S, Membership, heartbeat_ms, longest_poll_ms
from hydra.kafkatest.producer_statistics import ProducerCounts
from hydra.kafkatest.refusal_reasons import first_reason
from hydra.kafkatest.settings import KafkaSettings
from hydra.model.system_reports import LOST_WHY, FirstReason, reported
from hydra.wire.messages import Configure, SystemObject
from hydra.wire.traffic import MessageChoice, key_choice, topic_choice

L = TypeVar("L")
"""A library's producer or consumer."""

SYSTEM: Final = (KafkaConfigure, KafkaFinish)
"""The types of the system's part of commands to clients."""


class ProducerTransport(ABC, Generic[L]):
    """Passes messages to a library's producer, and keeps the account of their answers; see transport.py."""

    marks_end = False
    _losses: ConnectionLosses

    def __init__(self, client: int) -> None:
        self._client = client
        self._producer: L | None = None
        self._built_from: Mapping[str, Any] = {}
        self._topics: list[str] = []
        self._probed: list[str] = []
        self._choice: MessageChoice | None = None  # of the topic; None: there is one
        self._keys: MessageChoice | None = None
        self._partitions: list[int] = []
        self._acks = "1"
        self._batch_bytes = 0
        self._sent_before: ProducerCounts | None = None
        self._forget()

    def configure(self, command: Configure) -> str:
        """See transport.py. A change of a producer's settings makes a new one."""
        kafka = read_system(command.system, KafkaConfigure)
        traffic = command.drawn
        self._choice = topic_choice(traffic, self._client) if traffic.several else None
        self._keys = key_choice(traffic, self._client) if traffic.keys else None
        config = self._config(kafka, command.settings.message_size, traffic.keys)
        if self._producer is None or config != self._built_from:
            self.close()
            self._producer, self._built_from = self._made(config), config
        self._topics = topic_names(kafka.topic, traffic.topics)
        self._probed = self._topics[: traffic.probed.stop]
        self._partitions, *_ = [self._partitions_of(self._producer, topic) for topic in self._topics]
        self._acks = kafka.acks
        self._forget()
        return ""

    def framed_bytes(self, message_size: int) -> int | None:
        """See transport.py. Records share a batch."""

    def _destinations(self, first_sequence: int, count: int) -> Iterator[tuple[str, bytes | None, int | None]]:
        """The topic, the key and the partition of consecutive messages; with a key, the library chooses the partition.

        Without keys, a message's partition is its sequence modulo the partitions.
        """
        topics: Iterable[str] = repeat(self._topics[0], count)
        if self._choice is not None:
            topics = map(self._topics.__getitem__, self._choice.of(first_sequence, count))
        if self._keys is not None:
            keys = self._keys.of(first_sequence, count)
            return ((topic, str(key).encode(), None) for topic, key in zip(topics, keys, strict=True))
        partitions, n = self._partitions, len(self._partitions)
        return ((topic, None, partitions[(first_sequence + k) % n]) for k, topic in enumerate(topics))

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        if self._acks == "0":
            return None
        self._account(everywhere=True)
        return Delivery.of(self._ledger, self._last_ack_ns, self._latency.histogram())

    def accepted(self) -> int | None:
        """See transport.py."""
        return None if self._acks == "0" else self._ledger.acknowledged

    def refused(self) -> FirstReason | None:
        """See transport.py."""
        return first_reason(self._refused, self._ledger.pending, self._throttled_ms())

    def losses(self) -> tuple[int, str]:
        """See transport.py: those of connections in use."""
        return self._losses.total()

    def report_system(self) -> dict[str, Any]:
        """The producer's ``batch.size``, and its statistics if the library reports them in time."""
        before = self._sent_before
        return {"batch_bytes": self._batch_bytes, **({} if before is None else self._achieved(before))}

    @abstractmethod
    def close(self) -> None:
        """See transport.py. Discards messages that were not sent."""

    @abstractmethod
    def _config(self, kafka: KafkaConfigure, message_size: int, keys: int) -> Mapping[str, Any]:
        """The library's configuration for these settings; ValueError if a property cannot be used."""

    @abstractmethod
    def _made(self, config: Mapping[str, Any]) -> L:
        """A producer of this configuration; errors as for ``configure``."""

    @abstractmethod
    def _partitions_of(self, producer: L, topic: str) -> list[int]:
        """The topic's partitions; asking for them also opens the connection before the first message."""

    @abstractmethod
    def _account(self, *, everywhere: bool = False) -> None:
        """Takes the answers that have arrived: those at the front, or ``everywhere``."""

    @abstractmethod
    def _throttled_ms(self) -> int:
        """The longest time in ms by which brokers delayed an answer in this step because of a quota; 0: never."""

    @abstractmethod
    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        """The producer's figures since ``before``, as a publisher reports them."""

    def _opened(self) -> L:
        if self._producer is None:
            raise OSError("the publisher is not configured")
        return self._producer

    def _forget(self) -> None:
        """Begins a step: clears the accounts."""
        self._ledger = AckLedger()
        self._latency = AckLatency(self._ledger)
        self._refused = FirstReason()
        self._last_ack_ns = 0
        self._sent_before = None
        self._losses.begin()

    def _handed_over(self, first_sequence: int, count: int, began_ns: int) -> None:
        """Records messages that the library accepted from ``began_ns`` until now."""
        self._ledger.accept(count)
        self._latency.handed_over(first_sequence, count, began_ns, time.monotonic_ns())

    def _acknowledged(self, sequences: Sequences, now_ns: int) -> None:
        """Records the sequences that the broker has acknowledged."""
        if len(sequences):
            self._last_ack_ns = now_ns
            self._latency.acknowledged(sequences, now_ns)
            self._ledger.acknowledge(sequences)


class ConsumerTransport(ABC, Generic[L]):
    """Takes batches from a library's consumer: from every partition of its topics, or from those of a group's member.

    Positions are kept by the places of partitions (:data:`hydra.kafkatest.control_messages.PLACES`).
    """

    keeps_order = False
    _losses: ConnectionLosses

    def __init__(self, client: int) -> None:
        self._client = client
        self._consumer: L | None = None
        self._built_from: Mapping[str, Any] = {}
        self._topic = ""
        self._topics: list[str] = []
        self._numbers: dict[str, int] = {}  # of the topics, by name
        # Kept here, as librdkafka's own positions survive a new assignment until its first message.
        self._positions: dict[int, int] = {}
        self._member: Membership | None = None
        self.attempt_s = self._attempt_s = math.inf

    def local_limit(self) -> str:
        """See transport.py."""
        return self._losses.limit

    def configure(self, command: Configure) -> None:
        """See transport.py. Keeps the connection unless the cluster, the properties, fetches or the group changed.

        For a member of a group, it returns when the group has assigned its partitions.
        """
        kafka = read_system(command.system, KafkaConfigure)
        config = self._config(kafka)
        self._losses.begin()
        self._attempt_s, self.attempt_s = self.attempt_s, math.inf
        fresh = self._consumer is None or config != self._built_from
        if fresh:
            self.close()
            self._built_from = config
        elsewhere, self._topic = fresh or kafka.topic != self._topic, kafka.topic
        self._topics = topic_names(kafka.topic, command.drawn.topics)
        self._numbers = {name: number for number, name in enumerate(self._topics)}
        starts = kafka.starts(command.drawn, self._client)
        if kafka.group:
            self._join(command, kafka, is_new=elsewhere)
        elif elsewhere or self._positions != starts:
            # At the same positions a new assignment would only discard fetched messages.
            self._member, self._positions = None, starts
            self._open()

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. The new connection continues at the old positions, or joins the group again."""
        began_ns = time.monotonic_ns()
        self.close()
        if self._member is not None:
            self._member.rejoins()
        self._open()
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py: the sum of end offset − position."""
        finish = read_system(system, KafkaFinish)
        if self._member is None:
            if finish.topic_end_offsets:
                ends = finish.ends
                return sum(max(0, ends.get(place, 0) - at) for place, at in self._positions.items())
            return sum(max(0, end - self._positions.get(p, 0)) for p, end in finish.end_offsets.items())
        ends = finish.end_offsets
        if self._member.has_read(ends):
            self._commit(self._member.uncommitted(now=True))
        return self._member.undrained(ends, self._committed)

    def report_system(self) -> dict[str, Any] | None:
        """A member's rebalances and the time that they took, and the connections that were lost."""
        system = {} if self._member is None else self._member.report()
        lost, why = self._losses.total()
        return {**system, "lost_connections": lost, LOST_WHY: reported(why)} if lost else system or None

    @abstractmethod
    def close(self) -> None:
        """See transport.py. A member leaves its group, and drops messages received early."""

    @abstractmethod
    def _config(self, kafka: KafkaConfigure) -> Mapping[str, Any]:
        """The library's configuration for these settings; ValueError if a property cannot be used."""

    @abstractmethod
    def _open(self) -> None:
        """Connects if needed, and goes to the positions or joins the group; errors as for ``configure``."""

    @abstractmethod
    def _seek(self, positions: Mapping[int, int]) -> None:
        """Moves the library to these positions of a member, and drops messages received early."""

    @abstractmethod
    def _hear(self) -> None:
        """Waits a moment for the group to assign partitions; keeps messages that arrive for later."""

    @abstractmethod
    def _commit(self, offsets: Mapping[int, int]) -> None:
        """Commits the member's offsets to the group, if there are any."""

    @abstractmethod
    def _committed(self, partitions: list[int]) -> dict[int, int]:
        """The group's offsets; none if the group does not return them, as messages read twice are counted."""

    def _assigned(self) -> Iterator[tuple[str, int, int]]:
        """The topic, the partition and the position of each partition that is read."""
        for place, offset in self._positions.items():
            number, partition = divmod(place, PLACES)
            yield self._topics[number], partition, offset

    def _opened(self) -> L:
        if self._consumer is None:
            raise OSError("the subscriber is not configured")
        return self._consumer

    def _join(self, command: Configure, kafka: KafkaConfigure, *, is_new: bool) -> None:
        if is_new or self._member is None:
            self._member = Membership()
            self._member.step(command, kafka.offsets)
            self._open()
        elif self._member.step(command, kafka.offsets):
            self._seek(self._member.positions)
        deadline = time.monotonic() + JOIN_WITHIN_S
        while not self._member.assigned:
            self._hear()
            if time.monotonic() > deadline:
                raise OSError(f"the consumer group {kafka.group} gave no partitions within {JOIN_WITHIN_S:g} s")


def fetch_config(kafka: KafkaSettings) -> dict[str, int | str]:
    """A consumer's settings for fetches, under librdkafka's names."""
    return {
        "fetch.min.bytes": kafka.fetch_min_bytes,
        "fetch.wait.max.ms": kafka.fetch_wait_max_ms,
        "fetch.max.bytes": kafka.fetch_max_bytes,
        "max.partition.fetch.bytes": kafka.max_partition_fetch_bytes,
        "check.crcs": str(kafka.check_crcs).lower(),
    }


def session_config(kafka: KafkaSettings) -> dict[str, int | str]:
    """A member's session timeout and the properties that depend on it, under librdkafka's names."""
    timeout_ms = kafka.session_timeout_ms
    if not kafka.group or timeout_ms is None:
        return {}
    return {
        "session.timeout.ms": timeout_ms,
        "heartbeat.interval.ms": heartbeat_ms(timeout_ms),
        "max.poll.interval.ms": longest_poll_ms(timeout_ms),
    }
