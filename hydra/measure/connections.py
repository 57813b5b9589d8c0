"""The figures of how subscribers connect, and of how they come back, from their reports. Pure.

A subscriber that was never let in, or never came back, is part of every percentile: it ranks above all others. A
percentile whose rank falls on such a subscriber is unknown, never that of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hydra.measure.column import SUBSCRIBERS, SUBSCRIBERS_PER_SECOND, Column, text_column
from hydra.model import PERCENTILES as KEPT
from hydra.model import Figure, Rate, number
from hydra.model.connections import CONNECTION, ConnectionReport
from hydra.model.local_limits import LOCAL_LIMITS
from hydra.wire.buckets import rank_of

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
_PHASES: Final = ("tcp", "tls", "login")
_MOMENTS: Final = {
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


@dataclass(frozen=True, slots=True)
class ConnectFacts:
    """What the controller knows of how the subscribers of a step connected.

    Attributes:
        rate: the subscribers that were due to connect per second; None: they kept their connections.
        others: the connections of publishers and of Hydra itself with the servers; None: not known.
        server_cpu_s: CPU seconds of a server on the controller's host while subscribers connected; None: not known.
        down_ns: when the only server was killed in the step, ns on the step's clock.
        losses_known: whether the subscribers reveal disconnections.
    """

    rate: Rate | None = None
    others: int | None = None
    server_cpu_s: float | None = None
    down_ns: Sequence[int] = ()
    losses_known: bool = True


def _percentiles(name: str, about: str) -> tuple[Column, ...]:
    title = name.replace("_", " ")
    return tuple(
        Column(f"{name}_{suffix}_ms", "ms", about, f"{title} {suffix}", repeats="median", better="lower")
        for suffix in PERCENTILES
    )


OF_CONNECTING: Final = (
    Column(
        CONNECT_RATE,
        SUBSCRIBERS_PER_SECOND,
        "subscribers that were due to connect per second, or `max` if all were due at once. Only if set",
        "Connect rate",
        repeats="common",
    ),
    Column(
        ACHIEVED,
        SUBSCRIBERS_PER_SECOND,
        "(`connected_clients` − 1) / (time of the last subscriber to become ready − first due time). Only with "
        "`connect_rate`",
        "Achieved",
        better="higher",
    ),
    Column(LET_IN, SUBSCRIBERS, "subscribers that were let in. Only with `connect_rate`", "Let in", better="higher"),
    Column(
        NEVER,
        SUBSCRIBERS,
        "subscribers that were not ready within `connect_within_s` after they were due to connect. Only with "
        "`connect_rate`",
        "Never",
        better="lower",
    ),
    *(column for name, what in _MOMENTS.items() for column in _percentiles(name, _SINCE_DUE.format(what=what))),
    Column(
        "connect_attempts",
        "",
        "attempts of all subscribers to connect before the window. Only with `connect_rate`",
        "Attempts",
    ),
    Column(
        REFUSED,
        "",
        "those of `connect_attempts` that failed before their time limit: the server, or the network, refused them",
        "Refused",
        better="lower",
    ),
    text_column(REFUSED_WHY, "why the first of them was refused, as the server states it", repeats="first"),
    Column(
        TIMED_OUT,
        "",
        "those of `connect_attempts` that failed at their time limit: 5 s, or less before `connect_within_s` is over",
        "Timed out",
        better="lower",
    ),
    Column(
        LOCAL,
        "",
        "those of `connect_attempts` that failed because the subscriber's host had reached a limit of its own, such as "
        "its local ports or open files; they are neither refused nor timed out",
        "Local",
        better="lower",
    ),
    text_column(
        LOCAL_WHY,
        "the limit that most of them reached: the name of the kernel's error, "
        + ", ".join(f"`{name}` ({limit.what})" for name, limit in LOCAL_LIMITS.items()),
        repeats="first",
    ),
    Column(
        "connect_lag_p99_ms",
        "ms",
        "99th percentile, over the subscribers, of the time from when a subscriber was due to connect until its first "
        "attempt began; a long one means that Hydra's hosts were too slow, not the server. Only with `connect_rate`",
        "Lag p99",
        repeats="median",
        better="lower",
    ),
    Column(
        "other_connections",
        "",
        "connections with the servers beside those of subscribers: of publishers, and of Hydra itself. Only with "
        "`connect_rate`; empty if unknown",
        repeats="common",
    ),
    Column(
        "connect_server_cpu_s",
        "s",
        "CPU time of the server from before the first due time until the last subscriber was ready or had given up. "
        "Only with `connect_rate`, and if Hydra started the server on this machine",
        "Server CPU",
        better="lower",
    ),
    *(column for name in _PHASES for column in _percentiles(f"connect_{name}", _OF_PHASE)),
)
"""The columns of connecting, in their order."""

OF_COMING_BACK: Final = (
    Column(
        _DISCONNECTIONS,
        "",
        f"disconnections of subscribers that were not planned by a cohort. {_COUNTED}; empty if the library does not "
        "reveal them",
        better="lower",
    ),
    *_percentiles("back", _BACK),
    Column("back_attempts", "", "mean number of attempts to connect again after a disconnection", better="lower"),
    Column(
        NEVER_BACK,
        SUBSCRIBERS,
        "subscribers that were disconnected and never came back; with the event `restart_server` of a single server "
        "also those that died or were silent, because none of them was seen again",
        better="lower",
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


def ranked(values: Iterable[float], asked: int, percent: float) -> float | None:
    """The nearest-rank percentile of ``asked`` values, of which those not given are larger than all; None: one of them.

    Args:
        values: the known values.
        asked: the number of all values.
        percent: above 0, up to 100.
    """
    known = sorted(values)
    rank = rank_of(percent, asked)
    return known[rank - 1] if rank <= len(known) else None


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


def reports_of(systems: Iterable[Mapping[str, Any] | None]) -> list[ConnectionReport]:
    """The reports of connections in the ``system`` objects of subscribers; invalid ones are left out."""
    found = []
    for told in systems:
        if told is not None and CONNECTION in told:
            try:
                found.append(msgspec.convert(told[CONNECTION], ConnectionReport))
            except msgspec.ValidationError:
                continue
    return found


def connection_figures(
    facts: ConnectFacts | None, reports: Sequence[ConnectionReport], asked: int
) -> dict[str, Figure]:
    """The columns of connecting, and of coming back.

    Args:
        facts: what the controller knows; None: the step did not measure connecting, so only disconnections are shown,
            and only if there was one.
        reports: those of the subscribers that reported.
        asked: the number of all subscribers, also those that are dead or silent.
    """
    if facts is None:
        return _coming_back(ConnectFacts(), reports, asked) if any(r.disconnections for r in reports) else {}
    found = _connecting(facts, reports, asked) if facts.rate is not None else {}
    return found | (_coming_back(facts, reports, asked) if facts.losses_known else {})


def _connecting(facts: ConnectFacts, reports: Sequence[ConnectionReport], asked: int) -> dict[str, Figure]:
    ready = [r for r in reports if r.ready_us is not None]
    moments = {
        "connected": [r.connected_us for r in ready],
        "ready": [r.ready_us for r in ready],
        "first_message": [r.first_us for r in ready],
    }
    local: Counter[str] = Counter()
    for each in reports:
        local.update(each.local)
    figures: dict[str, Figure] = {
        CONNECT_RATE: facts.rate,
        ACHIEVED: _achieved(reports, ready),
        LET_IN: len(ready),
        NEVER: asked - len(ready),
    }
    for name, values in moments.items():
        figures |= _in_ms(name, values, asked)
    figures |= {
        "connect_attempts": sum(r.attempts for r in reports),
        REFUSED: sum(r.refused for r in reports),
        REFUSED_WHY: next((r.refused_why for r in reports if r.refused_why), None),
        TIMED_OUT: sum(r.timed_out for r in reports),
        LOCAL: sum(local.values()),
        LOCAL_WHY: max(local, key=lambda name: local[name], default=None),
        "connect_lag_p99_ms": _ms(ranked((r.lag_us for r in reports if r.lag_us is not None), asked, KEPT["p99"])),
        "other_connections": facts.others,
        "connect_server_cpu_s": facts.server_cpu_s,
    }
    for phase in _PHASES:
        values = [getattr(r, f"{phase}_us") for r in ready]
        figures |= _in_ms(f"connect_{phase}", values, len(ready))
    return figures


def _achieved(reports: Sequence[ConnectionReport], ready: Sequence[ConnectionReport]) -> float | None:
    if len(ready) < 2:
        return None
    first_ns = min(r.due_ns for r in reports)
    last_ns = max(r.due_ns + 1000 * (r.ready_us or 0) for r in ready)
    return (len(ready) - 1) * 1e9 / (last_ns - first_ns) if last_ns > first_ns else None


def _coming_back(facts: ConnectFacts, reports: Sequence[ConnectionReport], asked: int) -> dict[str, Figure]:
    lost = [each for r in reports for each in r.disconnections]
    # The end of the server disconnected these subscribers, too, and none of them reported a return.
    unreported = asked - len(reports) if facts.down_ns else 0
    if not lost and not facts.down_ns:
        return {_DISCONNECTIONS: 0}
    back_us = [
        (back_ns - _since(facts, lost_ns, before_ns)) / 1000
        for r in reports
        for before_ns, (lost_ns, back_ns, _) in zip(
            [0, *(ns for ns, *_ in r.disconnections)], r.disconnections, strict=False
        )
        if back_ns
    ]
    return {
        _DISCONNECTIONS: len(lost),
        **_in_ms("back", back_us, len(lost) + unreported),
        "back_attempts": sum(attempts for *_, attempts in lost) / len(lost) if lost else None,
        NEVER_BACK: unreported + sum(1 for r in reports if r.disconnections and not r.disconnections[-1][1]),
    }


def _since(facts: ConnectFacts, lost_ns: int, before_ns: int) -> int:
    """The time from which a disconnection counts: the end of a server that caused it, else the disconnection itself.

    Args:
        facts: has the ends.
        lost_ns: when the connection was lost.
        before_ns: when the subscriber had lost one before; 0: never. An end causes only the first loss after it.
    """
    return max((down_ns for down_ns in facts.down_ns if before_ns < down_ns <= lost_ns), default=lost_ns)


def _in_ms(name: str, values_us: Sequence[float | None], asked: int) -> dict[str, Figure]:
    known = [value for value in values_us if value is not None]
    return {
        f"{name}_{suffix}_ms": _ms(ranked(known, asked, percent)) if known else None
        for suffix, percent in PERCENTILES.items()
    }


def _ms(value_us: float | None) -> float | None:
    return None if value_us is None else value_us / 1000
