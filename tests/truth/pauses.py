"""A witness of when this machine had no time: a process on each core that wakes up all the time, and notes when late.

What is timed meanwhile had no time then either, whether another process or the hypervisor took it. A test allows for
these pauses, and for nothing else: how long something may take is counted in time that the machine had.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.suite.waiting import SOON_S
from tests.truth.priority import first

Pause = tuple[int, int]
"""From when to when, ns of CLOCK_MONOTONIC."""

_WATCH = Path(__file__).with_name("pause_watch.py")


def merged(pauses: Iterable[Pause]) -> list[Pause]:
    """The time that is in any of these, in order."""
    found: list[Pause] = []
    for begins_ns, ends_ns in sorted(pauses):
        if found and begins_ns <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], ends_ns)
        else:
            found.append((begins_ns, ends_ns))
    return found


def after(moment_ns: int, needed_ns: int, pauses: Sequence[Pause]) -> int:
    """When what begins at a moment and needs so long of the machine's time is done at the latest.

    Args:
        moment_ns: CLOCK_MONOTONIC.
        needed_ns: without the pauses.
        pauses: as :func:`merged` gives them.
    """
    for begins_ns, ends_ns in pauses:
        if ends_ns <= moment_ns:
            continue
        free_ns = max(begins_ns - moment_ns, 0)
        if free_ns >= needed_ns:
            break
        moment_ns, needed_ns = ends_ns, needed_ns - free_ns
    return moment_ns + needed_ns


class Witness:
    """The pauses of all cores, which are known after its end."""

    def __init__(self) -> None:
        self.pauses: list[Pause] = []
        self._processes = [
            subprocess.Popen(
                [*first("").split(), sys.executable, str(_WATCH), str(core)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for core in sorted(os.sched_getaffinity(0))
        ]
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"

    def end(self) -> None:
        """Learns what they saw; doing it again changes nothing."""
        texts = [process.communicate(timeout=SOON_S)[0] for process in self._processes]
        self._processes = []
        lines = [line.split() for text in texts for line in text.splitlines()]
        self.pauses = merged([*self.pauses, *((int(begins), int(ends)) for begins, ends in lines)])


@contextmanager
def witnessed() -> Iterator[Witness]:
    """The machine is watched until the end of this block."""
    witness = Witness()
    try:
        yield witness
    finally:
        witness.end()
