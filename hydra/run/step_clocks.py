"""The time of a step before its window: connecting, the lead, and the clocks of its hosts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pyroaring import BitMap

from hydra.control.clock_offset import ClockLine, HostKey
from hydra.control.roster import Roster
from hydra.measure.connections import ConnectFacts
from hydra.model import AgentClock, Settings
from hydra.wire.messages import Connect, HostClock, Start

_LEAD_NS: Final = 200_000_000
_LEAD_PER_CLIENT_NS: Final = 1_000_000
_MOST_LEAD_NS: Final = 5_000_000_000
"""The time between sending the command and the first due time: a Python client takes up to 1 ms of CPU for it."""
_PROBE_S: Final = 0.05
_PROBED_A_SECOND: Final = 5000
"""The shortest interval between two probes, and the most probes that all subscribers together receive in a second."""
_MARGIN_S: Final = 2.0
"""How much longer the controller waits than subscribers try: an attempt ends, and the messages arrive."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_TIMES: Final = slice(11, 13)
"""The user and system time in /proc/PID/stat, behind the name in brackets."""


def connect_command(settings: Settings, clients: int, *, keeps_up: bool) -> Connect | None:
    """The part of ``configure`` about connecting, without times; None if the step does not measure it.

    Args:
        settings: the settings of the step.
        clients: its subscribers.
        keeps_up: whether a client that is disconnected in the step connects again.
    """
    rate = settings.connect_rate
    if rate is None and not keeps_up:
        return None
    return Connect(
        clock=HostClock(0, 0),
        rate=None if rate in (None, "max") else float(rate),
        within_s=settings.connect_within_s,
        probe_s=max(_PROBE_S, clients / _PROBED_A_SECOND),
    )


def lead_ns(most_on_a_host: int) -> int:
    """The time from sending the command to the first due time, ns."""
    return _LEAD_NS + min(most_on_a_host * _LEAD_PER_CLIENT_NS, _MOST_LEAD_NS)


def longest_wait_s(connect: Connect, last: int, now_ns: int) -> float:
    """Seconds until each subscriber is ready or has given up.

    Args:
        connect: the command.
        last: the id of the last subscriber.
        now_ns: the present time on the step's clock.
    """
    return max(connect.due_ns(last) - now_ns, 0) / 1e9 + connect.within_s + _MARGIN_S


class ServerUsage:
    """The CPU time that server processes on this host use, from when it is made.

    Arguments:
        processes: the ids of the processes.
    """

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = processes
        self._before = self._read()

    def facts(self, settings: Settings, connections: Callable[[], int | None], publishers: int) -> ConnectFacts:
        """The facts of the phase that ends now.

        Args:
            settings: the settings of the step.
            connections: the connections of Hydra itself with the servers; None: not known.
            publishers: the number of publishers, each with one connection.
        """
        own, after = connections(), self._read()
        known = self._before is not None and after is not None
        return ConnectFacts(
            rate=settings.connect_rate,
            others=None if own is None else own + publishers,
            server_cpu_s=(after or 0.0) - (self._before or 0.0) if known else None,
        )

    def _read(self) -> float | None:
        """The CPU seconds of these processes until now; None if there are none, or one has ended."""
        if not self._processes:
            return None
        try:
            stats = [Path(f"/proc/{pid}/stat").read_text() for pid in self._processes]
        except OSError:
            return None
        return sum(int(ticks) for stat in stats for ticks in stat.rpartition(")")[2].split()[_TIMES]) / _TICKS


BURSTS: Final = 3
"""A step begins on a host only after the host has answered this many bursts of pings."""
_ONE_MORE_S: Final = 2.0
"""The longest wait for a further burst; a lost burst is repeated after a second."""
_OWN: Final = AgentClock(offset_ns=0, rate_ppb=0, error_ns=0, rtt_min_ns=0, same_host=True, jumps=0)


def unknown(roster: Roster, clients: BitMap) -> dict[HostKey, str]:
    """The names of the hosts with some of these clients connected, and with a clock that is not known well enough."""
    # All clients of a relay are on its host.
    firsts = [ids.min() for _, ids in roster.identities(clients)]
    hosts = {roster.host(client): roster.hello(client).host for client in firsts}
    return {host: name for host, name in hosts.items() if not known(roster, host)}


def known(roster: Roster, host: HostKey) -> bool:
    """Whether the clock of this host is known well enough for a step."""
    return host == roster.own or roster.timekeeper.bursts(host) >= BURSTS


