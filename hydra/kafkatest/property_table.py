"""What every client is told in the same words, because the libraries' own defaults differ.

Defaults change between versions of librdkafka (the native client takes the system's, confluent-kafka brings its own)
and are others in kafka-python; a comparison of the three would compare defaults. Settings of a step are not here: each
implementation obeys them by itself. ``[kafka.properties]`` replaces any of these.

``native/src/kafka/alike.h`` has the same tables, a test compares them; docs/kafka.md says what each is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.model import Role

BOTH: Final[Mapping[str, str]] = {
    "socket.nagle.disable": "true",
    "socket.keepalive.enable": "false",
    "socket.send.buffer.bytes": "0",
    "socket.receive.buffer.bytes": "0",
    "socket.timeout.ms": "60000",
    "connections.max.idle.ms": "540000",
    "reconnect.backoff.ms": "100",
    "reconnect.backoff.max.ms": "10000",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "100",
    "topic.metadata.refresh.interval.ms": "300000",
    "enable.metrics.push": "false",
}
PRODUCER: Final[Mapping[str, str]] = {
    "request.timeout.ms": "30000",
    "queue.buffering.max.messages": "100000",
    "queue.buffering.backpressure.threshold": "1",
}
CONSUMER: Final[Mapping[str, str]] = {
    "queued.min.messages": "100000",
    "queued.max.messages.kbytes": "65536",
    "fetch.error.backoff.ms": "500",
    "fetch.queue.backoff.ms": "1000",
    "isolation.level": "read_uncommitted",
}
SINCE: Final[Mapping[str, int]] = {
    "fetch.queue.backoff.ms": 0x02020000,
    "retry.backoff.max.ms": 0x02030000,
    "enable.metrics.push": 0x02050000,
}
"""The librdkafka that had them first; before, it did what is set here."""


def alike(role: Role) -> Mapping[str, str]:
    """What a role's client is told, in librdkafka's names."""
    return {**BOTH, **(PRODUCER if role == "publisher" else CONSUMER)}
