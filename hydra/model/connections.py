"""What a subscriber reports about its connection, if the step measures connecting, or the connection was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

CONNECTION: Final = "connection"
"""The key of this report in the ``system`` object of a subscriber's report."""
MOST_DISCONNECTIONS: Final = 64
"""The most disconnections in one report; with more, the last one reaches to the end of the last."""

Disconnection = tuple[int, int, int]
"""When the connection was lost and when it was back (ns, 0: it never was), and the attempts.

The times are on the step's clock, or on the host's CLOCK_MONOTONIC if the step does not measure connecting.
"""


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """How a subscriber connected; times in µs count from the time at which it was due to. None: never, or not known.

    Attributes:
        due_ns: when it was due to connect, ns on the step's clock; 0: it kept its connection.
        attempts: attempts to connect until it was ready.
        refused: attempts that failed before their time limit.
        refused_why: why the first of them failed, as the server or the library states it; "": none did.
        timed_out: attempts that failed at their time limit.
        local: attempts that failed at a limit of the subscriber's host, by its name in :data:`LOCAL_LIMITS`; they are
            in neither of both.
        lag_us: when its first attempt began.
        connected_us: when the server had accepted it, login included.
        ready_us: when the server had accepted its subscription.
        first_us: when its first message arrived.
        tcp_us, tls_us, login_us: how long these phases of its last attempt took.
        disconnections: those after it was ready.
    """

    due_ns: int = 0
    attempts: int = 0
    refused: int = 0
    refused_why: str = ""
    timed_out: int = 0
    local: dict[str, int] = field(default_factory=dict)
    lag_us: int | None = None
    connected_us: int | None = None
    ready_us: int | None = None
    first_us: int | None = None
    tcp_us: int | None = None
    tls_us: int | None = None
    login_us: int | None = None
    disconnections: list[Disconnection] = field(default_factory=list)
