"""How much memory brokers of our own take: their heaps by how many share a machine, and what comes on top. Pure."""

from __future__ import annotations

from typing import Final

MEGABYTE: Final = 1 << 20
ALONE_MB: Final = 1024
"""The heap of one broker by itself."""
LEAST_MB: Final = 256
ALL_MB: Final = 3072
"""The heaps of the brokers of one machine together, where that leaves each of them enough."""
OVERHEAD_MB: Final = 260
"""What Java takes beside the heap at most: code, threads, buffers of the network (docs/limits.md)."""


def heap_mb(sharing: int) -> int:
    """The heap (MB) of each of so many brokers on one machine."""
    return min(ALONE_MB, max(LEAST_MB, ALL_MB // sharing // 32 * 32))


def memory_bytes(sharing: int) -> int:
    """What each of so many brokers on one machine takes at most."""
    return (heap_mb(sharing) + OVERHEAD_MB) * MEGABYTE


def options(sharing: int) -> list[str]:
    """Java's options for the heap of each of so many brokers on one machine."""
    heap = heap_mb(sharing)
    return [f"-Xms{heap // 2}m", f"-Xmx{heap}m"]


def shortage(brokers: int, available_bytes: int) -> str:
    """Why so many brokers do not fit into a machine's memory, "" if they do."""
    needed = brokers * memory_bytes(brokers)
    if needed <= available_bytes:
        return ""
    return (
        f"{brokers} brokers × ({heap_mb(brokers)} MB heap + {OVERHEAD_MB} MB) = {needed / 1e9:.1f} GB and the page"
        f" cache on top, and {available_bytes / 1e9:.1f} GB of memory are free"
    )
