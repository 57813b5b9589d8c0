"""The columns of a step: what ``measure.figures`` gives for each, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.measure.column import (
    MB_S,
    MESSAGES,
    MICROSECONDS,
    PER_SECOND,
    SUBSCRIBERS,
    Column,
    ReportColumn,
    text_column,
    yes_no_column,
)
from hydra.measure.column_names import (
    ACCOUNT,
    AGGREGATE,
    AVG_RX,
    AVG_TX,
    BLOCKED,
    BURST,
    BURSTS,
    CLIENTS,
    DIED_BY,
    GENERATOR_LIMITED,
    GROUP,
    LATENCY_BOUND,
    LOG_GROWTH,
    LONE_LOSER,
    LONE_LOSS,
    LOSS,
    LOSS_CI_HIGH,
    LOSS_CI_LOW,
    LOSS_EVIDENCE,
    LOSS_HIGH,
    LOSS_LOW,
    LOSS_UNLISTED,
    NEGATIVE,
    PAYLOAD,
    RATE_HELD,
    REQUESTED,
    REST_BURSTS,
    RX_P1,
    SHORTFALL,
    START_LOST,
    STEADY,
    UNSTEADY,
    VERDICT,
    VERDICT_EVIDENCE,
)
from hydra.model import PERCENTILES as KEPT

PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p90", "p99", "p999", "max")}
"""Suffix of a latency column → its percentile."""
ACK: Final = "ack"
"""What the columns of the time until a message is acknowledged begin with."""
ACK_PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p99", "p999", "max")}
LAG: Final = "tx_lag"
LAG_PERCENTILES: Final = {"p99": KEPT["p99"]}
DUE: Final = "latency"
SENT: Final = "latency_from_send"
"""What the columns of latency begin with: since the due time, or since the send at rate ``max``."""

BATCH: Final = Column(
    BURST,
    MESSAGES,
    "most messages that a publisher sends back to back when it is behind",
    "Burst",
    repeats="common",
    axis="messages in a burst",
)


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """What a system has of columns beside those that all systems share.

    Attributes:
        batch: the second column of a step: the setting that says how many messages travel together.
        reported: what its clients report and others do not; they stand after ``blocked_s``.
    """

    batch: Column = BATCH
    reported: Sequence[ReportColumn] = ()


def _title(name: str, percent: float) -> str:
    """What tables call a percentile."""
    return name if name == "max" else f"p{percent:g}"


PUBLISHED: Final = (
    Column(CLIENTS, SUBSCRIBERS, "subscribers that were asked", "Client #", repeats="common", axis="clients"),
    BATCH,
    Column(
        AVG_TX,
        PER_SECOND,
        "mean over publishers of Tx / *T*; where servers acknowledged after the window, of Tx / (last acknowledgement "
        "− start)",
        "Avrg Tx Rate",
    ),
    Column(
        AVG_RX,
        PER_SECOND,
        "mean over subscribers of (received in the window) / *T*: without a cohort it is `aggregate_pps` / `clients`. "
        "One that died or stayed silent counts with its last word. Of a stored step: of received / (time of the last "
        "batch of all − when they were told to read). Of messages without headers it is `rx_span_rate_pps`",
        "Avrg Rx Rate",
        better="higher",
    ),
    Column(
        LOSS,
        "%",
        "100 · Σ lost / Σ*E* over all that were asked. What is undrained or unknown fails a rate, and is no loss",
        "Client Loss[%]",
        digits="six",
        axis="client loss, %",
        better="lower",
    ),
    Column(
        "failed_clients",
        SUBSCRIBERS,
        "`failed_lossy` + `failed_dead` + `failed_silent`: reported a loss, died, never answered. Each under the "
        "gravest",
        "Failed Clients",
        better="lower",
    ),
    Column(
        "total_tx",
        MESSAGES,
        "Tx: messages that the library accepted, or that servers acknowledged where they do; all publishers",
        "Total pckts Tx",
    ),
    Column(
        "total_rx",
        MESSAGES,
        "mean over subscribers of received, drain included; one that died or stayed silent counts with its last word",
        "Total pckts Rx",
        digits="none",
    ),
)
"""The columns that come first, as they were published."""

_MEGABYTES: Final = (
    "of all publishers (subscribers) together: the sum, over those with a report, of its messages over the times of "
    "`avg_tx_rate_pps` (`avg_rx_rate_pps`) times their mean size, header included. A megabyte has 2²⁰ bytes"
)
_ACKNOWLEDGED: Final = (
    "from the send of a message to its acknowledgement: percentiles of the merged histograms of all publishers. Only "
    "where servers acknowledge"
)
_PARTS: Final = "the other parts of Σ*E*, as `client_loss_pct` of the subscribers outside the cohort"
_FAILED: Final = "the parts of `failed_clients`"
_RECEIVED: Final = (
    "nearest-rank percentiles of received per subscriber, drain included. Of up to 100 subscribers `rx_p1` is the "
    "minimum, and tables say so; of fewer than 100, `rx_p99` is the maximum"
)
_BOUNDS: Final = "where `client_loss_pct` is known as a bound only: its limits; otherwise there are no such columns"
_INTERVAL: Final = (
    "limits of the 95 % interval of `client_loss_pct`, see *How well a loss is known*. Empty where nothing tells"
)
_FATES: Final = "what became of the expected messages, over everyone"
_ODD: Final = "counts over everyone"
_ITS_LOSS: Final = "the cohort's own account, as `client_loss_pct`, `undrained_pct` and `unknown_pct`"

_ACCOUNT: Final = (
    Column(
        AGGREGATE,
        PER_SECOND,
        "`in_window` / *T*. Of a stored step: received by everyone / (time of the last batch of all − when they were "
        "told to read)",
        "Aggregate pps",
        better="higher",
    ),
    Column("tx_mb_s", MB_S, _MEGABYTES, "Tx MB/s"),
    Column("rx_mb_s", MB_S, _MEGABYTES, "Rx MB/s", better="higher"),
    Column(
        "tx_span_rate_pps",
        PER_SECOND,
        "(Tx − 1) / (last − first), from the first send to the last one, or to the last acknowledgement where servers "
        "acknowledge; the publisher's clock, mean over publishers that sent two messages",
    ),
    Column(
        "rx_span_rate_pps",
        PER_SECOND,
        "mean, over subscribers with at least two batches, of (received − size of the first batch) / (time of the last "
        "batch − time of the first): the drain is part of it. The first batch was filling before anybody looked at the "
        "clock. `rx_clients` says how many entered",
    ),
    Column(
        "loss_at_stop_pct",
        "%",
        "100 · Σ(*E* − received inside the window) / Σ*E*: what was still on its way counts as lost. It is what the "
        "original experiments printed",
    ),
    Column("late_pct", "%", _PARTS, "late", better="lower"),
    Column("undrained_pct", "%", _PARTS, "still waiting (undrained)", better="lower"),
    Column("unknown_pct", "%", _PARTS, "unknown", better="lower"),
    Column("rx_clients", SUBSCRIBERS, "subscribers that `rx_span_rate_pps` is the mean of"),
    Column("failed_lossy", SUBSCRIBERS, _FAILED),
    Column("failed_dead", SUBSCRIBERS, _FAILED),
    Column("failed_silent", SUBSCRIBERS, _FAILED),
    text_column(
        DIED_BY,
        "how those of `failed_dead` ended: `SIGKILL`, `exit code 3`, with the state of their group. Only where "
        "subscribers died",
    ),
    Column(LOSS_LOW, "%", _BOUNDS),
    Column(LOSS_HIGH, "%", _BOUNDS),
    text_column(
        LOSS_UNLISTED,
        "why no more than that is known: who could not list messages one by one, `publisher` (what was not "
        "acknowledged) or `members` of a group (what they received). Only where the loss is known within bounds",
    ),
    Column(LOSS_CI_LOW, "%", _INTERVAL, digits="six", repeats="pooled"),
    Column(LOSS_CI_HIGH, "%", _INTERVAL, digits="six", repeats="pooled"),
    text_column(
        LOSS_EVIDENCE,
        "what that interval is found from: length of the step (s); independent bursts of losses; their sum, sum of "
        "squares and the largest, in seconds of traffic; where all through the step something was lost, the standard "
        "error of the sum and its degrees of freedom, otherwise 0. Of a repeated row, the bursts of all repeats",
        repeats="pooled",
    ),
    Column(
        LOG_GROWTH,
        MESSAGES,
        "messages by which the servers' log grew in the step, without probes. Only where servers keep a log",
        "Log growth",
    ),
    text_column(
        ACCOUNT,
        "`exact` where acknowledged = `log_growth` = received; otherwise which of them differ and by how many, see "
        "*The log*. Only where servers keep a log",
        "Account",
        repeats="noted",
    ),
)

_CLOCKS: Final = (
    Column(
        LATENCY_BOUND,
        MICROSECONDS,
        "by how much clocks may put a latency wrong: the sum of the bounds of both hosts' clocks, the largest of all "
        "pairs of a publisher and a subscriber on different hosts, see *Time*. 0 where each pair shares a host; empty "
        "where a clock is not known, or no latency",
        repeats="median",
    ),
    Column(
        NEGATIVE,
        MESSAGES,
        "messages that arrived before they were due (at rate max: before they were sent), as the clocks have it. Their "
        "latencies are below zero, and counted there",
    ),
)

_STEP: Final = (
    Column(
        "fairness_jain",
        "",
        "(Σx)² / (n · Σx²) over every subscriber's received x: 1 if all got the same, 1/n if one got everything. R. "
        "Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC TR-301, 1984",
        better="higher",
    ),
    Column(RX_P1, MESSAGES, _RECEIVED, repeats="median"),
    Column("rx_p50", MESSAGES, _RECEIVED, repeats="median"),
    Column("rx_p99", MESSAGES, _RECEIVED, repeats="median"),
    Column(
        REQUESTED,
        PER_SECOND,
        "what was asked for, of each publisher: a number, or `max`",
        repeats="common",
        axis="rate asked for, messages/s",
    ),
    yes_no_column(
        RATE_HELD,
        "whether each publisher sent at least 99 % of what was due, or one message less: that on the edge "
        "of the window. Empty at `max`",
    ),
    Column(
        "tx_lag_p99_us",
        MICROSECONDS,
        "send time − due time of every message that a library accepted, 99th percentile. Messages that are handed over "
        "together share the send time",
        repeats="merged",
        better="lower",
    ),
    *(
        Column(
            f"{ACK}_{name}_us",
            MICROSECONDS,
            _ACKNOWLEDGED,
            f"ack {name if name == 'max' else f'p{percent:g}'}",
            "two",
            "merged",
            better="lower",
        )
        for name, percent in ACK_PERCENTILES.items()
    ),
    Column(
        BLOCKED,
        "s",
        "time that a publisher waited for a full queue, the longest of all",
    ),
)

ADDED_UP: Final = (
    Column("duplicates", MESSAGES, _ODD),
    Column("reordered", MESSAGES, _ODD),
    Column("stale", MESSAGES, _ODD),
    Column("extra", MESSAGES, _ODD),
)
"""The sums of what all subscribers reported under the same name."""

_COUNTS: Final = (
    Column("sent", MESSAGES, "accepted by the library"),
    Column("tx_failed", MESSAGES, "refused by library or server"),
    Column("publisher_cores", "cores", "CPU time of the busiest publisher / *T*", better="lower"),
    text_column("stopped_early", "why a publisher stopped before the end of the window", repeats="noted"),
    Column("in_window", MESSAGES, _FATES),
    Column("late", MESSAGES, _FATES),
    Column("undrained", MESSAGES, _FATES),
    Column("lost", MESSAGES, _FATES, better="lower"),
    Column("unknown", MESSAGES, _FATES),
    *ADDED_UP,
    Column("subscriber_cpu_s", "s", "CPU time of everyone together", better="lower"),
    Column("subscriber_rss_max_bytes", "bytes", "largest resident memory of one", repeats="median", better="lower"),
)

_OF_COHORT: Final = (
    text_column("cohort", "kind of the cohort: `slow` or `reconnecting`"),
    Column("cohort_clients", SUBSCRIBERS, "subscribers in the cohort"),
    Column("cohort_rate", "1/s", "how many messages each of the cohort reads a second, or how often it reconnects"),
    Column("cohort_loss_pct", "%", _ITS_LOSS, digits="six"),
    Column("cohort_undrained_pct", "%", _ITS_LOSS),
    Column("cohort_unknown_pct", "%", _ITS_LOSS),
    Column("reconnects", "", "how often the cohort's clients reconnected, all together"),
    Column(
        "absent_s",
        "s",
        "how long the cohort's clients were away, all together. Empty where a client was absent more often than a "
        "report lists (1024 times)",
    ),
    yes_no_column(
        "cohort_felt", "false for slow clients whose buffers never filled: then their slowness was not felt by anybody"
    ),
)

_LAST: Final = (
    text_column(
        PAYLOAD,
        "what followed the headers, and the sizes of the messages, see *Bytes*. There is no such column for zeros of "
        "one size",
    ),
    text_column(GROUP, "the consumer group whose members share the messages, see *Groups*"),
    Column("falling_behind", SUBSCRIBERS, "how many subscribers' backlog grows, see *Lag*. Empty: no lag is known"),
    Column(
        "backlog_growth_pct",
        "%",
        "the mean growth of the backlog over all subscribers in per cent of the rate, see *Lag*. Empty: no lag is "
        "known",
    ),
    yes_no_column("passed", "whether the rate passes, see *When a rate passes*"),
    Column("loss_target_pct", "%", "the loss up to which a rate passes", repeats="common"),
    Column(
        SHORTFALL,
        "%",
        "what of the step a search counts as lost or piled up, see *Rates that are searched for*",
        axis="lost or piled up, % of what was due",
        better="lower",
    ),
    text_column(BURSTS, "the bursts of `shortfall_pct`, in seconds of traffic each"),
    Column(START_LOST, "ms", "what was lost of the first 0.1 s of the step, in time of traffic", better="lower"),
    Column(
        LONE_LOSER,
        "",
        "the subscriber that lost at least four times as much as every other one, see *What is found beside it*; "
        "otherwise there are no such columns",
        repeats="common",
    ),
    Column(LONE_LOSS, "%", "its loss", better="lower"),
    text_column(REST_BURSTS, "`bursts_s` of the others"),
    yes_no_column(
        STEADY,
        "whether the seconds of the window are alike, see *Steady state*. Empty: fewer than 8 are known, or the load "
        "changes",
    ),
    text_column(
        UNSTEADY,
        "what was not: `beginning 3 -0.2` (before second 3, 20 % less was received than later), `change 12 0.1` (from "
        "second 12 on, 10 % more than before), `second 7 -0.5` (in it, 50 % less than in the median second); of "
        "repeats `first 0 -0.2` (in the first one, 20 % less than in the others)",
        repeats="noted",
    ),
    Column(
        "server_cpu_pct",
        "% of a core",
        "CPU time of a server over the window; mean over the servers. Like the three that follow: where servers tell "
        "it, otherwise there are no such columns",
        better="lower",
    ),
    Column(
        "server_in_mb_s", "MiB/s", "payload that a server took from clients and other servers; mean over the servers"
    ),
    Column(
        "server_out_mb_s", "MiB/s", "payload that a server gave to clients and other servers; mean over the servers"
    ),
    Column("server_messages_s", PER_SECOND, "messages that a server took from publishers; mean over the servers"),
    Column("host_cpu_mean_pct", "%", "CPU of all cores over the window, steal included; the busiest host"),
    Column(
        "host_cpu_busiest_core_pct",
        "%",
        "of the busiest core of any host over the window",
        repeats="median",
    ),
    Column(
        "host_steal_pct",
        "%",
        "time of all cores over the window that the hypervisor gave to others; the host that it took most of",
    ),
    Column(
        "host_others_pct",
        "%",
        "CPU of all cores over the window that neither clients and servers of the run used nor the hypervisor took: "
        "of other processes, and of Hydra's relays and controller; the host with most of those of which it is known. "
        "Empty: it is not known what all clients and servers there used",
    ),
    Column(
        "host_memory_available_min_bytes",
        "bytes",
        "least memory that was left on any host in the window",
        repeats="median",
    ),
    Column(
        "network_share_pct",
        "%",
        "what the busiest interface of any host carried over the window, in the direction with more, of what its link "
        "can. Empty: of no link the speed is known",
    ),
    Column(
        "tcp_retransmitted_pct",
        "%",
        "TCP segments that a host with clients or servers held for lost and sent once more, of all that it sent in the "
        "window; the host with the largest share",
    ),
    Column("host_drops", "packets", "dropped by the interfaces of all hosts in the window, in and out"),
    yes_no_column(
        GENERATOR_LIMITED,
        "yes: the clients were measured rather than the system. `avg_tx_rate_pps` or `aggregate_pps` is within 10 % of "
        "what `hydra ceiling` found on this host, or a host had no CPU left (92 %) of which clients used half. Empty: "
        "neither is so, and no ceiling is known for these clients",
    ),
    text_column(VERDICT, "what limited the point, see *Verdict*"),
    text_column(VERDICT_EVIDENCE, "the figures that say so", repeats="noted"),
)


def latency_columns(prefix: str) -> tuple[Column, ...]:
    """The percentiles of latency; ``prefix`` is ``DUE`` or ``SENT``."""
    since = "from the due time" if prefix == DUE else "from the send (no due time at rate max)"
    text = (
        f"{since}: percentiles of the merged histograms of all subscribers (HDR: 1 µs to 1 h, 3 significant digits). "
        "Counts are added, percentiles are never averaged"
    )
    return tuple(
        Column(
            f"{prefix}_{name}_us",
            MICROSECONDS,
            text,
            _title(name, percent),
            repeats="merged",
            axis=f"latency {since}, µs",
            better="lower",
        )
        for name, percent in PERCENTILES.items()
    )


def published(system: SystemColumns) -> tuple[Column, ...]:
    """The published columns of a system's steps."""
    return tuple(system.batch if column is BATCH else column for column in PUBLISHED)


def step_columns(
    latencies: Iterable[str] = (DUE, SENT), cohort: bool = True, system: SystemColumns | None = None
) -> tuple[Column, ...]:
    """The columns of a step in their order, by default all that any step can have.

    Args:
        latencies: since when the steps count their latency.
        cohort: whether they have one.
        system: what the system adds; None: nothing.
    """
    system = system or SystemColumns()
    of_latency = [column for prefix in latencies for column in latency_columns(prefix)]
    first, others = (*published(system), *_ACCOUNT, *of_latency), (*_COUNTS, *(_OF_COHORT if cohort else ()), *_LAST)
    return (*first, *_CLOCKS, *_STEP, *system.reported, *others)


EARLIER: Final[Mapping[str, Column]] = {
    BURST: Column("msg_batch", MESSAGES, "`burst`, in runs of earlier versions", "Batch", repeats="common"),
    BLOCKED: Column("batch_bytes", "bytes", "nothing, in runs of earlier versions", repeats="common"),
}
"""Columns that runs of earlier versions have for every system, by the column after which they stand."""
