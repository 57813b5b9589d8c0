"""The step's clock: the controller's CLOCK_MONOTONIC plus one offset to its wall clock, as every host reads it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hydra.wire.messages import HostClock

if TYPE_CHECKING:  # relays use this module without numpy
    import numpy as np
    import numpy.typing as npt

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACES: Final = Path("/proc/self/ns")
_BILLION: Final = 10**9
_Ns = TypeVar("_Ns", int, "npt.NDArray[np.int64]")


def boot_id() -> str:
    """The kernel's id of this boot of this host."""
    return _BOOT_ID.read_text().strip()


def time_namespace() -> str:
    """The id of this process's time namespace, such as ``"time:[4026531834]"``; "" if the kernel has none.

    Processes of one boot and one time namespace share CLOCK_MONOTONIC.
    """
    return _namespace("time")


def network_namespace() -> str:
    """The id of this process's network namespace, which decides what interfaces the process sees; "" if unknown."""
    return _namespace("net")


def _namespace(kind: str) -> str:
    try:
        return str((_NAMESPACES / kind).readlink())
    except OSError:
        return ""


def wall_offset_ns() -> int:
    """Unix time − CLOCK_MONOTONIC now, in ns: of five readings, the one that took the least time."""
    best_gap, best = 1 << 62, 0
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best_gap:
            best_gap, best = after - before, wall - (before + after) // 2
    return best


class StepClock:
    """Unix time in ns on the step's clock, computed from this host's CLOCK_MONOTONIC; it never jumps in a step."""

    __slots__ = ("_at_ns", "_rate_ppb", "_step_ns")

    def __init__(self, clock: HostClock) -> None:
        self._at_ns, self._step_ns, self._rate_ppb = clock.at_ns, clock.step_ns, clock.rate_ppb

    def now_ns(self) -> int:
        """The present time, Unix ns."""
        return self.at_ns(time.monotonic_ns())

    def at_ns(self, monotonic_ns: _Ns) -> _Ns:
        """The time (Unix ns) at a CLOCK_MONOTONIC reading (ns), or at each of many."""
        passed_ns = monotonic_ns - self._at_ns
        # In an array, the product of the whole time and the rate would not fit into 64 bits.
        seconds, rest_ns = divmod(passed_ns, _BILLION)
        return self._step_ns + passed_ns + seconds * self._rate_ppb + rest_ns * self._rate_ppb // _BILLION

    def monotonic_ns_of(self, step_ns: int) -> int:
        """The CLOCK_MONOTONIC reading (ns) at a time (Unix ns); the inverse of :meth:`at_ns` within 1 ns."""
        passed_ns = step_ns - self._step_ns
        return self._at_ns + passed_ns - passed_ns * self._rate_ppb // (_BILLION + self._rate_ppb)

    def until_s(self, step_ns: int) -> float:
        """Seconds of CLOCK_MONOTONIC until a time (Unix ns); 0 if it has passed."""
        return max(self.monotonic_ns_of(step_ns) - time.monotonic_ns(), 0) / _BILLION
