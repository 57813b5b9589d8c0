"""What a group's processes wait for, from the kernel's counters: their busiest threads and TCP connections."""

from __future__ import annotations

import contextlib
import heapq
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from hydra.model import BusyThread, TcpConnections
from hydra.wire.messages import MAX_THREADS

CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_NS_PER_US: Final = 1000
_MOST_KEPT: Final = 1024
"""The most processes whose groups are kept; groups of others are read again."""


class QuotaReader:
    """Reads how long the control groups of a process were stopped because their quota was used up.

    Args:
        proc: the folder of the kernel's files about processes.
        groups: the folder in which control groups are mounted.
    """

    def __init__(self, proc: Path, groups: Path = CONTROL_GROUPS) -> None:
        self._proc = proc
        self._groups = groups
        self._folders = lru_cache(_MOST_KEPT)(self._folders_of)

    def stopped_ns(self, pids: Iterable[int]) -> dict[int, int]:
        """The time since the groups of each process exist (ns): the sum over its group and those above it.

        The kernel adds up the times of all cores. 0 if there is no quota. Processes of one group cost one reading.
        """
        folders = {pid: self._folders(pid) for pid in pids}
        times_ns = {folder: _stopped_ns(folder) for folder in {each for its in folders.values() for each in its}}
        return {pid: sum(times_ns[folder] for folder in its) for pid, its in folders.items()}

    def _folders_of(self, pid: int) -> tuple[Path, ...]:
        try:
            lines = (self._proc / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return ()
        found = []
        for line in lines:
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if controllers and "cpu" not in controllers.split(","):
                continue
            inside = Path(path.lstrip("/"))
            if ".." in inside.parts:
                continue  # the group lies outside of what this process sees
            mounted = self._groups / "cpu" if controllers else self._groups
            found += [mounted / each for each in (inside, *inside.parents)]
        return tuple(found)


def _stopped_ns(folder: Path) -> int:
    """The time of one group: version 1 counts it in ns, version 2 in µs."""
    try:
        text = (folder / "cpu.stat").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "throttled_time":
            return int(value)
        if name == "throttled_usec":
            return int(value) * _NS_PER_US
    return 0


_PROC: Final = Path("/proc")
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_SHARE: Final = 0.02
"""Largest share of a core that reading may use: a reading of thousands of threads costs tens of milliseconds."""
_USER_FIELD: Final = 11
"""Index of the user CPU time in /proc/PID/stat, counted from the state, which follows the name (proc(5))."""


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread's running time ``run_ns``, and the time ``wait_ns`` in which it was ready but waited for a core."""

    pid: int
    run_ns: int
    wait_ns: int


class ThreadSampler:
    """Reads which threads of a group have been busy since the previous reading.

    Args:
        parent: pid of the process from which all others descend.
        most: the largest number of processes to read; None: all.
        groups: the folder in which control groups are mounted.
        proc: the folder of the kernel's files about processes.
        clock_ns: reads CLOCK_MONOTONIC.
        cpu_ns: CPU time of this thread: on a busy host, the elapsed time of a reading is more than its cost.
    """

    def __init__(
        self,
        parent: int,
        proc: Path = _PROC,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        *,
        most: int | None = None,
        groups: Path = CONTROL_GROUPS,
    ) -> None:
        self.processes: list[int] = []
        """The processes of the last reading."""
        self.parent = parent
        """The process from which all others descend; another one may replace it, and counts from its start."""
        self._most = most
        self._proc = proc
        self._clock_ns = clock_ns
        self._cpu_ns = cpu_ns
        self._before: dict[int, _Thread] = {}
        self._before_ns: int | None = None
        self._due_ns = 0
        self._busiest: list[BusyThread] = []
        self._quota = QuotaReader(proc, groups)
        self._stopped_ns: dict[int, int] = {}

    def read(self) -> list[BusyThread]:
        """The busiest threads since the previous reading, ordered by CPU demand; none the first time.

        If another reading would cost too much, the result is that of the last reading.
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
            # Without a second reading there is no result at all, so its cost is not limited.
            self._due_ns = 0
            return []
        # A thread that is new has done all of its work since the previous reading.
        none = _Thread(0, 0, 0)
        done = {tid: (t.run_ns - (b := before.get(tid, none)).run_ns, t.wait_ns - b.wait_ns) for tid, t in now.items()}
        ran = (tid for tid, (run_ns, _) in done.items() if run_ns > 0)
        busiest = heapq.nlargest(MAX_THREADS, ran, lambda tid: sum(done[tid]))
        pct = 100 / (begin_ns - before_ns)
        stopped_ns = self._quota.stopped_ns({now[tid].pid for tid in busiest})
        quota_pct = {pid: min((ns - self._stopped_ns.get(pid, ns)) * pct, 100.0) for pid, ns in stopped_ns.items()}
        self._stopped_ns = stopped_ns
        return [
            BusyThread(pid, name, round(run_ns * pct, 2), round(wait_ns * pct, 2), tid, quota_pct[pid])
            for tid in busiest
            if (name := self._name(pid := now[tid].pid, tid)) is not None
            for run_ns, wait_ns in (done[tid],)
        ]

    def _threads(self) -> Iterator[tuple[int, _Thread]]:
        waiting = [self.parent]
        while waiting and len(self.processes) != self._most:
            pid = waiting.pop()
            self.processes.append(pid)
            # Processes and threads may end at any time.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for task in (self._proc / str(pid) / "task").iterdir():
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        yield int(task.name), _thread(pid, task)
                        # Each thread has its own list of the children that it forked.
                        waiting += map(int, (task / "children").read_text().split())

    def _name(self, pid: int, tid: int) -> str | None:
        """The name of a thread; None if it has ended."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            stat = (self._proc / str(pid) / "task" / str(tid) / "stat").read_text()
            # The name stands in parentheses, and may contain some itself.
            return stat.rpartition(") ")[0].partition(" (")[2]
        return None


def _thread(pid: int, task: Path) -> _Thread:
    try:
        run_ns, wait_ns, _ = (task / "schedstat").read_text().split()
        return _Thread(pid, int(run_ns), int(wait_ns))
    except FileNotFoundError:
        # This kernel does not count how long threads wait.
        user, system = (task / "stat").read_text().rpartition(") ")[2].split()[_USER_FIELD : _USER_FIELD + 2]
        return _Thread(pid, (int(user) + int(system)) * _TICK_NS, 0)


_HALF: Final = 0.5
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_DUMP: Final = 0x301
"""NLM_F_REQUEST | NLM_F_DUMP."""
_DONE, _ERROR = 3, 2
_ESTABLISHED: Final = 1 << 1
_INFO: Final = 2
"""INET_DIAG_INFO: the attribute with ``struct tcp_info``."""
_HEADER: Final = struct.Struct("=IHHII")
_REQUEST: Final = struct.Struct("=BBBxI48x")
_ANSWER: Final = struct.Struct("=4x40x8s4xIIII")
"""``struct inet_diag_msg``: of the socket's id only the cookie; then rqueue, wqueue, uid and inode."""
_ATTRIBUTE: Final = struct.Struct("=HH")
_UNSENT: Final = struct.Struct("=I")
_TIMES: Final = struct.Struct("=QQQ")
_BYTES_SENT: Final = struct.Struct("=Q")
_UNSENT_AT, _TIMES_AT, _BYTES_SENT_AT = 144, 168, 200
"""Offsets in ``struct tcp_info``: tcpi_notsent_bytes; tcpi_busy_time, _rwnd_limited and _sndbuf_limited (µs); and
tcpi_bytes_sent (Linux 4.19 and newer)."""
_ANSWER_BYTES: Final = 1 << 18
_WITHIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class TcpConnection:
    """A TCP connection: bytes sent, time with data in flight, and the parts of it that the reader or buffer limited."""

    inode: int
    unread_bytes: int
    unsent_bytes: int
    sent_bytes: int
    busy_us: int
    reader_us: int
    buffer_us: int


def established() -> dict[bytes, TcpConnection]:
    """The established TCP connections of this network namespace, by the kernel's cookie.

    Raises:
        OSError: the kernel does not report them.
    """
    found: dict[bytes, TcpConnection] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as query:
        query.settimeout(_WITHIN_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ESTABLISHED)
            query.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0) + request)
            for answer in _answers(query):
                found |= _parsed(answer)
    return found


