"""What the hosts of a step do while its window is open: the controller's own is read here, the others are watched."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hydra.client.host import HostSampler
from hydra.control.controller import Controller
from hydra.control.hosts import Place, Post
from hydra.control.roster import Roster
from hydra.model import HostSample, ThreadSample
from hydra.run.window import TICK_NS

_LAST_WITHIN_S: Final = 0.5
"""How long the last samples are waited for; they have been on their way since the window's end."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of a step's hosts: the fields of these names of :class:`hydra.run.step.RawStep`."""

    hosts: dict[str, list[HostSample]]
    host_of: dict[str, str]
    threads: dict[str, list[ThreadSample]]


class StepHosts:
    """Has everything watched from when it is made until :meth:`end`.

    Arguments:
        controller: asks those on other hosts.
        epoch: the step's number.
        step_ns: the step's time at a reading of the controller's CLOCK_MONOTONIC.
    """

    def __init__(self, controller: Controller, epoch: int, step_ns: Callable[[int], int]) -> None:
        self._controller = controller
        self._step_ns = step_ns
        self._sampler = HostSampler()
        self._own: list[HostSample] = []
        controller.watch_hosts(epoch, TICK_NS / 1e9)

    def sample(self, time_ns: int) -> None:
        """Reads this host; ``time_ns`` is on the step's clock."""
        self._own.append(HostSample(time_ns, self._sampler.read()))

    def end(self) -> None:
        """The window is over."""
        self._controller.end_watch()

    def load(self, now_ns: int) -> Load:
        """All that has been read, once the last of it has come; ``now_ns`` is the controller's CLOCK_MONOTONIC."""
        roster = self._controller.roster
        self._controller.wait_until(roster.watch.answered, _LAST_WITHIN_S)
        load = gathered(roster, now_ns, self._step_ns)
        load.hosts[platform.node()] = self._own
        return load


def gathered(roster: Roster, now_ns: int, step_ns: Callable[[int], int]) -> Load:
    """What relays and servers have read, on the step's clock.

    Of a host whose clock is not known (nothing runs there but servers, and none has answered a ping yet) there are no
    samples: nobody could say when they were taken.
    """
    watch = roster.watch
    names = _names(watch.posts(), watch.own)
    load = Load(hosts={}, host_of={post.agent: names[post.place] for post in watch.posts()}, threads={})
    lines = {post.host: roster.clock(post.host, now_ns) for post in watch.posts()}
    for post, sample in watch.samples():
        line = lines[post.host]
        if line is None:
            continue
        time_ns = step_ns(line.controller_ns(sample.time_ns))
        if sample.host is not None:
            load.hosts.setdefault(names[post.place], []).append(HostSample(time_ns, sample.host))
        if post.threads:
            # No thread may have been busy, which is a fact as well.
            load.threads.setdefault(post.agent, []).append(ThreadSample(time_ns, post.group, sample.threads))
    return load


def _names(posts: list[Post], own: Place) -> dict[Place, str]:
    """A name for each place: that of this host for our own, of the others that of the first agent there."""
    names: dict[Place, str] = {}
    for post in sorted(posts, key=lambda p: p.agent):
        names.setdefault(post.place, platform.node() if post.place == own else post.agent)
    return names
