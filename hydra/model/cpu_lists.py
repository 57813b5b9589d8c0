"""Lists of CPUs in the kernel's notation: ``0-3,8``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CPUS_AT_MOST: Final = 8192
"""The most CPUs that a Linux kernel can have (NR_CPUS)."""


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a list, in ascending order.

    Raises:
        ValueError: the text is no list of CPUs.
    """
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdigit() and int(end) < CPUS_AT_MOST for end in ends):
            raise ValueError(f"{text!r} is no list of CPUs such as 0-3,8")
        if int(ends[0]) > int(ends[1]):
            raise ValueError(f"{text!r} is no list of CPUs: {part.strip()} falls")
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """The list of these CPUs, with runs as ranges."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1][-1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
