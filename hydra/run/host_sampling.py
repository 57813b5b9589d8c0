"""What the hosts of a step do while its window is open: the controller's own is read here, the others are watched."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from hydra.client.host_counters import HostSampler
from hydra.client.host_monitor import ProcessTreeSampler
from hydra.control.controller import Controller
from hydra.control.roster import Roster
from hydra.control.watch_assignment import Place, WatchSource
from hydra.measure.resources import cpu_between
from hydra.model import HostSample, ThreadSample
from hydra.run.step_window import TICK_NS

_json: Final = msgspec.json.Encoder()
_sample: Final = msgspec.json.Decoder(HostSample)
_MOST_SAMPLES: Final = 2400
"""Of a host in a step: ten minutes have four a second, an hour two in three. Each takes 1 to 2 kB of the database."""
_MOST_APART_NS: Final = 3_000_000_000
"""Between two samples: who says nothing for longer is taken for mute (``control.hosts``)."""
_APART_NS: Final = 900_000_000
"""Between two samples that tell what a host does: less, and the kernel's ticks of CPU time would be seen."""
_LAST_WITHIN_S: Final = 0.5
"""How long the last samples are waited for; they have been on their way since the window's end."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """What is known of a step's hosts: the fields of these names of :class:`hydra.measure.observation.Observation`."""

    hosts: dict[str, list[HostSample]]
    host_of: dict[str, str]
    threads: dict[str, list[ThreadSample]]


class RecentHostSamples:
    """The newest samples of each host that are far enough apart to tell something.

    Attributes:
        pairs: an earlier and a later sample of each host, by its name, ``_APART_NS`` apart or more.
    """

    def __init__(self) -> None:
        self.pairs: dict[str, tuple[HostSample, HostSample]] = {}
        self._since: dict[str, HostSample] = {}

    def add(self, host: str, sample: HostSample) -> None:
        """Takes a host's next sample."""
        since = self._since.setdefault(host, sample)
        if sample.time_ns >= since.time_ns + _APART_NS:
            self.pairs[host] = since, sample
            self._since[host] = sample


class StepHosts:
    """Has everything watched from when it is made until :meth:`end`.

    Arguments:
        controller: asks those on other hosts.
        epoch: the step's number.
        step_ns: the step's time at a reading of the controller's CLOCK_MONOTONIC.
        duration_s: the length of the window that was asked for.
        servers: processes of servers that are no groups, on this host: nobody else could watch them.
    """

    def __init__(
        self,
        controller: Controller,
        epoch: int,
        step_ns: Callable[[int], int],
        duration_s: float = 0.0,
        servers: Sequence[int] = (),
    ) -> None:
        self._controller = controller
        self._step_ns = step_ns
        self._sampler = HostSampler()
        # Packed: a machine with many interfaces has 26 kB of objects in a sample, and there are thousands.
        self._own: list[bytes] = []
        self._servers = [ProcessTreeSampler(pid) for pid in servers]
        self._of_servers: list[ThreadSample] = []
        self._every_ns = min(max(TICK_NS, round(duration_s / _MOST_SAMPLES * 1e9)), _MOST_APART_NS)
        self._next_ns = 0
        self._lately = RecentHostSamples()
        self._names: dict[Place, str] = {}
        self._seen = 0
        controller.watch_hosts(epoch, self._every_ns / 1e9)

    def sample(self, time_ns: int) -> None:
        """Reads this host; ``time_ns`` is on the step's clock."""
        if time_ns < self._next_ns:
            return
        # Half a tick early, so that a tick that comes a little before its time is not left out.
        self._next_ns = time_ns + self._every_ns - TICK_NS // 2
        own = HostSample(time_ns, self._sampler.read())
        self._lately.add(platform.node(), own)
        self._own.append(zlib.compress(_json.encode(own), 1))
        for number, server in enumerate(self._servers):
            threads, connections = server.read()
            self._of_servers.append(ThreadSample(time_ns, f"server {number}", threads, "server", connections))

    def lately(self) -> dict[str, tuple[HostSample, HostSample]]:
        """What each host did last: two samples of it, by its name; times are those of its own clock."""
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
        """The CPU time of all cores that each host used lately, in %, by its name."""
        found = {name: cpu_between(*pair) for name, pair in self.lately().items()}
        return {name: used_pct for name, used_pct in found.items() if used_pct is not None}

    def end(self) -> None:
        """The window is over."""
        self._controller.end_watch()

    def load(self, now_ns: int) -> HostLoad:
        """All that has been read, once the last of it has come; ``now_ns`` is the controller's CLOCK_MONOTONIC."""
        roster = self._controller.roster
        self._controller.wait_until(roster.watch.answered, _LAST_WITHIN_S)
        load = samples_on_step_clock(roster, now_ns, self._step_ns)
        load.hosts[platform.node()] = [_sample.decode(zlib.decompress(text)) for text in self._own]
        if self._of_servers:
            load.threads.setdefault(platform.node(), []).extend(self._of_servers)
        return load


def samples_on_step_clock(roster: Roster, now_ns: int, step_ns: Callable[[int], int]) -> HostLoad:
    """What relays and servers have read, on the step's clock.

    Of a host whose clock is not known (nothing runs there but servers, and none has answered a ping yet) there are no
    samples: nobody could say when they were taken.
    """
    watch = roster.watch
    names = _names(watch.posts(), watch.own)
    load = HostLoad(hosts={}, host_of={post.agent: names[post.place] for post in watch.posts()}, threads={})
    lines = {post.host: roster.clock(post.host, now_ns) for post in watch.posts()}
    for post, sample in watch.samples():
        line = lines[post.host]
        if line is None:
            continue
        time_ns = step_ns(line.controller_ns(sample.time_ns))
        if sample.host is not None:
            load.hosts.setdefault(names[post.place], []).append(HostSample(time_ns, sample.host))
        # No thread may have been busy, which is a fact as well.
        load.threads.setdefault(post.agent, []).append(
            ThreadSample(time_ns, post.group, sample.threads, post.role, sample.connections)
        )
    return load


def _names(posts: list[WatchSource], own: Place) -> dict[Place, str]:
    """A name for each place: that of this host for our own, of the others that of the first agent there."""
    names: dict[Place, str] = {}
    for post in sorted(posts, key=lambda p: p.agent):
        names.setdefault(post.place, platform.node() if post.place == own else post.agent)
    return names
