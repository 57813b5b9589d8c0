"""kafka-python clients: ``kafka-pub`` and ``kafka-sub`` in Python, checksums in C."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import crc32c  # noqa: F401  # kafka-python takes it by itself, and does without it in silence: here it cannot be missing
import kafka
import numpy as np
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
)

from hydra.client import group
from hydra.client.acks import AckLedger
from hydra.client.transport import DEAF_AT_MOST_S, Delivery, Kind, read_system
from hydra.errors import UsageError
from hydra.kafkatest import batching
from hydra.kafkatest.complaint import ENDED
from hydra.kafkatest.properties import kafka_python_config
from hydra.kafkatest.wire import KafkaConfigure, KafkaFinish
from hydra.model import Role
from hydra.wire.messages import Configure, SystemObject

if TYPE_CHECKING:
    from hydra.control.client import ControlClient

CONNECT_TIMEOUT_MS: Final = 10_000
IN_FLIGHT_MESSAGES: Final = 20_000
IN_FLIGHT_BYTES: Final = 64 * 1024 * 1024
FULL_WAIT_S: Final = 0.005
PROBE_FLUSH_S: Final = 0.05
FLUSH_STEP_S: Final = 0.05
CLOSE_WAIT_S: Final = 0.3
_WITH_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
"""SASL mechanisms for which the library needs user and password, and does not say so."""


_OVER: Final = (KafkaTimeoutError, RequestTimedOutError)


class _Diagnosis(logging.Handler):
    """The last error that the library logged: what it raises says only that time is over.

    A refusal of user and password stays: it is followed by ends of connections.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        # That time is over follows from the one before.
        found = [a for a in arguments if isinstance(a, BaseException) and not isinstance(a, _OVER)]
        if found and not isinstance(self._error, SaslAuthenticationFailedError):
            self._error = found[-1]

    def explain(self, answer: BaseException) -> str:
        """What is wrong, where a call got this answer."""
        told = _text(self._error or answer)
        return f"{told}; {ENDED}" if "socket disconnected" in told else told


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Says of a cluster that does not answer, or of a configuration that cannot be, what is wrong."""
    logger, diagnosis = logging.getLogger("kafka"), _Diagnosis()
    logger.addHandler(diagnosis)
    try:
        yield
    # The last two when a codec's package is not there, or a value is out of its range.
    except (KafkaConfigurationError, AssertionError, RuntimeError) as e:
        raise ValueError(f"kafka-python refuses the configuration: {_text(e)}") from None
    except KafkaError as e:
        raise OSError(f"Kafka does not answer: {diagnosis.explain(e)}") from None
    finally:
        logger.removeHandler(diagnosis)


class Publisher:
    """Hands messages to a KafkaProducer and keeps its futures in order until they have an answer.

    The library's own buffer has no bound, so the messages without an answer are bounded here.
    """

    marks_end = False

    def __init__(self, client: int) -> None:
        self._client = client
        self._producer: Any = None
        self._built_from: object = None
        self._topic = ""
        self._partitions: list[int] = []
        self._acks = "1"
        self._batch_bytes = 0
        self._most_in_flight = IN_FLIGHT_MESSAGES
        self._ledger = AckLedger()
        self._last_ack_ns = 0
        self._in_flight: deque[tuple[int, Any]] = deque()

    def configure(self, command: Configure) -> str:
        """See transport.py. A change of properties, acks, linger, batch or compression makes a new producer."""
        kafka, size = read_system(command.system, KafkaConfigure), command.settings.message_size
        config = _producer_config(self._client, kafka, size)
        with _explained():
            if self._producer is None or config != self._built_from:
                self.close()
                self._producer = KafkaProducer(**config)
                self._built_from = config
            self._partitions = sorted(self._producer.partitions_for(kafka.topic))
        self._topic, self._acks = kafka.topic, kafka.acks
        self._batch_bytes = config["batch_size"]
        self._most_in_flight = min(max(IN_FLIGHT_MESSAGES, 4 * kafka.msg_batch), max(1, IN_FLIGHT_BYTES // size))
        self._ledger, self._last_ack_ns = AckLedger(), 0
        self._in_flight.clear()
        return ""

    def probe(self, message: bytes) -> None:
        """See transport.py. Goes to every partition, so that a probe proves all of them."""
        producer = self._opened()
        with contextlib.suppress(KafkaError):
            for partition in self._partitions:
                producer.send(self._topic, message, partition=partition)
            # A flush sends what would linger.
            producer.flush(PROBE_FLUSH_S)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. A message's partition is its sequence modulo the partitions."""
        producer, topic, partitions = self._opened(), self._topic, self._partitions
        in_flight, n = self._in_flight, len(partitions)
        room = self._most_in_flight - len(in_flight)
        if room < len(messages):
            self._account()
            room = self._most_in_flight - len(in_flight)
            if room <= 0:
                with contextlib.suppress(KafkaError):
                    in_flight[0][1].get(FULL_WAIT_S)
                return 0
        count = 0
        try:
            for message in messages[:room]:
                sequence = first_sequence + count
                future = producer.send(topic, message, partition=partitions[sequence % n])
                in_flight.append((sequence, future))
                count += 1
        except KafkaError as e:
            raise OSError(f"Kafka refuses a message for {topic}: {_text(e)}") from None
        finally:
            self._ledger.accept(count)
        return count

    def poll(self) -> None:
        """See transport.py."""
        self._account()

    def framed_bytes(self, message_size: int) -> int | None:
        """See transport.py. Records share a batch."""

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        producer, deadline = self._opened(), time.monotonic() + timeout_s
        flushed = False
        while True:
            self._account()
            left_s = deadline - time.monotonic()
            if left_s <= 0 or (flushed and not self._in_flight):
                return not self._in_flight
            # The library's timeout holds for each batch anew, so it gets small ones.
            with contextlib.suppress(KafkaError):
                producer.flush(min(left_s, FLUSH_STEP_S))
                flushed = True

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        if self._acks == "0":
            return None
        self._account(everywhere=True)
        ledger = self._ledger
        return Delivery(ledger.acknowledged, ledger.failed, ledger.pending, self._last_ack_ns, ledger.unacknowledged())

    def report_system(self) -> dict[str, Any]:
        """``batch_size`` as the producer got it."""
        return {"batch_bytes": self._batch_bytes}

    def close(self) -> None:
        """See transport.py. What was not sent is thrown away."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # close() alone waits for a broker that may be gone, and raises instead of closing when that takes long.
            # Told before, the sender's thread gives up what it has. There is no public way to say so.
            producer._sender.force_close()
            producer._sender.join(CLOSE_WAIT_S)
            with contextlib.suppress(KafkaError):
                producer.close(timeout=0)

    def _opened(self) -> Any:
        if self._producer is None:
            raise OSError("the publisher is not configured")
        return self._producer

    def _account(self, *, everywhere: bool = False) -> None:
        """Takes the answers from the front, where they come first; ``everywhere`` also those behind one without."""
        in_flight = self._in_flight
        good: list[int] = []
        bad: list[int] = []
        while in_flight and in_flight[0][1].is_done:
            sequence, future = in_flight.popleft()
            (good if future.exception is None else bad).append(sequence)
        if everywhere:
            for _ in range(len(in_flight)):
                sequence, future = in_flight.popleft()
                if future.is_done:
                    (good if future.exception is None else bad).append(sequence)
                else:
                    in_flight.append((sequence, future))
        if good:
            self._last_ack_ns = time.monotonic_ns()
            self._ledger.acknowledge(np.array(good, np.int64))
        if bad:
            self._ledger.fail(np.array(bad, np.int64))


class Subscriber:
    """Takes batches from a KafkaConsumer that has every partition of the topic to itself."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._consumer: Any = None
        self._config: dict[str, Any] = {}
        self._positions: dict[TopicPartition, int] = {}

    def configure(self, command: Configure) -> None:
        """See transport.py. The connection is kept unless the cluster or the properties changed."""
        kafka = read_system(command.system, KafkaConfigure)
        config = _consumer_config(self._client, kafka)
        positions = {TopicPartition(kafka.topic, p): offset for p, offset in kafka.offsets.items()}
        if self._consumer is None or config != self._config:
            self.close()
            self._config = config
        elif positions == self._positions:
            return  # it stands there already, and a seek would throw away what it has fetched
        self._positions = positions
        self._open()

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        try:
            found = self._opened().poll(timeout_ms=min(timeout_s, DEAF_AT_MOST_S) * 1000, max_records=limit)
        except KafkaError as e:
            if getattr(e, "retriable", False):
                return []
            raise OSError(f"Kafka refuses to give its messages: {_text(e)}") from None
        values: list[bytes] = []
        for partition, records in found.items():
            self._positions[partition] = records[-1].offset + 1
            values += [r.value for r in records]
        return values

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. The new connection goes on where the old one stood."""
        began_ns = time.monotonic_ns()
        self.close()
        self._open()
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py: the sum of end offset − position."""
        end_offsets = read_system(system, KafkaFinish).end_offsets
        positions = {tp.partition: position for tp, position in self._positions.items()}
        return sum(max(0, end - positions.get(p, 0)) for p, end in end_offsets.items())

    def report_system(self) -> None:
        """There is nothing to add."""

    def close(self) -> None:
        """See transport.py."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with contextlib.suppress(KafkaError):
                consumer.close(autocommit=False, timeout_ms=0)

    def _opened(self) -> Any:
        if self._consumer is None:
            raise OSError("the subscriber is not configured")
        return self._consumer

    def _open(self) -> None:
        """Connects if there is no connection, and seeks to the positions."""
        with _explained():
            if self._consumer is None:
                self._consumer = KafkaConsumer(**self._config)
            self._consumer.assign(list(self._positions))
            for partition, offset in self._positions.items():
                self._consumer.seek(partition, offset)


def _common_config(client: int, kafka: KafkaConfigure, role: Role) -> dict[str, Any]:
    try:
        given = kafka_python_config(kafka.properties, role)
    except UsageError as e:
        raise ValueError(str(e)) from None
    needed = {"sasl_plain_username", "sasl_plain_password"} if given.get("sasl_mechanism") in _WITH_PASSWORD else set()
    if needed - given.keys():
        raise ValueError("sasl.username and sasl.password must be set")
    return {
        "bootstrap_timeout_ms": CONNECT_TIMEOUT_MS,
        **given,
        "bootstrap_servers": kafka.bootstrap.split(","),
        "client_id": f"hydra-{client}",
        # Its own metrics cost a tenth of the rate.
        "metrics_enabled": False,
    }


def _producer_config(client: int, kafka: KafkaConfigure, message_size: int) -> dict[str, Any]:
    size = kafka.batch_bytes or batching.batch_bytes(kafka.msg_batch, message_size)
    return {
        "max_request_size": batching.request_bytes(size, message_size),
        "max_block_ms": CONNECT_TIMEOUT_MS,
        **_common_config(client, kafka, "publisher"),
        "acks": "all" if kafka.acks == "all" else int(kafka.acks),
        "linger_ms": kafka.linger_ms,
        "compression_type": None if kafka.compression == "none" else kafka.compression,
        "batch_size": size,
        "enable_idempotence": False,
        "allow_auto_create_topics": False,
    }


def _consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, Any]:
    return {
        **_common_config(client, kafka, "subscriber"),
        "group_id": None,
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }


def _text(e: BaseException) -> str:
    return f"{type(e).__name__}: {e}".rstrip(": ")


def _versions() -> dict[str, str]:
    return {"crc32c": version("crc32c"), "kafka-python": kafka.__version__, "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""
    # What goes wrong comes back as an exception; the library's log lines would only fill the sandbox.
    logging.getLogger("kafka").addHandler(logging.NullHandler())

    def publisher(client: int, _control: ControlClient) -> Publisher:
        return Publisher(client)

    def subscriber(client: int, _control: ControlClient) -> Subscriber:
        return Subscriber(client)

    return {
        "kafka-pub": Kind("publisher", "kafka-python", _versions, publisher),
        "kafka-sub": Kind("subscriber", "kafka-python", _versions, subscriber),
    }


if __name__ == "__main__":
    sys.exit(group.main(kinds()))
