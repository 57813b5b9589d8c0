"""What the transports of both of Kafka's Python libraries do alike, whatever the library calls it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from hydra.client.ack_ledger import AckLatency, AckLedger, Sequences
from hydra.client.transport import Delivery, read_system
from hydra.kafkatest.control_messages import KafkaConfigure, KafkaFinish
from hydra.kafkatest.group_membership import JOIN_WITHIN_S, Membership, heartbeat_ms, longest_poll_ms
from hydra.kafkatest.producer_statistics import ProducerCounts
from hydra.kafkatest.settings import KafkaSettings
from hydra.wire.messages import Configure, SystemObject

L = TypeVar("L")
"""A library's producer or consumer."""


class ProducerTransport(ABC, Generic[L]):
    """Hands messages to a library's producer, and keeps the account of their answers; see transport.py."""

    marks_end = False

    def __init__(self, client: int) -> None:
        self._client = client
        self._producer: L | None = None
        self._built_from: Mapping[str, Any] = {}
        self._topic = ""
        self._partitions: list[int] = []
        self._acks = "1"
        self._batch_bytes = 0
        self._sent_before: ProducerCounts | None = None
        self._forget()

    def configure(self, command: Configure) -> str:
        """See transport.py. A change of a producer's settings makes a new one."""
        kafka = read_system(command.system, KafkaConfigure)
        config = self._config(kafka, command.settings.message_size)
        if self._producer is None or config != self._built_from:
            self.close()
            self._producer, self._built_from = self._made(config), config
        self._partitions = self._partitions_of(self._producer, kafka.topic)
        self._topic, self._acks = kafka.topic, kafka.acks
        self._forget()
        return ""

    def framed_bytes(self, message_size: int) -> int | None:
        """See transport.py. Records share a batch."""

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        if self._acks == "0":
            return None
        self._account(everywhere=True)
        return Delivery.of(self._ledger, self._last_ack_ns, self._latency.histogram())

    def report_system(self) -> dict[str, Any]:
        """``batch.size`` as the producer got it, and what it made of the messages, if the library tells in time."""
        before = self._sent_before
        return {"batch_bytes": self._batch_bytes, **({} if before is None else self._achieved(before))}

    @abstractmethod
    def close(self) -> None:
        """See transport.py. What was not sent is thrown away."""

    @abstractmethod
    def _config(self, kafka: KafkaConfigure, message_size: int) -> Mapping[str, Any]:
        """The library's configuration for these settings; ValueError where a property cannot be used."""

    @abstractmethod
    def _made(self, config: Mapping[str, Any]) -> L:
        """A producer of this configuration; errors as for ``configure``."""

    @abstractmethod
    def _partitions_of(self, producer: L, topic: str) -> list[int]:
        """The topic's partitions; asking for them also opens the connection before the first message."""

    @abstractmethod
    def _account(self, *, everywhere: bool = False) -> None:
        """Takes the answers that have come: those from the front, or ``everywhere``."""

    @abstractmethod
    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        """What was made of the messages since ``before``, as a publisher reports it."""

    def _opened(self) -> L:
        if self._producer is None:
            raise OSError("the publisher is not configured")
        return self._producer

    def _forget(self) -> None:
        """A step begins: nothing was sent, and nothing was answered."""
        self._ledger = AckLedger()
        self._latency = AckLatency(self._ledger)
        self._last_ack_ns = 0
        self._sent_before = None

    def _handed_over(self, first_sequence: int, count: int, began_ns: int) -> None:
        """The library has accepted messages, from ``began_ns`` until now."""
        self._ledger.accept(count)
        self._latency.handed_over(first_sequence, count, began_ns, time.monotonic_ns())

    def _acknowledged(self, sequences: Sequences, now_ns: int) -> None:
        """The broker has acknowledged some."""
        if len(sequences):
            self._last_ack_ns = now_ns
            self._latency.acknowledged(sequences, now_ns)
            self._ledger.acknowledge(sequences)


