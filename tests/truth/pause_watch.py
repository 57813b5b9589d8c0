"""Watches one core until standard input ends: it wakes up all the time, and prints the pauses when it was late.

Run by its path (see pauses.py), so it imports nothing of the tests. What it writes: "begun", and at its end a line with
the begin and the end of each pause, ns of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import os
import select
import sys
import time

_EVERY_NS = 250_000
_LATE_NS = 100_000
"""It is woken this late on a machine that has time; what is not later is no pause."""


def watch(core: int) -> None:
    """Stays on this core, and prints what it saw when standard input has ended."""
    os.sched_setaffinity(0, [core])
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    late: list[tuple[int, int]] = []
    due_ns = time.monotonic_ns() + _EVERY_NS
    while not select.select([sys.stdin], [], [], max(due_ns - time.monotonic_ns(), 0) / 1e9)[0]:
        woken_ns = time.monotonic_ns()
        if woken_ns - due_ns > _LATE_NS:
            # It may have begun just after the last time.
            late.append((due_ns - _EVERY_NS, woken_ns))
        due_ns = max(due_ns + _EVERY_NS, woken_ns)
    sys.stdout.writelines(f"{begins_ns} {ends_ns}\n" for begins_ns, ends_ns in late)


if __name__ == "__main__":
    watch(int(sys.argv[1]))