def _answers(query: socket.socket) -> Iterator[memoryview]:
    while True:
        data = memoryview(query.recv(_ANSWER_BYTES))
        while len(data) >= _HEADER.size:
            length, kind, _, _, _ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel does not report TCP connections")
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def _parsed(answer: memoryview) -> dict[bytes, TcpConnection]:
    """The connection in a kernel's answer; empty if the answer lacks its times."""
    cookie, unread_bytes, _, _, inode = _ANSWER.unpack_from(answer)
    attributes = answer[_ANSWER.size :]
    while len(attributes) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        if kind == _INFO and length >= _ATTRIBUTE.size + _BYTES_SENT_AT + _BYTES_SENT.size:
            info = attributes[_ATTRIBUTE.size : length]
            (unsent_bytes,) = _UNSENT.unpack_from(info, _UNSENT_AT)
            (sent_bytes,) = _BYTES_SENT.unpack_from(info, _BYTES_SENT_AT)
            times_us = _TIMES.unpack_from(info, _TIMES_AT)
            return {cookie: TcpConnection(inode, unread_bytes, unsent_bytes, sent_bytes, *times_us)}
        attributes = attributes[max((length + 3) & ~3, _ATTRIBUTE.size) :]
    return {}


class TcpSampler:
    """Reads what the TCP connections of a group's processes have waited for since the previous reading.

    Args:
        processes: pids of the group's processes that carry messages.
        connections: reads all connections of the network namespace.
        proc: the folder of the kernel's files, which show what process has which connection.
        clock_ns: reads CLOCK_MONOTONIC.
        cpu_ns: CPU time of this thread: on a busy host, the elapsed time of a reading is more than its cost.
    """

    def __init__(
        self,
        processes: Callable[[], list[int]],
        connections: Callable[[], dict[bytes, TcpConnection]] = established,
        proc: Path = _PROC,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._processes = processes
        self._connections = connections
        self._proc = proc
        self._clock_ns = clock_ns
        self._cpu_ns = cpu_ns
        self._before: dict[bytes, TcpConnection] = {}
        self._before_ns: int | None = None
        self._due_ns = 0
        self._last_read: TcpConnections | None = None
        self._known: dict[int, bool] = {}

    def read(self) -> TcpConnections | None:
        """The sums over all connections; None the first time; the last result if another reading would cost too much.

        Raises:
            OSError: the kernel does not report the connections.
        """
        begin_ns = self._clock_ns()
        if begin_ns >= self._due_ns:
            used_ns = self._cpu_ns()
            self._last_read = self._read(begin_ns)
            # Without a second reading there is no result at all, so its cost is not limited.
            self._due_ns = 0 if self._last_read is None else begin_ns + round((self._cpu_ns() - used_ns) / _SHARE)
        return self._last_read

    def _read(self, begin_ns: int) -> TcpConnections | None:
        connections = self._connections()
        is_own = self._are_own({tcp.inode for tcp in connections.values()})
        now = {cookie: tcp for cookie, tcp in connections.items() if is_own[tcp.inode]}
        before, before_ns = self._before, self._before_ns
        self._before, self._before_ns = now, begin_ns
        if before_ns is None or begin_ns <= before_ns:
            return None
        half_us = _HALF * (begin_ns - before_ns) / 1000
        nothing = TcpConnection(0, 0, 0, 0, 0, 0, 0)
        sending = reader = network = 0
        for cookie, tcp in now.items():
            last = before.get(cookie, nothing)
            if tcp.sent_bytes == last.sent_bytes and not tcp.unsent_bytes:
                continue
            sending += 1
            waited_us = tcp.reader_us - last.reader_us
            if waited_us >= half_us:
                reader += 1
                continue
            sent_us = tcp.busy_us - last.busy_us - waited_us - (tcp.buffer_us - last.buffer_us)
            if tcp.unsent_bytes and sent_us >= half_us:
                network += 1
        return TcpConnections(
            *(sending, reader, network),
            unsent_bytes=sum(tcp.unsent_bytes for tcp in now.values()),
            unread_bytes=sum(tcp.unread_bytes for tcp in now.values()),
        )

    def _are_own(self, inodes: set[int]) -> dict[int, bool]:
        """Whether each inode is the group's; looked up only if one is new: a process may have thousands of files."""
        if not inodes <= self._known.keys():
            own = {inode for pid in self._processes() for inode in self._sockets(pid)}
            self._known = {inode: inode in own for inode in inodes}
        return self._known

    def _sockets(self, pid: int) -> Iterator[int]:
        # Processes may end, and files may be closed, at any time.
        try:
            files = list((self._proc / str(pid) / "fd").iterdir())
        except OSError:
            return
        for file in files:
            try:
                name = str(file.readlink())
            except OSError:
                continue
            if name.startswith("socket:["):
                yield int(name[8:-1])
