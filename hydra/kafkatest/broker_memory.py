"""The heap and the memory of brokers: the more brokers share a machine, the smaller are their heaps."""

from __future__ import annotations

from typing import Final

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
        f"{brokers} brokers × ({heap_mb(brokers)} MiB heap + {OVERHEAD_MB} MiB) = {needed / 1e9:.1f} GB and the page"
        f" cache on top, and {available_bytes / 1e9:.1f} GB of memory are free"
    )
