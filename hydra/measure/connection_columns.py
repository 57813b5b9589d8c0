"""The columns of how subscribers connect, and of how they come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from hydra.measure.column import SUBSCRIBERS, SUBSCRIBERS_PER_SECOND, Column, text_column
from hydra.measure.connections import Connections, Moment, Phase
from hydra.measure.step_column import StepColumn
from hydra.model import PERCENTILES as KEPT
from hydra.model import Figure, number
from hydra.model.local_limits import LOCAL_LIMITS

PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p99", "max")}
CONNECT_RATE: Final = "connect_rate"
LET_IN: Final = "connected_clients"
ACHIEVED: Final = "connect_rate_achieved"
NEVER: Final = "never_connected"
NEVER_BACK: Final = "never_back"
REFUSED: Final = "connect_refused"
REFUSED_WHY: Final = "connect_refused_why"
TIMED_OUT: Final = "connect_timed_out"
LOCAL: Final = "connect_local"
LOCAL_WHY: Final = "connect_local_why"
_DISCONNECTIONS: Final = "disconnections"
_PHASES: Final[tuple[Phase, ...]] = ("tcp", "tls", "login")
_MOMENTS: Final[Mapping[Moment, str]] = {
    "connected": "the server had accepted the client, login included",
    "ready": "the server had accepted the subscription",
    "first_message": "the first message had arrived: a probe, of which publishers send one every 50 ms, or less often "
    "if more than 250 subscribers connect",
}
_COUNTED: Final = (
    "With `connect_rate` or the event `restart_server`. In other rows only if there was one, of clients that connect "
    "again by themselves, and without a cohort; of repeats the mean of those that had one"
)
_SINCE_DUE: Final = (
    "time from when a subscriber was due to connect until {what}: nearest-rank percentiles over all subscribers of the "
    "step. A subscriber that was never let in ranks above all others: a percentile that falls on it is empty. Also "
    "empty if the library does not reveal this time. Only with `connect_rate`"
)
_OF_PHASE: Final = (
    "duration of a phase of connecting: `tcp` the TCP connection, `tls` its handshake, `login` what follows until the "
    "server accepts the client; percentiles over the subscribers that were let in. Empty if the library does not "
    "separate the phase, see [connections.md](connections.md#phases)"
)
_BACK: Final = (
    "time from a disconnection until the subscriber was connected again, or with the event `restart_server` of a "
    "single server from the end of the server: nearest-rank percentiles over all disconnections; one that never ended "
    "ranks above all others, and so does a subscriber that died or was silent in a step with that event. Empty if the "
    "library does not reveal disconnections, see [connections.md](connections.md#phases)"
)


def _connecting(column: Column, of: Callable[[Connections], Figure]) -> StepColumn:
    """A column of steps that measure how subscribers connect."""
    return StepColumn.made_of(column, of=lambda s: of(s.connections), when=lambda s: s.connections.measured)


def _back(column: Column, of: Callable[[Connections], Figure]) -> StepColumn:
    """A column of steps with disconnections."""
    return StepColumn.made_of(column, of=lambda s: of(s.connections), when=lambda s: s.connections.disconnected)


def _percentiles(name: str, about: str) -> Iterator[tuple[Column, float]]:
    """The columns of the percentiles of a time, each with the percentile."""
    title = name.replace("_", " ")
    for suffix, percent in PERCENTILES.items():
        end = Column(f"{name}_{suffix}_ms", "ms", about, f"{title} {suffix}", repeats="median", better="lower")
        yield end, percent


CONNECTING: Final = (
    _connecting(
        Column(
            CONNECT_RATE,
            SUBSCRIBERS_PER_SECOND,
            "subscribers that were due to connect per second, or `max` if all were due at once. Only if set",
            "Connect rate",
            repeats="common",
        ),
        lambda c: c.facts.rate if c.facts else None,
    ),
    _connecting(
        Column(
            ACHIEVED,
            SUBSCRIBERS_PER_SECOND,
            "(`connected_clients` − 1) / (time of the last subscriber to become ready − first due time). Only with "
            "`connect_rate`",
            "Achieved",
            better="higher",
        ),
        lambda c: c.achieved,
    ),
    _connecting(
        Column(
            LET_IN, SUBSCRIBERS, "subscribers that were let in. Only with `connect_rate`", "Let in", better="higher"
        ),
        lambda c: len(c.ready),
    ),
    _connecting(
        Column(
            NEVER,
            SUBSCRIBERS,
            "subscribers that were not ready within `connect_within_s` after they were due to connect. Only with "
            "`connect_rate`",
            "Never",
            better="lower",
        ),
        lambda c: c.never,
    ),
    *(
        _connecting(column, partial(Connections.moment_ms, moment=moment, percent=percent))
        for moment, what in _MOMENTS.items()
        for column, percent in _percentiles(moment, _SINCE_DUE.format(what=what))
    ),
    _connecting(
        Column(
            "connect_attempts",
            "",
            "attempts of all subscribers to connect before the window. Only with `connect_rate`",
            "Attempts",
        ),
        lambda c: sum(r.attempts for r in c.reports),
    ),
    _connecting(
        Column(
            REFUSED,
            "",
            "those of `connect_attempts` that failed before their time limit: the server, or the network, refused them",
            "Refused",
            better="lower",
        ),
        lambda c: c.refused,
    ),
    _connecting(
        text_column(REFUSED_WHY, "why the first of them was refused, as the server states it", repeats="first"),
        lambda c: next((r.refused_why for r in c.reports if r.refused_why), None),
    ),
    _connecting(
        Column(
            TIMED_OUT,
            "",
            "those of `connect_attempts` that failed at their time limit: 5 s, or less before `connect_within_s` "
            "is over",
            "Timed out",
            better="lower",
        ),
        lambda c: c.timed_out,
    ),
    _connecting(
        Column(
            LOCAL,
            "",
            "those of `connect_attempts` that failed because the subscriber's host had reached a limit of its own, "
            "such as its local ports or open files; they are neither refused nor timed out",
            "Local",
            better="lower",
        ),
        lambda c: sum(c.local.values()),
    ),
    _connecting(
        text_column(
            LOCAL_WHY,
            "the limit that most of them reached: the name of the kernel's error, "
            + ", ".join(f"`{name}` ({limit.what})" for name, limit in LOCAL_LIMITS.items()),
            repeats="first",
        ),
        lambda c: c.local_why,
    ),
    _connecting(
        Column(
            "connect_lag_p99_ms",
            "ms",
            "99th percentile, over the subscribers, of the time from when a subscriber was due to connect until its "
            "first attempt began; a long one means that Hydra's hosts were too slow, not the server. Only with "
            "`connect_rate`",
            "Lag p99",
            repeats="median",
            better="lower",
        ),
        lambda c: c.lag_ms(PERCENTILES["p99"]),
    ),
    _connecting(
        Column(
            "other_connections",
            "",
            "connections with the servers beside those of subscribers: of publishers, and of Hydra itself. Only with "
            "`connect_rate`; empty if unknown",
            repeats="common",
        ),
        lambda c: c.facts.others if c.facts else None,
    ),
    _connecting(
        Column(
            "connect_server_cpu_s",
            "s",
            "CPU time of the server from before the first due time until the last subscriber was ready or had given "
            "up. Only with `connect_rate`, and if Hydra started the server on this machine",
            "Server CPU",
            better="lower",
        ),
        lambda c: c.facts.server_cpu_s if c.facts else None,
    ),
    *(
        _connecting(column, partial(Connections.phase_ms, phase=phase, percent=percent))
        for phase in _PHASES
        for column, percent in _percentiles(f"connect_{phase}", _OF_PHASE)
    ),
)
"""The columns of connecting, in their order."""

COMING_BACK: Final = (
    StepColumn(
        _DISCONNECTIONS,
        "",
        f"disconnections of subscribers that were not planned by a cohort. {_COUNTED}; empty if the library does not "
        "reveal them",
        better="lower",
        of=lambda s: len(s.connections.lost),
        when=lambda s: s.connections.counted,
    ),
    *(_back(column, partial(Connections.back_ms, percent=percent)) for column, percent in _percentiles("back", _BACK)),
    _back(
        Column("back_attempts", "", "mean number of attempts to connect again after a disconnection", better="lower"),
        lambda d: d.mean_attempts,
    ),
    _back(
        Column(
            NEVER_BACK,
            SUBSCRIBERS,
            "subscribers that were disconnected and never came back; with the event `restart_server` of a single "
            "server also those that died or were silent, because none of them was seen again",
            better="lower",
        ),
        lambda d: d.never_back,
    ),
)
"""The columns of coming back after a disconnection, in their order."""

_SHOWN_BY: Final = {f"{name}_{suffix}_ms": NEVER for name in _MOMENTS for suffix in PERCENTILES} | {
    f"back_{suffix}_ms": NEVER_BACK for suffix in PERCENTILES
}
"""For each percentile, the column that counts the subscribers without a value: if it is above 0, the percentile may be
unknown because it falls on one of them."""

IN_TABLE: Final = (
    ACHIEVED,
    LET_IN,
    *(f"ready_{suffix}_ms" for suffix in PERCENTILES),
    REFUSED,
    TIMED_OUT,
    LOCAL,
    "connect_lag_p99_ms",
)
"""The columns in the table of a scenario of connections, after the client count and what varies."""

PRIMARY: Final = ("ready_p50_ms", LET_IN)
"""The columns by which runs of a scenario of connections are compared: the second if half were never ready."""


def is_above_all(row: Mapping[str, Figure], column: str) -> bool:
    """Whether a percentile of this row is unknown because it falls on a subscriber that never connected or came back.

    In a row whose library reveals this time in no repeat, it is unknown for another reason.
    """
    if row.get(column) is not None:
        return False
    return row.get(_SHOWN_BY.get(column, "")) not in (None, 0)


def shut_out_by(row: Mapping[str, Figure]) -> str:
    """The limit of their own host that alone kept the subscribers of a row or step from connecting; "": none."""
    return "" if number(row.get(REFUSED)) or number(row.get(TIMED_OUT)) else str(row.get(LOCAL_WHY) or "")
