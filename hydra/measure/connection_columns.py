"""The columns of how subscribers connect, and of how they come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hydra.measure.column import SUBSCRIBERS, SUBSCRIBERS_PER_SECOND
from hydra.measure.connections import Connections, Moment, Phase
from hydra.measure.step_part import Number, StepPart, figure, text
from hydra.model import PERCENTILES as KEPT
from hydra.model import Figure
from hydra.model.machine import LOCAL_LIMITS

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep

PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p99", "max")}
LET_IN: Final = "connected_clients"
ACHIEVED: Final = "connect_rate_achieved"
NEVER: Final = "never_connected"
NEVER_BACK: Final = "never_back"
REFUSED: Final = "connect_refused"
TIMED_OUT: Final = "connect_timed_out"
LOCAL: Final = "connect_local"
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


def _percentile(time: str, name: str, about: str, of: Callable[[Connections, float], float | None]) -> Number | None:
    """The field of a percentile of a time, by the beginning of its name and the name of the percentile."""
    title, percent = f"{time.replace('_', ' ')} {name}", PERCENTILES[name]

    def formula(step: MeasuredStep) -> Number | None:
        return of(step.connections, percent)

    return figure("ms", about, title, repeats="median", better="lower", of=formula)


def _moment(moment: Moment, name: str) -> Number | None:
    about = _SINCE_DUE.format(what=_MOMENTS[moment])
    return _percentile(moment, name, about, lambda c, percent: c.moment_ms(moment, percent))


def _phase(phase: Phase, name: str) -> Number | None:
    return _percentile(f"connect_{phase}", name, _OF_PHASE, lambda c, percent: c.phase_ms(phase, percent))


def _back(name: str) -> Number | None:
    return _percentile("back", name, _BACK, lambda c, percent: c.back_ms(percent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting(StepPart):
    """How subscribers connected before the window."""

    everywhere: ClassVar[bool] = False

    connect_rate: Number | Literal["max"] | None = figure(
        SUBSCRIBERS_PER_SECOND,
        "subscribers that were due to connect per second, or `max` if all were due at once. Only if set",
        "Connect rate",
        repeats="common",
        of=lambda s: s.connections.facts.rate if s.connections.facts else None,
    )
    connect_rate_achieved: Number | None = figure(
        SUBSCRIBERS_PER_SECOND,
        "(`connected_clients` − 1) / (time of the last subscriber to become ready − first due time). Only with "
        "`connect_rate`",
        "Achieved",
        better="higher",
        of=lambda s: s.connections.achieved,
    )
    connected_clients: Number | None = figure(
        SUBSCRIBERS,
        "subscribers that were let in. Only with `connect_rate`",
        "Let in",
        better="higher",
        of=lambda s: len(s.connections.ready),
    )
    never_connected: Number | None = figure(
        SUBSCRIBERS,
        "subscribers that were not ready within `connect_within_s` after they were due to connect. Only with "
        "`connect_rate`",
        "Never",
        better="lower",
        of=lambda s: s.connections.never,
    )
    connected_p50_ms: Number | None = _moment("connected", "p50")
    connected_p99_ms: Number | None = _moment("connected", "p99")
    connected_max_ms: Number | None = _moment("connected", "max")
    ready_p50_ms: Number | None = _moment("ready", "p50")
    ready_p99_ms: Number | None = _moment("ready", "p99")
    ready_max_ms: Number | None = _moment("ready", "max")
    first_message_p50_ms: Number | None = _moment("first_message", "p50")
    first_message_p99_ms: Number | None = _moment("first_message", "p99")
    first_message_max_ms: Number | None = _moment("first_message", "max")
    connect_attempts: Number | None = figure(
        "",
        "attempts of all subscribers to connect before the window. Only with `connect_rate`",
        "Attempts",
        of=lambda s: sum(r.attempts for r in s.connections.reports),
    )
    connect_refused: Number | None = figure(
        "",
        "those of `connect_attempts` that failed before their time limit: the server, or the network, refused them",
        "Refused",
        better="lower",
        of=lambda s: s.connections.refused,
    )
    connect_refused_why: str | None = text(
        "why the first of them was refused, as the server states it",
        repeats="first",
        of=lambda s: next((r.refused_why for r in s.connections.reports if r.refused_why), None),
    )
    connect_timed_out: Number | None = figure(
        "",
        "those of `connect_attempts` that failed at their time limit: 5 s, or less before `connect_within_s` is over",
        "Timed out",
        better="lower",
        of=lambda s: s.connections.timed_out,
    )
    connect_local: Number | None = figure(
        "",
        "those of `connect_attempts` that failed because the subscriber's host had reached a limit of its own, "
        "such as its local ports or open files; they are neither refused nor timed out",
        "Local",
        better="lower",
        of=lambda s: sum(s.connections.local.values()),
    )
    connect_local_why: str | None = text(
        "the limit that most of them reached: the name of the kernel's error, "
        + ", ".join(f"`{name}` ({limit.what})" for name, limit in LOCAL_LIMITS.items()),
        repeats="first",
        of=lambda s: s.connections.local_why,
    )
    connect_lag_p99_ms: Number | None = figure(
        "ms",
        "99th percentile, over the subscribers, of the time from when a subscriber was due to connect until its "
        "first attempt began; a long one means that Hydra's hosts were too slow, not the server. Only with "
        "`connect_rate`",
        "Lag p99",
        repeats="median",
        better="lower",
        of=lambda s: s.connections.lag_ms(PERCENTILES["p99"]),
    )
    other_connections: Number | None = figure(
        "",
        "connections with the servers beside those of subscribers: of publishers, and of Hydra itself. Only with "
        "`connect_rate`; empty if unknown",
        repeats="common",
        of=lambda s: s.connections.facts.others if s.connections.facts else None,
    )
    connect_server_cpu_s: Number | None = figure(
        "s",
        "CPU time of the server from before the first due time until the last subscriber was ready or had given "
        "up. Only with `connect_rate`, and if Hydra started the server on this machine",
        "Server CPU",
        better="lower",
        of=lambda s: s.connections.facts.server_cpu_s if s.connections.facts else None,
    )
    connect_tcp_p50_ms: Number | None = _phase("tcp", "p50")
    connect_tcp_p99_ms: Number | None = _phase("tcp", "p99")
    connect_tcp_max_ms: Number | None = _phase("tcp", "max")
    connect_tls_p50_ms: Number | None = _phase("tls", "p50")
    connect_tls_p99_ms: Number | None = _phase("tls", "p99")
    connect_tls_max_ms: Number | None = _phase("tls", "max")
    connect_login_p50_ms: Number | None = _phase("login", "p50")
    connect_login_p99_ms: Number | None = _phase("login", "p99")
    connect_login_max_ms: Number | None = _phase("login", "max")

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the step measured how subscribers connect."""
        return step.connections.measured

    @property
    def shut_out_by(self) -> str:
        """The limit of their own host that alone kept the subscribers of a row or step from connecting; "": none."""
        return "" if self.connect_refused or self.connect_timed_out else self.connect_local_why or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnections(StepPart):
    """The disconnections of subscribers."""

    everywhere: ClassVar[bool] = False

    disconnections: Number | None = figure(
        "",
        f"disconnections of subscribers that were not planned by a cohort. {_COUNTED}; empty if the library does not "
        "reveal them",
        better="lower",
        of=lambda s: len(s.connections.lost),
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the disconnections of the step are known and shown."""
        return step.connections.counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingBack(StepPart):
    """How subscribers came back after a disconnection."""

    everywhere: ClassVar[bool] = False

    back_p50_ms: Number | None = _back("p50")
    back_p99_ms: Number | None = _back("p99")
    back_max_ms: Number | None = _back("max")
    back_attempts: Number | None = figure(
        "",
        "mean number of attempts to connect again after a disconnection",
        better="lower",
        of=lambda s: s.connections.mean_attempts,
    )
    never_back: Number | None = figure(
        SUBSCRIBERS,
        "subscribers that were disconnected and never came back; with the event `restart_server` of a single "
        "server also those that died or were silent, because none of them was seen again",
        better="lower",
        of=lambda s: s.connections.never_back,
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether subscribers of the step were disconnected."""
        return step.connections.disconnected


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
