"""The columns of latencies, of the publishers' lag, and of the errors of clocks."""

from __future__ import annotations

from functools import cache
from typing import Final

from hydra.measure.column import MESSAGES, MICROSECONDS
from hydra.measure.step_column import PercentileColumn, StepColumn
from hydra.model import PERCENTILES as KEPT
from hydra.model import Rate

LATENCY_BOUND: Final = "latency_bound_us"
NEGATIVE: Final = "negative_latencies"
BLOCKED: Final = "blocked_s"
PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p90", "p99", "p999", "max")}
"""The percentile of each suffix of a latency column."""
ACK: Final = "ack"
"""The beginning of the names of the columns of the time from a send to its acknowledgement."""
ACK_PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p99", "p999", "max")}
DUE: Final = "latency"
SENT: Final = "latency_from_send"
"""The beginnings of the names of latency columns: since the due time, or (at rate ``max``) since the send."""

_ACKNOWLEDGED: Final = (
    "time from the send of a message to its acknowledgement: percentiles of the merged histograms of all publishers. "
    "Only if servers acknowledge"
)

CLOCKS: Final = (
    StepColumn(
        LATENCY_BOUND,
        MICROSECONDS,
        "largest error of a latency that the clocks of two hosts can cause: the sum of the bounds of both clocks, for "
        "the pair of a publisher and a subscriber with the largest sum, see *Time*. 0 if each pair shares a host; "
        "empty if a clock or the latency is unknown",
        repeats="median",
        of=lambda s: s.latencies.bound_us,
    ),
    StepColumn(
        NEGATIVE,
        MESSAGES,
        "messages that arrived, by the clocks of two hosts, before the time at which the messages were due (at rate "
        "`max`: were sent). The latencies of these messages are counted below zero",
        of=lambda s: s.latencies.negative,
    ),
)


def _ack(name: str, percent: float) -> StepColumn:
    """A percentile of the time to an acknowledgement; tools report it themselves."""
    return PercentileColumn(
        f"{ACK}_{name}_us",
        MICROSECONDS,
        _ACKNOWLEDGED,
        f"ack {name if name == 'max' else f'p{percent:g}'}",
        repeats="merged",
        better="lower",
        histogram="ack",
        percent=percent,
        of=lambda s: s.latencies.tool_acks.get(name, s.latencies.percentile_us("ack", percent)),
        when=lambda s: bool(s.histograms.ack.counts) or name in s.latencies.tool_acks,
    )


DELAYS: Final = (
    PercentileColumn(
        "tx_lag_p99_us",
        MICROSECONDS,
        "99th percentile of (send time − due time) over all messages that a library accepted. Messages that a "
        "publisher hands over together share the send time",
        repeats="merged",
        better="lower",
        histogram="lag",
        percent=KEPT["p99"],
        of=lambda s: s.latencies.percentile_us("lag", KEPT["p99"]),
    ),
    *(_ack(name, percent) for name, percent in ACK_PERCENTILES.items()),
    StepColumn(
        BLOCKED,
        "s",
        "longest total time that any publisher waited for a full queue",
        of=lambda s: s.latencies.blocked_s,
    ),
)


def prefix_for(rate: Rate) -> str:
    """The beginning of the columns' names: at rate ``max`` there is no due time, and latency counts from the send."""
    return SENT if rate == "max" else DUE


@cache
def latency_columns(prefix: str) -> tuple[StepColumn, ...]:
    """The percentiles of latency; ``prefix`` is ``DUE`` or ``SENT``."""
    since = "from the due time" if prefix == DUE else "from the send"
    only = "" if prefix == DUE else ", only at rate `max`, at which messages have no due time: mostly a wait in queues"
    text = (
        f"latency {since} of a message{only}: percentiles of the merged histograms of "
        "all subscribers that are neither slow nor reconnecting (HDR histograms: 1 µs "
        "to 1 h, 3 significant digits). The subscribers' histograms are added; "
        "percentiles are never averaged"
    )

    def column(name: str, percent: float) -> StepColumn:
        return PercentileColumn(
            f"{prefix}_{name}_us",
            MICROSECONDS,
            text,
            name if name == "max" else f"p{percent:g}",
            repeats="merged",
            axis=f"latency {since}, µs",
            better="lower" if prefix == DUE else "",
            histogram="latency",
            percent=percent,
            of=lambda s: s.latencies.percentile_us("latency", percent),
            when=lambda s: prefix_for(s.o.plan.settings.rate) == prefix,
        )

    return tuple(column(name, percent) for name, percent in PERCENTILES.items())
