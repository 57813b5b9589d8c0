"""The step's clock: the controller's CLOCK_MONOTONIC plus one offset to its wall clock, as every host reads it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from hydra.wire.messages import HostClock

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACES: Final = Path("/proc/self/ns")
_BILLION: Final = 10**9


def boot_id() -> str:
    """What identifies this boot of this host."""
    return _BOOT_ID.read_text().strip()


def time_namespace() -> str:
    """What identifies the time namespace of this process, ``"time:[4026531834]"``; "" where the kernel has none.

    Processes of one boot and one time namespace share CLOCK_MONOTONIC.
    """
    return _namespace("time")


def network_namespace() -> str:
    """What identifies the network namespace of this process, likewise: whose interfaces it sees."""
    return _namespace("net")


def _namespace(kind: str) -> str:
    try:
        return str((_NAMESPACES / kind).readlink())
    except OSError:
        return ""


def wall_offset_ns() -> int:
    """Unix time − CLOCK_MONOTONIC now, in ns, by the tightest of a few readings."""
    best_gap, best = 1 << 62, 0
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best_gap:
            best_gap, best = after - before, wall - (before + after) // 2
    return best


class StepClock:
    """Unix time in ns that never steps during a step, from this host's CLOCK_MONOTONIC."""

    __slots__ = ("_at_ns", "_rate_ppb", "_step_ns")

    def __init__(self, clock: HostClock) -> None:
        self._at_ns, self._step_ns, self._rate_ppb = clock.at_ns, clock.step_ns, clock.rate_ppb

    def now_ns(self) -> int:
        """The time now."""
        return self.at_ns(time.monotonic_ns())

    def at_ns(self, monotonic_ns: int) -> int:
        """The time at a CLOCK_MONOTONIC reading."""
        passed_ns = monotonic_ns - self._at_ns
        return self._step_ns + passed_ns + passed_ns * self._rate_ppb // _BILLION

    def monotonic_ns_of(self, step_ns: int) -> int:
        """The CLOCK_MONOTONIC reading at a time; within 1 ns the inverse of :meth:`at_ns`."""
        passed_ns = step_ns - self._step_ns
        return self._at_ns + passed_ns - passed_ns * self._rate_ppb // (_BILLION + self._rate_ppb)

    def until_s(self, step_ns: int) -> float:
        """Seconds of CLOCK_MONOTONIC from now until a time, 0 if it has passed."""
        return max(self.monotonic_ns_of(step_ns) - time.monotonic_ns(), 0) / _BILLION
