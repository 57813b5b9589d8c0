"""The samples of hosts during a step's window: of the controller's own host, and of those that relays watch."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hydra.client.host_counters import HostSampler
from hydra.client.host_monitor import ProcessTreeSampler
from hydra.client.linux_process import process_cpu_ns
from hydra.control.controller import Controller
from hydra.control.roster import Roster
from hydra.control.watch_assignment import Place, SampleLog, WatchSource
from hydra.measure.observation import CPU, ServerFigures
from hydra.measure.resources import cpu_between
from hydra.model import HostSample, ThreadSample
from hydra.monitor.step_progress import TICK_NS

_MOST_SAMPLES: Final = 2400
"""The most samples of a host in a step: four a second in ten minutes, two in three seconds in an hour. Each takes 1 to
2 kB of the database."""
_MOST_APART_NS: Final = 3_000_000_000
"""The longest time between two samples, below the silence after which a relay is replaced (``watch_assignment.py``)."""
_APART_NS: Final = 900_000_000
"""The shortest time between two compared samples: the kernel counts CPU time in ticks, too coarse for less."""
_LAST_WITHIN_S: Final = 0.5
"""The longest wait for the last samples, which are on their way since the end of the window."""


@dataclass(frozen=True, slots=True)
class WindowSamples:
    """The samples of a step's hosts, in fields as of :class:`hydra.measure.observation.Observation`.

    ``servers`` has only the CPU use of servers without a process group.
    """

    hosts: dict[str, list[HostSample]]
    host_of: dict[str, str]
    threads: dict[str, list[ThreadSample]]
    servers: ServerFigures = field(default_factory=dict)


class RecentHostSamples:
    """The newest samples of each host that are far enough apart to be compared.

    Attributes:
        pairs: an earlier and a later sample of each host, by its name, ``_APART_NS`` apart or more.
    """

    def __init__(self) -> None:
        self.pairs: dict[str, tuple[HostSample, HostSample]] = {}
        self._since: dict[str, HostSample] = {}

    def add(self, host: str, sample: HostSample) -> None:
        """Adds the next sample of a host."""
        since = self._since.setdefault(host, sample)
        if sample.time_ns >= since.time_ns + _APART_NS:
            self.pairs[host] = since, sample
            self._since[host] = sample


class ServerCpuClock:
    """The CPU time of a server over several readings, also if a new process replaces the server's.

    Args:
        cpu_ns: reads the CPU time of a process (ns); None: the process has ended, or the kernel does not count it.
    """

    def __init__(self, cpu_ns: Callable[[int], int | None] = process_cpu_ns) -> None:
        self._cpu_ns = cpu_ns
        self._pid = 0
        self._before_ns = 0
        self._used_ns = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._is_known = False

    def read(self, pid: int, time_ns: int) -> None:
        """Adds the CPU time that the server has used since the last reading; the first reading adds nothing.

        Args:
            pid: the server's present process, which may have ended.
            time_ns: the present time, on any clock.
        """
        now_ns, self._last_ns = self._cpu_ns(pid), time_ns
        self._is_known |= now_ns is not None
        if self._first_ns is None:
            self._first_ns, self._pid, self._before_ns = time_ns, pid, now_ns or 0
        elif now_ns is not None:
            # A new process has done all of its work since the last reading.
            self._used_ns += now_ns - (self._before_ns if pid == self._pid else 0)
            self._pid, self._before_ns = pid, now_ns

    @property
    def cores(self) -> float | None:
        """The mean number of cores in use between the first and the last reading; None: not known."""
        if not self._is_known or self._first_ns is None or self._last_ns <= self._first_ns:
            return None
        return self._used_ns / (self._last_ns - self._first_ns)


class StepHosts:
    """Has all hosts sampled from its creation until :meth:`end`.

    Arguments:
        controller: has relays sample the other hosts.
        epoch: the step's number.
        step_ns: gives the step's time of a reading of the controller's CLOCK_MONOTONIC.
        duration_s: the planned length of the window in seconds.
        servers: gives the present processes of servers without a process group, on this host, which no relay can
            watch.
    """

    def __init__(
        self,
        controller: Controller,
        epoch: int,
        step_ns: Callable[[int], int],
        duration_s: float = 0.0,
        servers: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        self._controller = controller
        self._step_ns = step_ns
        self._sampler = HostSampler()
        self._own = SampleLog(HostSample)
        self._processes = servers
        self._servers = [(ProcessTreeSampler(pid), ServerCpuClock()) for pid in servers()]
        self._of_servers = SampleLog(ThreadSample)
        self._every_ns = min(max(TICK_NS, round(duration_s / _MOST_SAMPLES * 1e9)), _MOST_APART_NS)
        self._next_ns = 0
        self._lately = RecentHostSamples()
        self._names: dict[Place, str] = {}
        self._seen = 0
        controller.watch_hosts(epoch, self._every_ns / 1e9)

    def sample(self, time_ns: int) -> None:
        """Samples this host if that is due; ``time_ns`` is on the step's clock."""
        if time_ns < self._next_ns:
            return
        # Half a tick early, so a tick slightly before its time counts.
        self._next_ns = time_ns + self._every_ns - TICK_NS // 2
        own = HostSample(time_ns, self._sampler.read())
        self._lately.add(platform.node(), own)
        self._own.add(own)
        for number, (pid, (processes, clock)) in enumerate(zip(self._processes(), self._servers, strict=False)):
            clock.read(pid, time_ns)
            processes.follow(pid)
            threads, connections = processes.read()
            self._of_servers.add(ThreadSample(time_ns, f"server {number}", threads, "server", connections))

    def lately(self) -> dict[str, tuple[HostSample, HostSample]]:
        """The last two samples of each host, by its name; their times are on the host's own clock."""
        watch = self._controller.roster.watch
        samples = watch.samples(self._seen)
        for post, sample in samples:
            if sample.host is not None:
                if post.place not in self._names:
                    self._names = _names(watch.posts(), watch.own)
                self._lately.add(self._names[post.place], HostSample(sample.time_ns, sample.host))
        self._seen += len(samples)
        return dict(self._lately.pairs)

    def cpu_pct(self) -> dict[str, float]:
        """The CPU use of all cores of each host between its last two samples, in %, by its name."""
        found = {name: cpu_between(*pair) for name, pair in self.lately().items()}
        return {name: used_pct for name, used_pct in found.items() if used_pct is not None}

    def end(self) -> None:
        """Ends the sampling of other hosts."""
        self._controller.end_watch()

    def load(self, now_ns: int) -> WindowSamples:
        """Waits for the last samples, and returns all of them; ``now_ns`` is the controller's CLOCK_MONOTONIC."""
        roster = self._controller.roster
        self._controller.wait_until(roster.watch.answered, _LAST_WITHIN_S)
        load = samples_on_step_clock(roster, now_ns, self._step_ns)
        load.hosts[platform.node()] = self._own.since()
        if of_servers := self._of_servers.since():
            load.threads.setdefault(platform.node(), []).extend(of_servers)
        cores = {f"server {number}": clock.cores for number, (_, clock) in enumerate(self._servers, 1)}
        return replace(load, servers={name: {CPU: used} for name, used in cores.items() if used is not None})


