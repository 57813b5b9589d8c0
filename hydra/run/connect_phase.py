"""How the subscribers of a step open new connections: the command, the end of the wait, and the servers' CPU time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from hydra.measure.connections import ConnectFacts
from hydra.model import Settings
from hydra.wire.messages import Connect, HostClock

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
