"""The step's clock: CLOCK_MONOTONIC plus a wall-clock offset captured once, so that a stepped clock ruins nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from hydra.model import ClientClock
from hydra.wire.messages import Start

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What identifies this boot of this host: processes with the same one share CLOCK_MONOTONIC."""
    return _BOOT_ID.read_text().strip()


def wall_offset_ns() -> int:
    """Unix time − CLOCK_MONOTONIC now, in ns."""
    return wall_offset().offset_ns


def wall_offset() -> ClientClock:
    """The same, by the tightest of a few readings, with half the time that this one took."""
    best_gap, best = 1 << 62, 0
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best_gap:
            best_gap, best = after - before, wall - (before + after) // 2
    return ClientClock(offset_ns=best, error_ns=best_gap // 2)


class StepClock:
    """Unix time in ns that never steps during a step.

    On the controller's own host it uses the controller's offset, so that all processes there agree exactly.

    Attributes:
        own: for the report; None where the clock is the controller's.
    """

    def __init__(self, start: Start) -> None:
        self.own = None if start.boot_id == boot_id() else wall_offset()
        self._offset_ns = start.wall_offset_ns if self.own is None else self.own.offset_ns

    def now_ns(self) -> int:
        """The time now."""
        return time.monotonic_ns() + self._offset_ns

    def at_ns(self, monotonic_ns: int) -> int:
        """The time at a CLOCK_MONOTONIC reading."""
        return monotonic_ns + self._offset_ns
