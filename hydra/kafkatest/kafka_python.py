"""kafka-python clients: ``kafka-pub`` and ``kafka-sub`` in Python, checksums in C."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import crc32c  # noqa: F401  # kafka-python uses it if it is installed, and is slow without: here it must not be missing
import kafka
import numpy as np
from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.codec import gzip_encode
from kafka.errors import KafkaError
from kafka.record import default_records
from kafka.structs import OffsetAndMetadata

from hydra.client import process_group
from hydra.client.transport import DEAF_ANSWERS_S, DEAF_AT_MOST_S, Kind, read_system
from hydra.kafkatest import record_batch_size
from hydra.kafkatest.connection_losses import KafkaPythonLosses
from hydra.kafkatest.control_messages import PLACES, KafkaConfigure
from hydra.kafkatest.group_membership import ASK_FOR_S, Membership
from hydra.kafkatest.kafka_python_config import (
    CONNECT_TIMEOUT_MS,
    OVER,
    consumer_config,
    explained,
    producer_config,
    text,
)
from hydra.kafkatest.producer_statistics import Counting, ProducerCounts
from hydra.kafkatest.properties import kafka_python_arguments
from hydra.kafkatest.property_table import QUEUED
from hydra.kafkatest.refusal_reasons import reason
from hydra.kafkatest.transport_base import SYSTEM, ConsumerTransport, ProducerTransport
from hydra.wire.messages import Configure

_REQUEST_TIMED_OUT: Final = 7
"""The code of the protocol for an answer that came too late."""
FULL_WAIT_S: Final = 0.005
ANSWERS_EVERY_S: Final = 0.001
"""How often the client looks for answers that can overtake others, s."""
FEW: Final = 100
"""The most messages without an answer of which the client looks at every one."""
PROBE_FLUSH_S: Final = 0.05
FLUSH_STEP_S: Final = 0.001
CLOSE_WAIT_S: Final = 0.3
LEAVE_WAIT_S: Final = 1.0


# Level 6 is the default of zlib, librdkafka and the Java client; the library's own 9 takes several times as long.
default_records.gzip_encode = partial(gzip_encode, compresslevel=6)


class KafkaPythonPublisher(ProducerTransport[Any]):
    """Passes messages to a KafkaProducer and keeps its futures in order until they have an answer.

    The library's own buffer has no limit, so this class limits the messages without an answer.
    """

    def __init__(self, client: int) -> None:
        self._losses: KafkaPythonLosses = KafkaPythonLosses()
        super().__init__(client)
        self._most_in_flight = 1
        self._counting = Counting()

    def configure(self, command: Configure) -> str:
        """See transport.py."""
        endpoint = super().configure(command)
        self._counting.throttled_ms = 0
        kafka, size = read_system(command.system, KafkaConfigure), command.settings.message_size
        self._batch_bytes = self._built_from["batch_size"]
        self._most_in_flight = min(
            self._built_from[QUEUED], record_batch_size.queue_bytes(kafka.buffer_memory, size) // size
        )
        return endpoint

    def probe(self, message: bytes) -> None:
        """See transport.py. Sends the probe to every partition, so it proves all of them."""
        producer = self._opened()
        with contextlib.suppress(KafkaError):
            for topic in self._probed:
                for partition in self._partitions:
                    producer.send(topic, message, partition=partition)
            # A flush sends messages that linger.
            producer.flush(PROBE_FLUSH_S)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py."""
        producer, topic, partitions = self._opened(), self._topics[0], self._partitions
        in_flight, n = self._in_flight, len(partitions)
        room = self._most_in_flight - len(in_flight)
        if room < len(messages):
            self._account()
            room = self._most_in_flight - len(in_flight)
            if room <= 0:
                with contextlib.suppress(KafkaError):
                    in_flight[0][1].get(FULL_WAIT_S)
                return 0
        if self._sent_before is None:
            self._sent_before = self._counting.so_far()
        count, began_ns = 0, time.monotonic_ns()
        try:
            if self._choice is None and self._keys is None:
                for message in messages[:room]:
                    sequence = first_sequence + count
                    future = producer.send(topic, message, partition=partitions[sequence % n])
                    in_flight.append((sequence, future))
                    count += 1
            else:
                taken = messages[:room]
                destinations = self._destinations(first_sequence, len(taken))
                for message, (topic, key, partition) in zip(taken, destinations, strict=True):
                    future = producer.send(topic, message, key=key, partition=partition)
                    in_flight.append((first_sequence + count, future))
                    count += 1
        except KafkaError as e:
            raise OSError(f"Kafka refuses a message for {topic}: {text(e)}") from None
        finally:
            self._handed_over(first_sequence, count, began_ns)
            self._counting.payload_bytes += sum(map(len, messages[:count]))
        return count

    def poll(self) -> None:
        """See transport.py."""
        self._account()

    def awaits(self) -> bool:
        """See transport.py."""
        return bool(self._in_flight)

    def wait(self, timeout_s: float) -> None:
        """See transport.py. The wait ends with the first message's answer, or with another one within a millisecond."""
        in_order = len(self._topics) * len(self._partitions) == 1
        longest_s = DEAF_ANSWERS_S if in_order else ANSWERS_EVERY_S
        with contextlib.suppress(KafkaError):
            self._in_flight[0][1].get(min(timeout_s, longest_s))
        self._account(everywhere=not in_order and len(self._in_flight) <= FEW)

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        producer, deadline = self._opened(), time.monotonic() + timeout_s
        flushed = False
        while True:
            self._account(everywhere=len(self._in_flight) <= FEW)
            left_s = deadline - time.monotonic()
            if left_s <= 0 or (flushed and not self._in_flight):
                return not self._in_flight
            # The library applies the timeout to each batch, so it gets small ones.
            with contextlib.suppress(KafkaError):
                producer.flush(min(left_s, FLUSH_STEP_S))
                flushed = True

    def close(self) -> None:
        """See transport.py. Discards messages that were not sent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # close() alone waits for a broker that may be dead, and raises instead of closing if that takes long.
            # After force_close(), which has no public counterpart, the sender's thread discards its messages.
            producer._sender.force_close()
            producer._sender.join(CLOSE_WAIT_S)
            with contextlib.suppress(KafkaError):
                producer.close(timeout=0)

    def _config(self, kafka: KafkaConfigure, message_size: int, keys: int) -> dict[str, Any]:
        return producer_config(self._client, kafka, message_size, keys)

    def _made(self, config: Mapping[str, Any]) -> Any:
        with explained():
            producer = KafkaProducer(**kafka_python_arguments(config))
        sender = producer._sender
        sender._sensors = self._counting = Counting()
        self._losses.watch(sender._client._manager)
        sender._handle_produce_response = self._counting.noticing(sender._handle_produce_response)
        return producer

    def _partitions_of(self, producer: Any, topic: str) -> list[int]:
        with explained():
            return sorted(producer.partitions_for(topic))

    def _forget(self) -> None:
        super()._forget()
        self._in_flight: deque[tuple[int, Any]] = deque()

    def _throttled_ms(self) -> int:
        return self._counting.throttled_ms

    def _achieved(self, before: ProducerCounts) -> dict[str, float]:
        figures = self._counting.so_far().since(before).figures()
        if self._ledger.acknowledged < self._ledger.sent:
            # It is not known how many of the unacknowledged messages were sent.
            figures.pop("compression_ratio", None)
        return figures

    def _account(self, *, everywhere: bool = False) -> None:
        # Answers arrive at the front first.
        in_flight = self._in_flight
        good: list[int] = []
        bad: list[tuple[int, Any]] = []
        while in_flight and in_flight[0][1].is_done:
            sequence, future = in_flight.popleft()
            if future.exception is None:
                good.append(sequence)
            else:
                bad.append((sequence, future.exception))
        if everywhere:
            for _ in range(len(in_flight)):
                sequence, future = in_flight.popleft()
                if not future.is_done:
                    in_flight.append((sequence, future))
                elif future.exception is None:
                    good.append(sequence)
                else:
                    bad.append((sequence, future.exception))
        self._acknowledged(np.array(good, np.int64), time.monotonic_ns())
        if bad:
            self._ledger.fail(np.array([sequence for sequence, _ in bad], np.int64))
            for _, error in bad:
                code = _REQUEST_TIMED_OUT if isinstance(error, OVER) else getattr(error, "errno", None)
                self._refused.add(reason(code or 0, throttled=self._counting.throttled_ms > 0), text(error))


class KafkaPythonSubscriber(ConsumerTransport[Any]):
    """Takes batches from a KafkaConsumer."""

    def __init__(self, client: int) -> None:
        self._losses: KafkaPythonLosses = KafkaPythonLosses()
        super().__init__(client)
        self._group: _Group | None = None
        self._early: Mapping[TopicPartition, list[Any]] = {}

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        found, self._early = self._early or self._poll(timeout_s, limit), {}
        positions = self._positions if self._member is None else self._member.positions
        values: list[bytes] = []
        for partition, records in found.items():
            place = self._numbers.get(partition.topic, 0) * PLACES + partition.partition
            if place in positions:
                positions[place] = records[-1].offset + 1
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
                # The library returns the partitions first, see _Group.
                consumer.close(autocommit=False, timeout_ms=0 if self._member is None else LEAVE_WAIT_S * 1000)

    def _config(self, kafka: KafkaConfigure) -> dict[str, Any]:
        return consumer_config(self._client, kafka)

    def _open(self) -> None:
        with explained():
            if self._consumer is None:
                name = "bootstrap_timeout_ms"
                within_ms = min(self._built_from[name], max(1000 * self._attempt_s, 1))
                self._consumer = KafkaConsumer(**kafka_python_arguments({**self._built_from, name: within_ms}))
                self._losses.watch(self._consumer._client._manager)
            if self._member is not None:
                self._group = _Group(self._consumer, self._topic, self._member)
                self._group.join()
                return
            self._group = None
            positions = {TopicPartition(topic, p): offset for topic, p, offset in self._assigned()}
            self._consumer.assign(list(positions))
            for partition, offset in positions.items():
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
    """A subscriber as a member of a group, with the library's callbacks for rebalances.

    The library calls them on a thread of its own, which must not wait: the group's offsets are requested afterwards.
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
        deadline = time.monotonic() + CONNECT_TIMEOUT_MS / 1000
        self._consumer.subscribe([self._topic], listener=self)
        # A group leader that does not know the topic assigns no partitions to any member, for minutes. A leader that
        # learns of it after joining joins again, and kafka-python 3.0 loses the partitions of that second time.
        while self._topic not in self._consumer.topics():
            if time.monotonic() > deadline:
                raise OSError(f"Kafka does not know {self._topic}")

    def settled(self, found: Mapping[TopicPartition, list[Any]]) -> Mapping[TopicPartition, list[Any]]:
        """The messages of a poll, without those before the positions of newly assigned partitions."""
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
            with contextlib.suppress(ValueError, KeyError):  # the partition was revoked in between
                self._consumer.seek(TopicPartition(self._topic, p), self._member.positions[p])

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commits the member's offsets to the group, if there are any."""
        if offsets:
            self._consumer.commit_async(self._with_metadata(offsets), callback=self._on_commit)

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """The group's offsets; none if the group does not return them, as messages read twice are counted."""
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
            # Correct unless the group has committed offsets of this step, which this callback cannot request.
            self._consumer.seek(tp, self._member.earliest(tp.partition))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        offsets = self._with_metadata(self._member.uncommitted(now=True))
        self._given = None
        self._member.lost()
        if offsets:
            with contextlib.suppress(KafkaError):
                await self._consumer.commit_async(offsets, callback=self._on_commit)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:  # noqa: ARG002
        """See kafka-python."""
        self._given = None
        self._member.lost()

    def _with_metadata(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition(self._topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}

    def _on_commit(self, _: object, answer: object) -> None:
        if isinstance(answer, BaseException):
            self._member.refused()


def _versions() -> dict[str, str]:
    return {"crc32c": version("crc32c"), "kafka-python": kafka.__version__, "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client in this module."""
    # Errors arrive as exceptions; the library's log lines would only fill the sandbox.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    return {
        "kafka-pub": Kind(
            "publisher", "kafka-python", _versions, lambda client, _: KafkaPythonPublisher(client), SYSTEM
        ),
        "kafka-sub": Kind(
            "subscriber", "kafka-python", _versions, lambda client, _: KafkaPythonSubscriber(client), SYSTEM
        ),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