class StepClocks:
    """The step's clock as it is sent to every host of a step.

    Attributes:
        own: the clock for the controller's host.

    Arguments:
        roster: has the hosts of the clients, and the measurements of their clocks.
        clients: the clients of the step. (Clients that connected after the wait for clocks are not configured for it.)
        now_ns: the present CLOCK_MONOTONIC.
        wall_offset_ns: the step's clock minus CLOCK_MONOTONIC.
    """

    def __init__(self, roster: Roster, clients: BitMap, now_ns: int, wall_offset_ns: int) -> None:
        self._roster = roster
        self._wall_offset_ns = wall_offset_ns
        # The clients of a relay are one group on one agent, and so on one host.
        self._parts = [(roster.host(ids.min()), ids) for _, ids in roster.identities(clients)]
        self._lines: dict[HostKey, ClockLine] = {}
        self._jumps: dict[HostKey, int] = {}
        for host in {host for host, _ in self._parts} - {roster.own}:
            line, estimate = roster.clock(host, now_ns), roster.timekeeper.estimate(host)
            if line is not None and estimate is not None:
                self._lines[host], self._jumps[host] = line, estimate.jumps
        self._parts = [(host, ids) for host, ids in self._parts if host == roster.own or host in self._lines]
        self.own = HostClock(at_ns=now_ns, step_ns=self.step_ns(now_ns))

    def step_ns(self, monotonic_ns: int) -> int:
        """The step's time at a reading of the controller's CLOCK_MONOTONIC."""
        return monotonic_ns + self._wall_offset_ns

    def most_on_a_host(self, ids: BitMap) -> int:
        """The largest number of these clients on one host."""
        on: Counter[HostKey] = Counter()
        for host, members in self._parts:
            on[host] += members.intersection_cardinality(ids)
        return max(on.values(), default=0)

    def shares(self, ids: BitMap, command: Start) -> list[tuple[BitMap, Start]]:
        """The command for each host's share of these clients, with the clock of that host."""
        return [(share, msgspec.structs.replace(command, clock=clock)) for share, clock in self.of_hosts(ids)]

    def of_hosts(self, ids: BitMap) -> list[tuple[BitMap, HostClock]]:
        """Each host's share of these clients, and the step's clock as that host reads it."""
        by_host: dict[HostKey, BitMap] = {}
        for host, members in self._parts:
            if share := members & ids:
                by_host[host] = by_host.get(host, BitMap()) | share
        # (A client that was not connected is not configured for the step either, and ignores its start.)
        if absent := ids - BitMap().union(*by_host.values()):
            by_host[self._roster.own] = by_host.get(self._roster.own, BitMap()) | absent
        return [(share, self._line(host)) for host, share in by_host.items()]

    def _line(self, host: HostKey) -> HostClock:
        line = self._lines.get(host)
        if line is None:
            return self.own
        return HostClock(
            at_ns=line.at_ns + line.offset_ns,
            step_ns=self.step_ns(line.at_ns),
            rate_ppb=line.inverse_rate_ppb,
        )

    def hear_once_more(self, wait_until: Callable[[Callable[[], bool], float], bool]) -> None:
        """Waits until every other host has answered a further burst, so the whole step lies between two bursts."""
        self._roster.timekeeper.hurry()
        bursts = self._roster.timekeeper.bursts
        before = {host: bursts(host) for host in self._lines}
        wait_until(lambda: all(bursts(host) > count for host, count in before.items()), _ONE_MORE_S)

    def used(self, agents: Mapping[int, str], first_ns: int, last_ns: int) -> dict[str, AgentClock]:
        """The clock of each agent, by its id.

        Args:
            agents: the agent of each client.
            first_ns: the time of the first latency on the step's clock.
            last_ns: the time of the last latency on that clock.
        """
        found: dict[str, AgentClock] = {}
        for host, ids in self._parts:
            agent = agents.get(ids.min())
            if agent is not None and agent not in found:
                found[agent] = self._used(host, first_ns - self._wall_offset_ns, last_ns - self._wall_offset_ns)
        return found

    def _used(self, host: HostKey, first_ns: int, last_ns: int) -> AgentClock:
        line, estimate = self._lines.get(host), self._roster.timekeeper.estimate(host)
        if line is None or estimate is None:
            return _OWN
        return AgentClock(
            offset_ns=line.offset_ns,
            rate_ppb=line.rate_ppb,
            error_ns=estimate.bound(line, first_ns, last_ns),
            rtt_min_ns=estimate.rtt_min_ns,
            same_host=False,
            jumps=estimate.jumps - self._jumps[host],
        )
