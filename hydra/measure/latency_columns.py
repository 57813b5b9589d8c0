"""The columns of latencies, of the publishers' lag, and of the errors of clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hydra.measure.column import MESSAGES, MICROSECONDS, Better
from hydra.measure.step_part import Number, StepColumn, StepPart, columns_of, figure, percentile
from hydra.model import PERCENTILES as KEPT
from hydra.model import Rate

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep

LATENCY_BOUND: Final = "latency_bound_us"
PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p90", "p99", "p999", "max")}
"""The percentile of each suffix of a latency column."""
ACK: Final = "ack"
"""The beginning of the names of the columns of the time from a send to its acknowledgement."""
DUE: Final = "latency"
SENT: Final = "latency_from_send"
"""The beginnings of the names of latency columns: since the due time, or (at rate ``max``) since the send."""

_ACKNOWLEDGED: Final = (
    "time from the send of a message to its acknowledgement: percentiles of the merged histograms of all publishers. "
    "Only if servers acknowledge"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockErrors(StepPart):
    """The errors of latencies by the clocks of two hosts."""

    latency_bound_us: Number | None = figure(
        MICROSECONDS,
        "largest error of a latency that the clocks of two hosts can cause: the sum of the bounds of both clocks, for "
        "the pair of a publisher and a subscriber with the largest sum, see *Time*. 0 if each pair shares a host; "
        "empty if a clock or the latency is unknown",
        repeats="median",
        of=lambda s: s.latencies.bound_us,
    )
    negative_latencies: Number | None = figure(
        MESSAGES,
        "messages that arrived, by the clocks of two hosts, before the time at which the messages were due (at rate "
        "`max`: were sent). The latencies of these messages are counted below zero",
        of=lambda s: s.latencies.negative,
    )


def _title(name: str) -> str:
    """What tables call a percentile: ``p99.9`` or ``max``."""
    return name if name == "max" else f"p{KEPT[name]:g}"


def _ack(name: str) -> Number | None:
    """The field of a percentile of the time to an acknowledgement; tools report it themselves."""
    return percentile(
        _ACKNOWLEDGED,
        f"{ACK} {_title(name)}",
        histogram="ack",
        percent=KEPT[name],
        of=lambda s: s.latencies.tool_acks.get(name, s.latencies.percentile_us("ack", KEPT[name])),
        optional=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays(StepPart):
    """The delays of publishers: their lag, the time to an acknowledgement, and the waits for a full queue."""

    tx_lag_p99_us: Number | None = percentile(
        "99th percentile of (send time − due time) over all messages that a library accepted. Messages that a "
        "publisher hands over together share the send time",
        histogram="lag",
        percent=KEPT["p99"],
        of=lambda s: s.latencies.percentile_us("lag", KEPT["p99"]),
    )
    ack_p50_us: Number | None = _ack("p50")
    ack_p99_us: Number | None = _ack("p99")
    ack_p999_us: Number | None = _ack("p999")
    ack_max_us: Number | None = _ack("max")
    blocked_s: Number | None = figure(
        "s", "longest total time that any publisher waited for a full queue", of=lambda s: s.latencies.blocked_s
    )


def prefix_for(rate: Rate) -> str:
    """The beginning of the columns' names: at rate ``max`` there is no due time, and latency counts from the send."""
    return SENT if rate == "max" else DUE


def _latency(name: str, since: str = "from the due time", only: str = "", better: Better = "lower") -> Number | None:
    """The field of a percentile of latency."""
    return percentile(
        f"latency {since} of a message{only}: percentiles of the merged histograms of all subscribers that are neither "
        "slow nor reconnecting (HDR histograms: 1 µs to 1 h, 3 significant digits). The subscribers' histograms are "
        "added; percentiles are never averaged",
        _title(name),
        axis=f"latency {since}, µs",
        better=better,
        histogram="latency",
        percent=KEPT[name],
        of=lambda s: s.latencies.percentile_us("latency", KEPT[name]),
    )


def _send_latency(name: str) -> Number | None:
    only = ", only at rate `max`, at which messages have no due time: mostly a wait in queues"
    return _latency(name, "from the send", only, better="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(StepPart):
    """The latencies from the due times of messages."""

    latency_p50_us: Number | None = _latency("p50")
    latency_p90_us: Number | None = _latency("p90")
    latency_p99_us: Number | None = _latency("p99")
    latency_p999_us: Number | None = _latency("p999")
    latency_max_us: Number | None = _latency("max")

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether messages of the step have a due time."""
        return prefix_for(step.o.plan.settings.rate) == DUE


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLatency(StepPart):
    """The latencies from the sends of messages."""

    latency_from_send_p50_us: Number | None = _send_latency("p50")
    latency_from_send_p90_us: Number | None = _send_latency("p90")
    latency_from_send_p99_us: Number | None = _send_latency("p99")
    latency_from_send_p999_us: Number | None = _send_latency("p999")
    latency_from_send_max_us: Number | None = _send_latency("max")

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether messages of the step have no due time."""
        return prefix_for(step.o.plan.settings.rate) == SENT


def latency_columns(prefix: str) -> tuple[StepColumn, ...]:
    """The percentiles of latency; ``prefix`` is ``DUE`` or ``SENT``."""
    return columns_of(Latency if prefix == DUE else SendLatency)