def samples_on_step_clock(roster: Roster, now_ns: int, step_ns: Callable[[int], int]) -> WindowSamples:
    """The samples of relays and servers, with times on the step's clock.

    Samples of a host whose clock is not known (it has only servers, and none has answered a ping yet) are left out,
    because their times are unknown.
    """
    watch = roster.watch
    names = _names(watch.posts(), watch.own)
    load = WindowSamples(hosts={}, host_of={post.agent: names[post.place] for post in watch.posts()}, threads={})
    lines = {post.host: roster.clock(post.host, now_ns) for post in watch.posts()}
    for post, sample in watch.samples():
        line = lines[post.host]
        if line is None:
            continue
        time_ns = step_ns(line.controller_ns(sample.time_ns))
        if sample.host is not None:
            load.hosts.setdefault(names[post.place], []).append(HostSample(time_ns, sample.host))
        # A sample without busy threads is kept, since it shows that none was busy.
        load.threads.setdefault(post.agent, []).append(
            ThreadSample(time_ns, post.group, sample.threads, post.role, sample.connections)
        )
    return load


def _names(posts: list[WatchSource], own: Place) -> dict[Place, str]:
    """The name of each place: that of this host for its own, the first agent there for the others."""
    names: dict[Place, str] = {}
    for post in sorted(posts, key=lambda p: p.agent):
        names.setdefault(post.place, platform.node() if post.place == own else post.agent)
    return names
