"""What a user can do about a row that does not carry its load, by what limited the row. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.measure.verdict import (
    EVENTS,
    HOST,
    LOST_CONNECTIONS,
    NOT_LET_IN,
    OTHERS_PCT,
    OTHERS_SHARE,
    PUBLISHER,
    READ_LIMIT,
)
from hydra.model.acceptance import (
    CONNECTION_LOST,
    FULL,
    NO_DESTINATION,
    NO_REPLICAS,
    NO_SPACE,
    NOT_AUTHORIZED,
    QUOTA,
    TIMEOUT,
    TOO_LARGE,
)
from hydra.model.local_limits import LOCAL_LIMITS

QUIET: Final = "end the other processes on that host, or measure when they do not run"
FEWER: Final = "use fewer clients on this host, or more hosts"
LOWER_RATE: Final = "use a lower rate"
HOW_ENDED: Final = "see in the table events of run.db how each subscriber ended"

OF_REFUSAL: Final[Mapping[str, str]] = {
    TOO_LARGE: "send smaller messages or batches, or raise the server's limit of a message's size",
    QUOTA: "raise the quota of this user or client at the server, or remove the quota",
    NOT_AUTHORIZED: "allow the user to write there, or use another user",
    NO_SPACE: "make space on the server's disk, or give the server another one",
    FULL: "raise the limit of the stream's messages or bytes, or let it discard old messages",
    NO_REPLICAS: "start the missing servers, or demand fewer replicas in sync",
    NO_DESTINATION: "create the topic or the stream again, and look who removed it",
    TIMEOUT: "use a lower rate, or allow more time for an answer; see the server's log",
    CONNECTION_LOST: "see in the server's log why it ended the connection",
}
"""What the user can do about messages that were rejected for a reason; of others the server's text shows it."""

NETWORK_OR_SERVER: Final = (
    "see in the server's log why it ended the connections; check the network between clients and servers"
)
LET_IN: Final = (
    "raise the server's limits of connections and of open files, lower --connect-rate, or raise --connect-within"
)
PLANNED: Final[Mapping[str, str]] = {
    EVENTS: "the events of the scenario caused this: measure a row without events to see what the system carries",
    READ_LIMIT: "the setting receive_rate limits the subscribers: raise it, or leave it out",
    NOT_LET_IN: LET_IN,
    LOST_CONNECTIONS: NETWORK_OR_SERVER,
}
"""The causes that are no stage on the messages' way, which a lower rate does not change."""


@dataclass(frozen=True, slots=True)
class RowLimit:
    """What is known to have limited a row, for its remedies.

    Attributes:
        causes: those of its verdict.
        refused: the reason for which the limiting server did not accept messages; "": it accepted them, or gave none.
        local: the cause at the hosts of the run; "": none is known.
        shut_out: the limit of their own host that alone kept subscribers from connecting, as in ``connect_local_why``.
        others_pct: the CPU of a host that processes outside the run used, in %.
    """

    causes: Sequence[str] = ()
    refused: str = ""
    local: str = ""
    others_pct: float = 0.0
    shut_out: str = ""


def against(limit: RowLimit, otherwise: str) -> str:
    """The remedy against what limited a row: first what the server and the run itself did, then the hosts of the run.

    Args:
        limit: what limited the row.
        otherwise: the remedy if none of these did.
    """
    if remedy := OF_REFUSAL.get(limit.refused, ""):
        return remedy
    if own := LOCAL_LIMITS.get(limit.shut_out):
        return f"on the subscribers' host, {own.remedy}"
    if planned := [PLANNED[cause] for cause in limit.causes if cause in PLANNED]:
        return "; ".join(planned)
    if not limit.local:
        return otherwise
    return f"limited or delayed by {limit.local}: {at_hosts(limit)}"


def at_hosts(limit: RowLimit, *, same_rate: bool = False) -> str:
    """The remedy against a limit at the hosts of the run; with ``same_rate`` not another rate."""
    if limit.local == PUBLISHER:
        faster = "a faster publisher (native clients, a host with faster cores)"
        return f"use {faster}" if same_rate else f"{LOWER_RATE}, or {faster}"
    if limit.local != HOST:
        return FEWER
    if limit.others_pct >= OTHERS_SHARE:
        return QUIET
    fewer = f"{FEWER}, or a host of its own for the server"
    return f"{QUIET}; otherwise {fewer}" if limit.others_pct >= OTHERS_PCT else fewer
