"""How a relay or server obeys ``watch``: it reads its host and its group's threads, and sends samples in time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from hydra.client.process_sampler import TcpSampler, ThreadSampler
from hydra.model import BusyThread, HostCounters, TcpConnections
from hydra.wire.messages import MAX_SAMPLES, HostReadings, Sample, Watch

if TYPE_CHECKING:
    from hydra.client.host_counters import HostSampler

_SENT_WITHIN_NS: Final = 1_000_000_000
_FORGOTTEN_AFTER_NS: Final = 30_000_000_000
"""A controller that has not resent ``watch`` for this long is dead or has stopped watching."""
_SOME: Final = 32
"""The number of processes that are read in a group of subscribers."""
_UNREADABLE: Final = (OSError, ValueError, LookupError, RuntimeError)
"""Errors of reading an unusual kernel: the sample then lacks this part, because the group has to continue."""


class HostMonitor:
    """Obeys ``watch``.

    Args:
        ids: the clients of the group.
        send: sends the samples.
        host: reads the counters of this host.
        threads: reads the busiest threads; None: threads are not read.
        clock_ns: reads CLOCK_MONOTONIC.
        connections: reads the waiting times of TCP connections; None: they are not read.
    """

    def __init__(
        self,
        ids: Sequence[int],
        send: Callable[[HostReadings], None],
        host: Callable[[], HostCounters],
        threads: Callable[[], list[BusyThread]] | None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        connections: Callable[[], TcpConnections | None] | None = None,
    ) -> None:
        self._ids = list(ids)
        self._send = send
        self._host = host
        self._threads = threads
        self._connections = connections
        self._clock_ns = clock_ns
        self._epoch = 0
        self._ended = 0  # the last epoch whose watch has ended
        self._every_ns = 0
        self._with_host = False
        self._until_ns = 0
        self._due_ns = 0
        self._samples: list[Sample] = []
        self._first_ns = 0

    def take(self, watch: Watch) -> None:
        """Obeys ``watch``; after the first one of an epoch, the next :meth:`work` takes a sample."""
        if watch.epoch < self._epoch:
            return
        now_ns = self._clock_ns()
        if watch.epoch > self._epoch:
            self._epoch, self._every_ns, self._samples = watch.epoch, 0, []
        if watch.every_s == 0:
            self._every_ns, self._ended = 0, self._epoch
            self._send_samples()
        elif self._ended < self._epoch:
            if not self._every_ns:
                self._due_ns = now_ns
            self._every_ns = max(1, round(watch.every_s * 1e9))
            self._with_host = watch.host
            self._until_ns = now_ns + _FORGOTTEN_AFTER_NS

    def work(self) -> float:
        """Does what is due now; returns for how many seconds nothing is due, infinity without a watch."""
        now_ns = self._clock_ns()
        if self._every_ns and now_ns >= self._until_ns:
            self._every_ns, self._samples = 0, []
        if not self._every_ns:
            return float("inf")
        if now_ns >= self._due_ns:
            self._read(now_ns)
            # A late sample does not shift the schedule, and missed ones are skipped.
            self._due_ns += self._every_ns * (1 + (now_ns - self._due_ns) // self._every_ns)
        if self._samples and (now_ns >= self._first_ns + _SENT_WITHIN_NS or len(self._samples) >= MAX_SAMPLES):
            self._send_samples()
        send_ns = self._first_ns + _SENT_WITHIN_NS if self._samples else self._due_ns
        return max(0, min(self._due_ns, send_ns, self._until_ns) - self._clock_ns()) / 1e9

    def _read(self, now_ns: int) -> None:
        host: HostCounters | None = None
        threads: list[BusyThread] = []
        connections: TcpConnections | None = None
        with contextlib.suppress(*_UNREADABLE):
            host = self._host() if self._with_host else None
        with contextlib.suppress(*_UNREADABLE):
            threads = self._threads() if self._threads is not None else []
        with contextlib.suppress(*_UNREADABLE):
            connections = self._connections() if self._connections is not None else None
        if not self._samples:
            self._first_ns = now_ns
        self._samples.append(Sample(now_ns, host, threads, connections))

    def _send_samples(self) -> None:
        samples, self._samples = self._samples, []
        self._send(HostReadings(ids=self._ids, seq=1, epoch=self._epoch, samples=samples))


def monitor_of(
    ids: Sequence[int], send: Callable[[HostReadings], None], parent: int, *, some: bool = False
) -> HostMonitor:
    """The monitor of a real group.

    Args:
        ids: the clients of the group.
        send: sends the samples.
        parent: the group's first process.
        some: whether a part of the processes stands for all: there may be thousands that do the same.
    """
    processes = ProcessTreeSampler(parent, most=_SOME if some else None)
    return HostMonitor(ids, send, lambda: _sampler().read(), processes.threads, connections=processes.connections)


class ProcessTreeSampler:
    """Reads what a process and its descendants did since the previous reading; the calling process is left out.

    Args:
        parent: pid of the process.
        most: the largest number of processes to read; None: all.
    """

    def __init__(self, parent: int, *, most: int | None = None) -> None:
        self._threads = ThreadSampler(parent, most=most)
        # Without the relay's own connection to the controller.
        self._connections = TcpSampler(lambda: [pid for pid in self._threads.processes if pid != os.getpid()])

    def follow(self, parent: int) -> None:
        """Makes the sampler read this process and its descendants in place of the earlier process."""
        self._threads.parent = parent

    def threads(self) -> list[BusyThread]:
        """The busiest threads; errors as in :data:`_UNREADABLE`."""
        return self._threads.read()

    def connections(self) -> TcpConnections | None:
        """The waiting times of their TCP connections; read the threads first. Errors as in :data:`_UNREADABLE`."""
        return self._connections.read()

    def read(self) -> tuple[list[BusyThread], TcpConnections | None]:
        """The threads and the connections; a part that the kernel does not provide is empty."""
        threads: list[BusyThread] = []
        connections: TcpConnections | None = None
        with contextlib.suppress(*_UNREADABLE):
            threads = self.threads()
        with contextlib.suppress(*_UNREADABLE):
            connections = self.connections()
        return threads, connections


@cache
def _sampler() -> HostSampler:
    # Hundreds of relays connect at once, and only one on each host reads it: the others need no psutil.
    from hydra.client.host_counters import HostSampler

    return HostSampler()
