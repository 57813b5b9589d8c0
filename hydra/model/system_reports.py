"""What clients report of their system: accepted messages, and connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ACCEPTANCE: Final = "acceptance"
"""The key of this report in the ``system`` object of a publisher's report."""

LOST_COUNTS: Final = ("lost_connections", "disconnects")
"""The keys in the ``system`` object of a subscriber's report, of any system, for how often its connection was lost."""
LOST_WHY: Final = "lost_why"
"""The key beside them for the reason of the first loss, as the library or the server states it."""

TOO_LARGE: Final = "message_too_large"
QUOTA: Final = "quota"
NOT_AUTHORIZED: Final = "not_authorized"
NO_SPACE: Final = "no_space"
FULL: Final = "stream_full"
NO_REPLICAS: Final = "no_replicas"
NO_DESTINATION: Final = "no_destination"
TIMEOUT: Final = "timeout"
CONNECTION_LOST: Final = "connection_lost"
OTHER: Final = "other"
"""Why a message was not accepted; the words are those of every system, and programs decide by them."""

BY_SERVER: Final = frozenset({TOO_LARGE, QUOTA, NOT_AUTHORIZED, NO_SPACE, FULL, NO_REPLICAS, NO_DESTINATION, OTHER})
"""The reasons that only a server gives; the others do not show what limited the publisher."""

MOST_CHARACTERS: Final = 200
"""A longer text of a server or a library is cut."""


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """Why messages of one publisher were not accepted in an epoch.

    Attributes:
        reason: the first reason for which a server or the library rejected a message, one of the words above; "": none
            was rejected.
        text: the text of the server or the library for it.
        messages: the messages that were rejected for this reason.
        lost_connections: how often the connection to a server was lost.
        lost_why: the reason of the server or the library for the first loss.
        stalled_us: at rate ``max``: the longest time within the window in which messages were offered and none was
            accepted, µs.
    """

    reason: str = ""
    text: str = ""
    messages: int = 0
    lost_connections: int = 0
    lost_why: str = ""
    stalled_us: int = 0


def reported(text: str) -> str:
    """A text of a server or a library as reports have it: one line, and not too long."""
    return " ".join(text.split())[:MOST_CHARACTERS]


class FirstReason:
    """Keeps the first reason of a step, and counts the messages that were rejected for it."""

    def __init__(self) -> None:
        self.reason = self.text = ""
        self.messages = 0

    def add(self, reason: str, text: str, messages: int = 1) -> None:
        """Messages were rejected for this reason, with this text of the server or the library."""
        if not self.reason:
            self.reason, self.text = reason, reported(text)
        if reason == self.reason:
            self.messages += messages


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
