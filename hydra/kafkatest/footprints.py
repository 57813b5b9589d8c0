"""Resources of clients and brokers, measured in /proc on one machine (docs/limits.md) and rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.kafkatest.broker_memory import memory_bytes
from hydra.kafkatest.settings import TOOL
from hydra.system import Footprint, Implementation, LogFootprint, ServerFootprint, ServerTimes

_BROKER_KNOWN: Final = Footprint(threads=1, files=3, memory_bytes=30_000)
"""librdkafka's resources for each broker that it knows: a thread, the pipe that wakes it, a connection."""

IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {
    "kafka-python": Implementation(Footprint(threads=4, files=20, memory_bytes=14_000_000), ordered_topics=False),
    "confluent-kafka": Implementation(Footprint(7, 24, 9_000_000, server=_BROKER_KNOWN), ordered_topics=False),
    TOOL: Implementation(Footprint(32, 90, 340_000_000), program="tool"),  # Java, its supervisor, and the client
    "native": Implementation(
        Footprint(5, 18, 1_500_000, further=Footprint(3, 6, 320_000), server=_BROKER_KNOWN),
        program="native",
        shows_losses="of one server",
    ),
}

BROKER_LOG: Final = LogFootprint(
    record_bytes=10,  # docs/kafka.md: of a message, and of its batch
    steps_kept=2,  # the step that runs and the one before it; see system.py
    late_s=10.0,  # to free what was deleted (log.retention.check.interval.ms)
    most_bytes_a_second=400_000_000,  # docs/limits.md
)
BROKER: Final = ServerFootprint(
    processes=2,  # Java, and its supervisor
    threads=120,
    files=150,
    connections=2,
    memory=memory_bytes,
    own_ports=16,  # counted in a network namespace of its own
    log=BROKER_LOG,
    # docs/connections.md: the start of Java, the session of the killed broker, and the clients' pauses
    times=ServerTimes(start_s=4.0, join_s=3.0, back_s=20.0),
)
