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
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_SHARE: Final = 0.02
"""Of a core that reading takes at most: of thousands of threads, each reading costs tens of milliseconds."""
_USER_FIELD: Final = 11
"""Where the CPU in user mode is in /proc/PID/stat, counted from the state, which is behind the name (proc(5))."""


@dataclass(frozen=True, slots=True)
class _Thread:
    """``run_ns`` and ``wait_ns``: how long it has run, and how long it could have and had to wait."""

    pid: int
    run_ns: int
    wait_ns: int


class ThreadSampler:
    """Reads which threads have been busy since it was asked before.

    Args:
        parent: the process that all others descend from.
        most: so many processes are read at most; None: all.
        proc: where the kernel tells of them.
        clock_ns: CLOCK_MONOTONIC.
        cpu_ns: CPU that this thread has used: on a busy machine, reading takes longer than it costs.
    """

    def __init__(
        self,
        parent: int,
        proc: Path = _PROC,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        *,
        most: int | None = None,
    ) -> None:
        self.processes: list[int] = []
        """Those that were read last."""
        self._parent = parent
        self._most = most
        self._proc = proc
        self._clock_ns = clock_ns
        self._cpu_ns = cpu_ns
        self._before: dict[int, _Thread] = {}
        self._before_ns: int | None = None
        self._due_ns = 0
        self._busiest: list[BusyThread] = []

    def read(self) -> list[BusyThread]:
        """The busiest since the last time, those that wanted most CPU first; none the first time.

        While it would cost too much to read them anew, they are said to be as busy as before.
        """
        begin_ns = self._clock_ns()
        if begin_ns >= self._due_ns:
            self._busiest = self._read(begin_ns)
        return self._busiest

    def _read(self, begin_ns: int) -> list[BusyThread]:
        self.processes = []
        used_ns = self._cpu_ns()
        now = dict(self._threads())
        self._due_ns = begin_ns + round((self._cpu_ns() - used_ns) / _SHARE)
        before, before_ns = self._before, self._before_ns
        self._before, self._before_ns = now, begin_ns
        if before_ns is None or begin_ns <= before_ns:
            # Without a second reading nothing is known at all: it may cost what it will.
            self._due_ns = 0
            return []
        # A thread that was not there has done all of its work since then.
        none = _Thread(0, 0, 0)
        done = {tid: (t.run_ns - (b := before.get(tid, none)).run_ns, t.wait_ns - b.wait_ns) for tid, t in now.items()}
        ran = (tid for tid, (run_ns, _) in done.items() if run_ns > 0)
        busiest = heapq.nlargest(MAX_THREADS, ran, lambda tid: sum(done[tid]))
        pct = 100 / (begin_ns - before_ns)
        return [
            BusyThread(now[tid].pid, name, round(run_ns * pct, 2), round(wait_ns * pct, 2), tid)
            for tid in busiest
            if (name := self._name(now[tid].pid, tid)) is not None
            for run_ns, wait_ns in (done[tid],)
        ]

    def _threads(self) -> Iterator[tuple[int, _Thread]]:
        waiting = [self._parent]
        while waiting and len(self.processes) != self._most:
            pid = waiting.pop()
            self.processes.append(pid)
            # Processes and threads may end at any time.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for task in (self._proc / str(pid) / "task").iterdir():
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        yield int(task.name), _thread(pid, task)
                        # Each thread has the children that it forked itself.
                        waiting += map(int, (task / "children").read_text().split())

    def _name(self, pid: int, tid: int) -> str | None:
        """None: it has ended."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            stat = (self._proc / str(pid) / "task" / str(tid) / "stat").read_text()
            # In parentheses, and it may have some of its own.
            return stat.rpartition(") ")[0].partition(" (")[2]
        return None


def _thread(pid: int, task: Path) -> _Thread:
    try:
        run_ns, wait_ns, _ = (task / "schedstat").read_text().split()
        return _Thread(pid, int(run_ns), int(wait_ns))
    except FileNotFoundError:
        # A kernel that does not count how long threads wait.
        user, system = (task / "stat").read_text().rpartition(") ")[2].split()[_USER_FIELD : _USER_FIELD + 2]
        return _Thread(pid, (int(user) + int(system)) * _TICK_NS, 0)
