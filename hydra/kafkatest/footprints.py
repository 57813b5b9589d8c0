"""Resources of clients and brokers, measured in /proc on one machine (docs/limits.md) and rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.kafkatest.broker_memory import memory_bytes
from hydra.system import Footprint, ServerFootprint

_BROKER_KNOWN: Final = Footprint(threads=1, files=3, memory_bytes=30_000)
"""librdkafka's resources for each broker that it knows: a thread, the pipe that wakes it, a connection."""

IMPLEMENTATIONS: Final[Mapping[str, Footprint]] = {
    "kafka-python": Footprint(threads=4, files=20, memory_bytes=14_000_000, ordered_topics=False),
    "confluent-kafka": Footprint(7, 24, 9_000_000, server=_BROKER_KNOWN, ordered_topics=False),
    "kafka-tool": Footprint(threads=32, files=90, memory_bytes=340_000_000),  # Java, its supervisor, and the client
    "native": Footprint(5, 18, 1_500_000, further=Footprint(3, 6, 320_000), server=_BROKER_KNOWN),
}

BROKER: Final = ServerFootprint(
    processes=2,  # Java, and its supervisor
    threads=120,
    files=150,
    connections=2,
    memory_bytes=memory_bytes(1),
    memory_of=memory_bytes,
    record_bytes=10,  # docs/kafka.md: of a message, and of its batch
    steps_kept=2,  # the step that runs and the one before it; see system.py
    late_s=10.0,  # to free what was deleted (log.retention.check.interval.ms)
    most_bytes_a_second=400_000_000,  # docs/limits.md
    start_s=4.0,
    join_s=3.0,
    back_s=20.0,  # docs/connections.md: the start of Java, the session of the killed broker, and the clients' pauses
)
