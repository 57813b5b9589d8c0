"""What a publisher reports about the messages that the system did not accept, and clients about lost connections."""

from __future__ import annotations

from dataclasses import dataclass
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
