"""The columns of a step's traffic, of its topics and its cohort; the published ones come first. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hydra.measure.column import MB_S, MESSAGES, MICROSECONDS, PER_SECOND, SUBSCRIBERS, Column, SystemColumns
from hydra.measure.step_part import Number, StepPart, columns_of, figure, text, yes_no

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep


CLIENTS: Final = "clients"
AVG_TX: Final = "avg_tx_rate_pps"
AVG_RX: Final = "avg_rx_rate_pps"
LOSS: Final = "client_loss_pct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals(StepPart):
    """The published figures."""

    clients: Number | None = figure(
        SUBSCRIBERS,
        "subscribers of the step",
        "Subscribers",
        repeats="common",
        axis="subscribers",
        published="Client #",
        of=lambda s: s.o.plan.clients,
    )
    avg_tx_rate_pps: Number | None = figure(
        PER_SECOND,
        "mean over publishers of Tx (messages sent) / *T* (length of the window; at a constant rate to the end of the "
        "last message's interval, because n messages take n / rate). If a server acknowledged messages after the "
        "window, the mean is that of Tx / (last acknowledgement − start)",
        "Tx rate",
        published="Avrg Tx Rate",
        of=lambda s: s.traffic.tx_pps,
    )
    avg_rx_rate_pps: Number | None = figure(
        PER_SECOND,
        "mean over subscribers of (received in the window) / *T* (see `avg_tx_rate_pps`); if no subscriber is slow or "
        "reconnects, this is `aggregate_pps` / `clients`. A dead or silent subscriber counts with its last progress "
        "message. A member of a consumer group receives its share of the messages. If subscribers read a step from "
        "the log, the rate of each is received / (time of the latest batch of any subscriber − "
        "time of the command to read). For messages without headers the column contains "
        "`rx_span_rate_pps`",
        "Rx rate",
        better="higher",
        published="Avrg Rx Rate",
        of=lambda s: s.traffic.rx_pps,
    )
    client_loss_pct: Number | None = figure(
        "%",
        "messages lost in % of the messages expected (*E*), summed over the subscribers, the dead and silent ones "
        "included. Messages that still wait in a server (undrained) or may still arrive (unknown) are not counted as "
        "lost, but a rate with too many such messages does not pass",
        "Loss",
        digits="six",
        axis="client loss, %",
        better="lower",
        published="Client Loss[%]",
        of=lambda s: s.exact.loss_pct if s.exact else None,
        header=True,
    )
    failed_clients: Number | None = figure(
        SUBSCRIBERS,
        "`failed_lossy` + `failed_dead` + `failed_silent`. Each subscriber is counted once: dead, otherwise silent, "
        "otherwise lossy",
        "Failed subscribers",
        better="lower",
        published="Failed Clients",
        of=lambda s: s.failed.total,
    )
    total_tx: Number | None = figure(
        MESSAGES,
        "sum over the publishers of Tx: messages that servers acknowledged, or that the library accepted if servers do "
        "not acknowledge",
        "Tx total",
        published="Total pckts Tx",
        of=lambda s: sum(p.acknowledged for p in s.publishers) if s.accounts else None,
    )
    total_rx: Number | None = figure(
        MESSAGES,
        "mean over subscribers of the messages received, also those received after the window (in the drain). A dead "
        "or silent subscriber counts with its last progress message",
        "Rx total",
        digits="none",
        published="Total pckts Rx",
        of=lambda s: s.mean_received,
    )


def published(system: SystemColumns) -> tuple[Column, ...]:
    """The published columns of a system's steps."""
    clients, *others = columns_of(Totals)
    return (clients, system.batch, *others)


PUBLISHED: Final = published(SystemColumns())


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


_HOT: Final = (
    "of the hot topics, the tenth of the topics (rounded up) that gets most messages, beside all other topics: "
)
_HOT_LOSS: Final = (
    f"loss {_HOT}messages lost in % of those expected, over the subscribers outside the cohort. Only if there are "
    "several topics; empty if a subscriber sent no report, or messages of its drain are undrained or unknown"
)
_HOT_P99: Final = (
    f"99th percentile of the latency {_HOT}over the subscribers outside the cohort. Only if there are several topics"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad(StepPart):
    """The messages of hot topics beside those of the other ones."""

    everywhere: ClassVar[bool] = False

    topics: Number | None = figure(
        "",
        "number of topics. Only if there are several",
        "Topics",
        repeats="common",
        of=lambda s: s.o.plan.settings.topics,
    )
    copies_expected: Number | None = figure(
        MESSAGES,
        "copies of messages that all subscribers together should receive (*E*), slow and reconnecting ones included. "
        "Only if there are several topics",
        of=lambda s: s.accounts.of().expected if s.accounts else None,
    )
    hot_topics_loss_pct: Number | None = figure(
        "%", _HOT_LOSS, digits="six", better="lower", of=lambda s: s.topic_losses.hot_pct
    )
    other_topics_loss_pct: Number | None = figure(
        "%", _HOT_LOSS, digits="six", better="lower", of=lambda s: s.topic_losses.other_pct
    )
    hot_topics_p99_us: Number | None = figure(
        MICROSECONDS, _HOT_P99, repeats="median", better="lower", of=lambda s: s.latencies.topics_us(hot=True)
    )
    other_topics_p99_us: Number | None = figure(
        MICROSECONDS, _HOT_P99, repeats="median", better="lower", of=lambda s: s.latencies.topics_us(hot=False)
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the step has several topics."""
        return step.o.plan.settings.topics > 1


_ITS_LOSS: Final = (
    "`client_loss_pct`, `undrained_pct` and `unknown_pct` of the slow or reconnecting subscribers (the cohort)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowClients(StepPart):
    """What became of the slow or reconnecting subscribers (the cohort)."""

    everywhere: ClassVar[bool] = False

    cohort: str | None = text(
        "what some subscribers (the cohort) do in this step: `slow` or `reconnecting`",
        of=lambda s: s.o.plan.cohort.kind,
    )
    cohort_clients: Number | None = figure(
        SUBSCRIBERS, "number of slow or reconnecting subscribers (the cohort)", of=lambda s: len(s.o.cohort)
    )
    cohort_rate: Number | None = figure(
        "1/s",
        "messages that each slow subscriber reads per second, or how often each reconnecting subscriber reconnects per "
        "second",
        of=lambda s: s.o.plan.cohort.rate,
    )
    cohort_loss_pct: Number | None = figure("%", _ITS_LOSS, digits="six", of=lambda s: s.of_cohort.loss_pct)
    cohort_undrained_pct: Number | None = figure("%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.undrained))
    cohort_unknown_pct: Number | None = figure("%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.unknown))
    reconnects: Number | None = figure(
        "", "number of reconnects, sum over the reconnecting subscribers", of=lambda s: s.reconnects
    )
    absent_s: Number | None = figure(
        "s",
        "time during which reconnecting subscribers were disconnected, sum over these subscribers. Empty if a "
        "subscriber was disconnected more than 1024 times, because its report lists no more",
        of=lambda s: s.absent_s,
    )
    cohort_felt: bool | None = yes_no(
        "no: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the publisher "
        "nor other subscribers",
        of=lambda s: s.cohort_felt,
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the step has a cohort."""
        return step.o.plan.cohort.kind != "none"