class ConsumerTransport(ABC, Generic[L]):
    """Takes batches from a library's consumer: of every partition of the topic, or of its part as a group's member."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._consumer: L | None = None
        self._built_from: Mapping[str, Any] = {}
        self._topic = ""
        # Kept here: librdkafka's own positions survive a new assignment until its first message.
        self._positions: dict[int, int] = {}
        self._member: Membership | None = None

    def configure(self, command: Configure) -> None:
        """See transport.py. The connection is kept unless the cluster, the properties, fetches or the group changed.

        A member of a group returns when the group has told which partitions are its own.
        """
        kafka = read_system(command.system, KafkaConfigure)
        config = self._config(kafka)
        fresh = self._consumer is None or config != self._built_from
        if fresh:
            self.close()
            self._built_from = config
        elsewhere, self._topic = fresh or kafka.topic != self._topic, kafka.topic
        if kafka.group:
            self._join(command, kafka, anew=elsewhere)
        elif elsewhere or self._positions != kafka.offsets:
            # Where it stands there already, a new assignment would throw away what it has fetched.
            self._member, self._positions = None, dict(kafka.offsets)
            self._open()

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. The new connection goes on where the old one stood, or joins the group again."""
        began_ns = time.monotonic_ns()
        self.close()
        self._open()
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py: the sum of end offset − position."""
        ends = read_system(system, KafkaFinish).end_offsets
        if self._member is None:
            return sum(max(0, end - self._positions.get(p, 0)) for p, end in ends.items())
        if self._member.has_read(ends):
            self._commit(self._member.uncommitted(now=True))
        return self._member.undrained(ends, self._committed)

    def report_system(self) -> dict[str, Any] | None:
        """What the group's rebalances took, of a member."""
        return None if self._member is None else self._member.report()

    @abstractmethod
    def close(self) -> None:
        """See transport.py. A member leaves its group; what it was given early is forgotten."""

    @abstractmethod
    def _config(self, kafka: KafkaConfigure) -> Mapping[str, Any]:
        """The library's configuration for these settings; ValueError where a property cannot be used."""

    @abstractmethod
    def _open(self) -> None:
        """Connects if there is no connection, and goes to the positions or joins the group; errors as ``configure``."""

    @abstractmethod
    def _seek(self, positions: Mapping[int, int]) -> None:
        """Moves the library to these positions of a member, and forgets what was given early."""

    @abstractmethod
    def _hear(self) -> None:
        """Waits a moment for the group to give partitions; messages that come meanwhile are received later."""

    @abstractmethod
    def _commit(self, offsets: Mapping[int, int]) -> None:
        """Tells the group where the member stands, if anywhere."""

    @abstractmethod
    def _committed(self, partitions: list[int]) -> dict[int, int]:
        """The group's offsets. Where it does not tell, there are none: what is read twice is counted."""

    def _opened(self) -> L:
        if self._consumer is None:
            raise OSError("the subscriber is not configured")
        return self._consumer

    def _join(self, command: Configure, kafka: KafkaConfigure, *, anew: bool) -> None:
        if anew or self._member is None:
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
    """How a consumer fetches, in librdkafka's names."""
    return {
        "fetch.min.bytes": kafka.fetch_min_bytes,
        "fetch.wait.max.ms": kafka.fetch_wait_max_ms,
        "fetch.max.bytes": kafka.fetch_max_bytes,
        "max.partition.fetch.bytes": kafka.max_partition_fetch_bytes,
        "check.crcs": str(kafka.check_crcs).lower(),
    }


def session_config(kafka: KafkaSettings) -> dict[str, int | str]:
    """After which silence a member counts as dead, and what libraries relate to it; in librdkafka's names."""
    timeout_ms = kafka.session_timeout_ms
    if not kafka.group or timeout_ms is None:
        return {}
    return {
        "session.timeout.ms": timeout_ms,
        "heartbeat.interval.ms": heartbeat_ms(timeout_ms),
        "max.poll.interval.ms": longest_poll_ms(timeout_ms),
    }
