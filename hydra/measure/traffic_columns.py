"""The columns of what was sent and received per second, and how evenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hydra.measure.column import MB_S, MESSAGES, PER_SECOND
from hydra.measure.step_part import Number, StepPart, figure

AGGREGATE: Final = "aggregate_pps"
RX_P1: Final = "rx_p1"
REQUESTED: Final = "requested_rate"

_MEGABYTES: Final = (
    "sum over the clients that sent a report (`tx_mb_s`: publishers, `rx_mb_s`: subscribers) of messages × mean "
    "message size (header included) / time; the time is the divisor in `avg_tx_rate_pps` or `avg_rx_rate_pps`. A "
    "MB has 10⁶ bytes"
)
_RECEIVED: Final = (
    "nearest-rank percentiles, over the subscribers, of the number of messages that each subscriber received, also "
    "after the window. With up to 100 subscribers `rx_p1` is the minimum, and tables call `rx_p1` the minimum; with "
    "fewer than 100 subscribers `rx_p99` is the maximum"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates(StepPart):
    """What was sent and received per second."""

    aggregate_pps: Number | None = figure(
        PER_SECOND,
        "`in_window` / *T* (length of the window). In a step that is read from the log: messages received by all "
        "subscribers / (time of the last batch of all subscribers − time of the command to read)",
        "Aggregate rate",
        better="higher",
        of=lambda s: s.traffic.aggregate_pps,
        header=True,
    )
    tx_mb_s: Number | None = figure(MB_S, _MEGABYTES, "Tx MB/s", of=lambda s: s.traffic.tx_mb_s)
    rx_mb_s: Number | None = figure(MB_S, _MEGABYTES, "Rx MB/s", better="higher", of=lambda s: s.traffic.rx_mb_s)
    tx_span_rate_pps: Number | None = figure(
        PER_SECOND,
        "(Tx − 1) / (last − first), from the first send to the last send, or to the last acknowledgement if servers "
        "acknowledge; by the publisher's clock; mean over the publishers that sent at least two messages",
        of=lambda s: s.traffic.tx_span_pps,
    )
    rx_span_rate_pps: Number | None = figure(
        PER_SECOND,
        "mean, over the `rx_clients` subscribers with at least two batches, of (received − size of the first batch) / "
        "(time of the last batch − time of the first batch), also of messages received after the window. The first "
        "batch is left out because its messages arrived before the first reading of the clock",
        of=lambda s: s.traffic.rx_span_pps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares(StepPart):
    """How evenly the subscribers received, and the rate that was requested."""

    fairness_jain: Number | None = figure(
        "",
        "Jain's index (Σx)² / (n · Σx²), x being the messages that each of n subscribers received, without slow and "
        "reconnecting subscribers. The index is 1 if all received the same number, 1/n if one received all. R. Jain, "
        "D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC TR-301, 1984",
        better="higher",
        of=lambda s: s.fairness,
    )
    rx_p1: Number | None = figure(MESSAGES, _RECEIVED, repeats="median", of=lambda s: s.received_at(1))
    rx_p50: Number | None = figure(MESSAGES, _RECEIVED, repeats="median", of=lambda s: s.received_at(50))
    rx_p99: Number | None = figure(MESSAGES, _RECEIVED, repeats="median", of=lambda s: s.received_at(99))
    requested_rate: Number | Literal["max"] | None = figure(
        PER_SECOND,
        "rate requested of each publisher: a number, or `max`",
        repeats="common",
        axis="requested rate, messages/s",
        of=lambda s: s.o.plan.settings.rate,
    )
