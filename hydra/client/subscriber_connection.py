"""The connection of one subscriber in a step that measures connecting: when to try, and what became of it. Pure.

All times are readings of CLOCK_MONOTONIC in ns, unless a name ends with another unit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Final

from hydra.client.linux_process import local_limit
from hydra.model.system_reports import MOST_DISCONNECTIONS, ConnectionReport, Disconnection
from hydra.wire.clock import StepClock
from hydra.wire.messages import Connect

ATTEMPT_NS: Final = 5_000_000_000
"""The time limit of one attempt."""
AGAIN_NS: Final = 1_000_000_000
"""The time from a failed attempt to the next one."""


@dataclass(frozen=True, slots=True)
class ConnectPhases:
    """What a library reveals of a connection that it has made; 0 and None: it does not.

    Attributes:
        connected_ns: when the server had accepted the client, login included.
        subscribed: whether the server has confirmed the subscription; otherwise only the first message shows it.
        tcp_us, tls_us, login_us: how long these phases took.
    """

    connected_ns: int = 0
    subscribed: bool = False
    tcp_us: int | None = None
    tls_us: int | None = None
    login_us: int | None = None


class SubscriberConnection:
    """Decides when a subscriber tries to connect, and keeps what it reports.

    Attributes:
        next_ns: when it has to try next; None: it is connected, or has given up.
        connected: whether it is connected.

    Arguments:
        connect: the command.
        client: the id of the subscriber.
    """

    def __init__(self, connect: Connect, client: int) -> None:
        self._clock = StepClock(connect.clock)
        self._due_step_ns = connect.due_ns(client) if connect.at_ns else 0
        self._due_ns = self._clock.monotonic_ns_of(self._due_step_ns)
        self._until_ns = self._due_ns + round(connect.within_s * 1e9)
        self.connected = not connect.at_ns
        self.next_ns: int | None = None if self.connected else self._due_ns
        self._began_ns = self._limit_ns = 0
        self._attempts = self._refused = self._timed_out = 0
        self._refused_why = ""
        self._local: Counter[str] = Counter()
        self._lag_us: int | None = None
        self._ready_us: int | None = None
        self._first_us: int | None = None
        self._phases = ConnectPhases()
        self._disconnections: list[list[int]] = []

    def begin(self, now_ns: int) -> float:
        """Begins an attempt; returns its time limit in seconds."""
        self._began_ns = now_ns
        self._limit_ns = ATTEMPT_NS
        if self._disconnections:
            self._disconnections[-1][2] += 1
            return ATTEMPT_NS / 1e9
        self._attempts += 1
        if self._lag_us is None:
            self._lag_us = self._since_due_us(now_ns)
        self._limit_ns = max(min(ATTEMPT_NS, self._until_ns - now_ns), 1_000_000)
        return self._limit_ns / 1e9

    def fail(self, now_ns: int, error: BaseException) -> None:
        """Ends an attempt with this error."""
        self.next_ns = now_ns + AGAIN_NS
        if self._disconnections:
            return
        if limit := local_limit(error):
            self._local[limit] += 1
        elif now_ns - self._began_ns >= self._limit_ns:
            self._timed_out += 1
        else:
            self._refused += 1
            self._refused_why = self._refused_why or str(error)
        if self.next_ns >= self._until_ns:
            self.next_ns = None

    def succeed(self, now_ns: int, phases: ConnectPhases) -> None:
        """Ends an attempt that has not failed."""
        self.connected, self.next_ns = True, None
        if self._disconnections:
            self._disconnections[-1][1] = self._clock.at_ns(now_ns)
            return
        self._phases = phases
        if phases.subscribed:
            self._ready_us = self._since_due_us(now_ns)

    def receive(self, now_ns: int) -> None:
        """Notes that a message has arrived; only the first one counts."""
        if self._first_us is None and self._due_step_ns:
            self._first_us = self._since_due_us(now_ns)
            if self._ready_us is None and now_ns <= self._until_ns:
                self._ready_us = self._first_us

    def lose(self, now_ns: int) -> None:
        """Notes that the connection was lost; the next attempt is due at once."""
        self.connected, self.next_ns = False, now_ns
        if len(self._disconnections) < MOST_DISCONNECTIONS:
            self._disconnections.append([self._clock.at_ns(now_ns), 0, 0])
        else:
            self._disconnections[-1][1] = 0

    def report(self, by_library: list[Disconnection], limit: str = "") -> dict[str, Any]:
        """The report, without what is not known.

        Args:
            by_library: disconnections after which the library connects again itself, in readings of CLOCK_MONOTONIC.
            limit: the limit of this host at which the library failed to connect in the background; "": none.
        """
        local = dict(self._local)
        if limit and self._attempts and self._ready_us is None and not self._disconnections:
            local[limit] = local.get(limit, 0) + 1
        losses = [(self._clock.at_ns(lost), back and self._clock.at_ns(back), n) for lost, back, n in by_library]
        connected_ns = self._phases.connected_ns
        found = ConnectionReport(
            due_ns=self._due_step_ns,
            attempts=self._attempts,
            refused=self._refused,
            refused_why=self._refused_why,
            timed_out=self._timed_out,
            local=local,
            lag_us=self._lag_us,
            connected_us=self._since_due_us(connected_ns) if connected_ns else None,
            ready_us=self._ready_us,
            first_us=self._first_us,
            tcp_us=self._phases.tcp_us,
            tls_us=self._phases.tls_us,
            login_us=self._phases.login_us,
            disconnections=[*((lost, back, n) for lost, back, n in self._disconnections), *losses],
        )
        return {name: value for name, value in asdict(found).items() if value not in (None, [], {}, "")}

    def _since_due_us(self, now_ns: int) -> int:
        return max(now_ns - self._due_ns, 0) // 1000
