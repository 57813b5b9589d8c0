"""The busiest threads of a group: of a parent and everything that descends from it, from /proc."""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.model import BusyThread
from hydra.wire.messages import MAX_THREADS

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SHARE: Final = 0.02
"""Of a core that reading takes at most: of thousands of threads, each reading costs tens of milliseconds."""
_USER_FIELD: Final = 11
"""Where the CPU in user mode is in /proc/PID/stat, counted from the state, which is behind the name (proc(5))."""


@dataclass(frozen=True, slots=True)
class _Thread:
    """``ticks``: its CPU so far."""

    pid: int
    name: str
    ticks: int


class ThreadSampler:
    """Reads which threads have been busy since it was asked before.

    Args:
        parent: the process that all others descend from.
        proc: where the kernel tells of them.
        clock_ns: CLOCK_MONOTONIC.
    """

    def __init__(self, parent: int, proc: Path = _PROC, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._parent = parent
        self._proc = proc
        self._clock_ns = clock_ns
        self._before: dict[int, _Thread] = {}
        self._before_ns: int | None = None
        self._due_ns = 0
        self._busiest: list[BusyThread] = []

    def read(self) -> list[BusyThread]:
        """The busiest since the last time, busiest first; none the first time.

        While it would cost too much to read them anew, they are said to be as busy as before.
        """
        begin_ns = self._clock_ns()
        if begin_ns >= self._due_ns:
            self._busiest = self._read(begin_ns)
        return self._busiest

    def _read(self, begin_ns: int) -> list[BusyThread]:
        now = dict(self._threads())
        self._due_ns = begin_ns + round((self._clock_ns() - begin_ns) / _SHARE)
        before, before_ns = self._before, self._before_ns
        self._before, self._before_ns = now, begin_ns
        if before_ns is None or begin_ns <= before_ns:
            return []
        # A thread that was not there has done all of its work since then.
        worked = {tid: t.ticks - before[tid].ticks if tid in before else t.ticks for tid, t in now.items()}
        busiest = heapq.nlargest(
            MAX_THREADS, (tid for tid, ticks in worked.items() if ticks > 0), key=worked.__getitem__
        )
        pct = 100 / _TICKS * 1e9 / (begin_ns - before_ns)
        return [BusyThread(now[tid].pid, now[tid].name, round(worked[tid] * pct, 2)) for tid in busiest]

    def _threads(self) -> Iterator[tuple[int, _Thread]]:
        waiting = [self._parent]
        while waiting:
            pid = waiting.pop()
            # Processes and threads may end at any time.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for task in (self._proc / str(pid) / "task").iterdir():
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        yield int(task.name), _thread(pid, (task / "stat").read_text())
                        # Each thread has the children that it forked itself.
                        waiting += map(int, (task / "children").read_text().split())


def _thread(pid: int, stat: str) -> _Thread:
    """The name is in parentheses, and may have some of its own."""
    head, _, tail = stat.rpartition(") ")
    user, system = tail.split()[_USER_FIELD : _USER_FIELD + 2]
    return _Thread(pid, head.partition(" (")[2], int(user) + int(system))
