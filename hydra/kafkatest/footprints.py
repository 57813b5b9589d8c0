"""Resources of clients and brokers, measured in /proc on one machine (docs/limits.md) and rounded up.

The more brokers share a machine, the smaller are their heaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.system import Footprint, ServerFootprint

MEGABYTE: Final = 1 << 20
ALONE_MB: Final = 1024
"""The heap of a broker that has a machine for itself."""
LEAST_MB: Final = 256
ALL_MB: Final = 3072
"""The sum of the heaps of a machine's brokers, if each broker then has at least ``LEAST_MB``."""
OVERHEAD_MB: Final = 260
"""The most memory that Java needs besides the heap: code, threads, network buffers (docs/limits.md)."""


def heap_mb(sharing: int) -> int:
    """The heap (MB) of each of ``sharing`` brokers on one machine."""
    return min(ALONE_MB, max(LEAST_MB, ALL_MB // sharing // 32 * 32))


def memory_bytes(sharing: int) -> int:
    """The most memory (bytes) of each of ``sharing`` brokers on one machine."""
    return (heap_mb(sharing) + OVERHEAD_MB) * MEGABYTE


def heap_options(sharing: int) -> list[str]:
    """Java's options for the heap of each of ``sharing`` brokers on one machine."""
    heap = heap_mb(sharing)
    return [f"-Xms{heap // 2}m", f"-Xmx{heap}m"]


def shortage(brokers: int, available_bytes: int) -> str:
    """Why this number of brokers does not fit into a machine's memory, "" if it does."""
    needed = brokers * memory_bytes(brokers)
    if needed <= available_bytes:
        return ""
    return (
        f"{brokers} brokers × ({heap_mb(brokers)} MB heap + {OVERHEAD_MB} MB) = {needed / 1e9:.1f} GB and the page"
        f" cache on top, and {available_bytes / 1e9:.1f} GB of memory are free"
    )


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
