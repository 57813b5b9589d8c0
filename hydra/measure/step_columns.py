"""The columns of a step, whose figures ``measure.figures`` computes, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from hydra.measure.column import (
    MB_S,
    MESSAGES,
    MICROSECONDS,
    PER_SECOND,
    PUBLISHERS,
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
    COPIES_EXPECTED,
    DIED_BY,
    DISTURBED,
    GENERATOR_LIMITED,
    GROUP,
    HOST_CPU,
    HOT_LOSS,
    HOT_P99,
    LATE,
    LATENCY_BOUND,
    LOCAL_LIMIT,
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
    LOST_REASON,
    LOST_WHY,
    NEGATIVE,
    OTHER_LOSS,
    OTHER_P99,
    PACING,
    PASSED,
    PAYLOAD,
    PROGRESS,
    PUBLISHERS_LOST,
    PUBLISHERS_SLOW,
    RATE_HELD,
    RATE_SENT,
    REFUSED_REASON,
    REFUSED_TEXT,
    REQUESTED,
    REST_BURSTS,
    RX_P1,
    SHORTFALL,
    STALLED,
    START_LOST,
    STEADY,
    STOPPED,
    SUBSCRIBERS_LOST,
    SUBSCRIBERS_LOST_WHY,
    TOPICS,
    UNACCEPTED,
    UNANSWERED,
    UNSTEADY,
    VERDICT,
    VERDICT_EVIDENCE,
)
from hydra.measure.connections import OF_COMING_BACK, OF_CONNECTING
from hydra.model import PERCENTILES as KEPT
from hydra.model.batch_columns import BATCH_COLUMNS

PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p90", "p99", "p999", "max")}
"""The percentile of each suffix of a latency column."""
ACK: Final = "ack"
"""The beginning of the names of the columns of the time from a send to its acknowledgement."""
ACK_PERCENTILES: Final = {name: KEPT[name] for name in ("p50", "p99", "p999", "max")}
LAG: Final = "tx_lag"
LAG_PERCENTILES: Final = {"p99": KEPT["p99"]}
DUE: Final = "latency"
SENT: Final = "latency_from_send"
"""The beginnings of the names of latency columns: since the due time, or (at rate ``max``) since the send."""

BATCH: Final = Column(
    BURST,
    MESSAGES,
    "the largest number of messages that a publisher sends back to back when it is behind its schedule",
    "Burst",
    repeats="common",
    axis="messages in a burst",
)


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """The columns of a system in addition to those of all systems.

    Attributes:
        batch: the second column of a step, with the setting of how many messages are sent together.
        reported: the columns of what only this system's clients report; they stand after ``blocked_s``.
    """

    batch: Column = BATCH
    reported: Sequence[ReportColumn] = ()


def _title(name: str, percent: float) -> str:
    """The name of a percentile in tables."""
    return name if name == "max" else f"p{percent:g}"


PUBLISHED: Final = (
    Column(
        CLIENTS,
        SUBSCRIBERS,
        "subscribers of the step",
        "Subscribers",
        repeats="common",
        axis="subscribers",
        published="Client #",
    ),
    BATCH,
    Column(
        AVG_TX,
        PER_SECOND,
        "mean over publishers of Tx (messages sent) / *T* (length of the window; at a constant rate to the end of the "
        "last message's interval, because n messages take n / rate). If a server acknowledged messages after the "
        "window, the mean is that of Tx / (last acknowledgement − start)",
        "Tx rate",
        published="Avrg Tx Rate",
    ),
    Column(
        AVG_RX,
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
    ),
    Column(
        LOSS,
        "%",
        "messages lost in % of the messages expected (*E*), summed over the subscribers, the dead and silent ones "
        "included. Messages that still wait in a server (undrained) or may still arrive (unknown) are not counted as "
        "lost, but a rate with too many such messages does not pass",
        "Loss",
        digits="six",
        axis="client loss, %",
        better="lower",
        published="Client Loss[%]",
    ),
    Column(
        "failed_clients",
        SUBSCRIBERS,
        "`failed_lossy` + `failed_dead` + `failed_silent`. Each subscriber is counted once: dead, otherwise silent, "
        "otherwise lossy",
        "Failed subscribers",
        better="lower",
        published="Failed Clients",
    ),
    Column(
        "total_tx",
        MESSAGES,
        "sum over the publishers of Tx: messages that servers acknowledged, or that the library accepted if servers do "
        "not acknowledge",
        "Tx total",
        published="Total pckts Tx",
    ),
    Column(
        "total_rx",
        MESSAGES,
        "mean over subscribers of the messages received, also those received after the window (in the drain). A dead "
        "or silent subscriber counts with its last progress message",
        "Rx total",
        digits="none",
        published="Total pckts Rx",
    ),
)
"""The published columns, which come first."""

_MEGABYTES: Final = (
    "sum over the clients that sent a report (`tx_mb_s`: publishers, `rx_mb_s`: subscribers) of messages × mean "
    "message size (header included) / time; the time is the divisor in `avg_tx_rate_pps` or `avg_rx_rate_pps`. A "
    "MB has 10⁶ bytes"
)
_ACKNOWLEDGED: Final = (
    "time from the send of a message to its acknowledgement: percentiles of the merged histograms of all publishers. "
    "Only if servers acknowledge"
)
_PARTS: Final = (
    "messages that arrived after the window (late), still wait in a server "
    "(undrained) or may still arrive (unknown), each in % of the messages expected "
    "(*E*); without slow and reconnecting subscribers"
)
_FAILED: Final = (
    "the parts of `failed_clients`: subscribers that lost messages (`failed_lossy`), subscribers whose process ended "
    "(`failed_dead`), and subscribers that sent no report in time (`failed_silent`)"
)
_RECEIVED: Final = (
    "nearest-rank percentiles, over the subscribers, of the number of messages that each subscriber received, also "
    "after the window. With up to 100 subscribers `rx_p1` is the minimum, and tables call `rx_p1` the minimum; with "
    "fewer than 100 subscribers `rx_p99` is the maximum"
)
_BOUNDS: Final = "lowest and highest possible `client_loss_pct`; only if the exact `client_loss_pct` is unknown"
_INTERVAL: Final = (
    "limits of the 95 % confidence interval of `client_loss_pct`, see *How well a loss is known*. Empty if the step "
    "does not determine the limits"
)
_FATES: Final = (
    "the five parts of the messages expected (*E*), see *Terms*; each is a sum "
    "over all subscribers, slow and reconnecting ones included"
)
_ITS_LOSS: Final = (
    "`client_loss_pct`, `undrained_pct` and `unknown_pct` of the slow or reconnecting subscribers (the cohort)"
)

_ACCOUNT: Final = (
    Column(
        AGGREGATE,
        PER_SECOND,
        "`in_window` / *T* (length of the window). In a step that is read from the log: messages received by all "
        "subscribers / (time of the last batch of all subscribers − time of the command to read)",
        "Aggregate rate",
        better="higher",
    ),
    Column("tx_mb_s", MB_S, _MEGABYTES, "Tx MB/s"),
    Column("rx_mb_s", MB_S, _MEGABYTES, "Rx MB/s", better="higher"),
    Column(
        "tx_span_rate_pps",
        PER_SECOND,
        "(Tx − 1) / (last − first), from the first send to the last send, or to the last acknowledgement if servers "
        "acknowledge; by the publisher's clock; mean over the publishers that sent at least two messages",
    ),
    Column(
        "rx_span_rate_pps",
        PER_SECOND,
        "mean, over the `rx_clients` subscribers with at least two batches, of (received − size of the first batch) / "
        "(time of the last batch − time of the first batch), also of messages received after the window. The first "
        "batch is left out because its messages arrived before the first reading of the clock",
    ),
    Column(
        "loss_at_stop_pct",
        "%",
        "messages not received in the window, in % of the messages expected (*E*), summed over the subscribers; "
        "messages that were still on their way count as lost, as in the original experiments",
    ),
    Column(LATE, "%", _PARTS, "late", better="lower"),
    Column("undrained_pct", "%", _PARTS, "still waiting (undrained)", better="lower"),
    Column("unknown_pct", "%", _PARTS, "unknown", better="lower"),
    Column("rx_clients", SUBSCRIBERS, "number of subscribers over which `rx_span_rate_pps` is averaged"),
    Column("failed_lossy", SUBSCRIBERS, _FAILED),
    Column("failed_dead", SUBSCRIBERS, _FAILED),
    Column("failed_silent", SUBSCRIBERS, _FAILED),
    text_column(
        DIED_BY,
        "how the processes of the subscribers in `failed_dead` ended, for example by `SIGKILL` or with `exit code 3`, "
        "and the state of the process group of each such subscriber. Only if subscribers died",
    ),
    Column(LOSS_LOW, "%", _BOUNDS),
    Column(LOSS_HIGH, "%", _BOUNDS),
    text_column(
        LOSS_UNLISTED,
        "why only the limits of the loss are known. `publisher`: a publisher could not list every unacknowledged "
        "message. `members`: the members of a consumer group could not list every message received",
    ),
    Column(LOSS_CI_LOW, "%", _INTERVAL, digits="six", repeats="pooled"),
    Column(LOSS_CI_HIGH, "%", _INTERVAL, digits="six", repeats="pooled"),
    text_column(
        LOSS_EVIDENCE,
        "the figures from which `client_loss_low_pct` and `client_loss_high_pct` are computed: length of the step (s); "
        "number of independent bursts of losses; sum, sum of squares and maximum of the bursts' sizes, in seconds of "
        "traffic. If messages were lost throughout the step, the standard error of the sum and the degrees of freedom "
        "of this error follow, otherwise 0. A repeated row has the bursts of all repeats",
        repeats="pooled",
    ),
    Column(
        LOG_GROWTH,
        MESSAGES,
        "messages by which the servers' log grew in the step, probes excluded. Only if servers keep a log",
        "Log growth",
    ),
    text_column(
        ACCOUNT,
        "`exact` if acknowledged = `log_growth` = received; otherwise which of these three counts differ, and by how "
        "many messages, see *The log*. Only if servers keep a log",
        "Account",
        repeats="noted",
    ),
)

_CLOCKS: Final = (
    Column(
        LATENCY_BOUND,
        MICROSECONDS,
        "largest error of a latency that the clocks of two hosts can cause: the sum of the bounds of both clocks, for "
        "the pair of a publisher and a subscriber with the largest sum, see *Time*. 0 if each pair shares a host; "
        "empty if a clock or the latency is unknown",
        repeats="median",
    ),
    Column(
        NEGATIVE,
        MESSAGES,
        "messages that arrived, by the clocks of two hosts, before the time at which the messages were due (at rate "
        "`max`: were sent). The latencies of these messages are counted below zero",
    ),
)

_STEP: Final = (
    Column(
        "fairness_jain",
        "",
        "Jain's index (Σx)² / (n · Σx²), x being the messages that each of n subscribers received, without slow and "
        "reconnecting subscribers. The index is 1 if all received the same number, 1/n if one received all. R. Jain, "
        "D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC TR-301, 1984",
        better="higher",
    ),
    Column(RX_P1, MESSAGES, _RECEIVED, repeats="median"),
    Column("rx_p50", MESSAGES, _RECEIVED, repeats="median"),
    Column("rx_p99", MESSAGES, _RECEIVED, repeats="median"),
    Column(
        REQUESTED,
        PER_SECOND,
        "rate requested of each publisher: a number, or `max`",
        repeats="common",
        axis="requested rate, messages/s",
    ),
    yes_no_column(
        RATE_HELD,
        "whether `rate_sent` is yes and the system accepted the messages: not accepted was at most the loss target "
        "(`loss_target_pct`), see *Accepted*. Empty at rate `max`",
    ),
    yes_no_column(
        RATE_SENT,
        "whether each publisher ran to the end of the window and its library took at least 99 % of its messages that "
        "were due, not counting the last message of the window, accepted or not. Empty at rate `max`",
    ),
    Column(
        "tx_lag_p99_us",
        MICROSECONDS,
        "99th percentile of (send time − due time) over all messages that a library accepted. Messages that a "
        "publisher hands over together share the send time",
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
        "longest total time that any publisher waited for a full queue",
    ),
)

_SHOWN: Final = {
    column.name: Column(
        column.name, MESSAGES, f"{column.shown}; sum over all subscribers, slow and reconnecting ones included"
    )
    for column in BATCH_COLUMNS
    if column.shown
}
ADDED_UP: Final = tuple(({name: _SHOWN[name] for name in ("duplicates", "reordered", "stale")} | _SHOWN).values())
"""The sums of the counts that all subscribers reported under the same name."""

_DISCONNECTED: Final = (
    "that lost their connection to a server in the step, if the library reveals it, see "
    "[connections.md](connections.md#phases). Empty in a step with an event, a cohort or `connect_rate`, which may "
    "cause it"
)
_COUNTS: Final = (
    Column("sent", MESSAGES, "messages that the publishers' libraries accepted"),
    Column("tx_failed", MESSAGES, "messages that a library or a server rejected"),
    Column(
        UNANSWERED,
        MESSAGES,
        "messages of which no server had stated, when the publishers had waited for the last answers (at most 10 s), "
        "whether it accepted them",
        repeats="highest",
    ),
    Column(
        UNACCEPTED,
        "%",
        "messages that were rejected or never answered, in % of the messages that the libraries took, see *Accepted*",
        better="lower",
    ),
    text_column(
        REFUSED_REASON,
        "the first reason for which messages were rejected, in a word: `message_too_large`, `quota`, `not_authorized`, "
        "`no_space`, `stream_full`, `no_replicas`, `no_destination`, `timeout`, `connection_lost` or `other`; of "
        "several publishers that of the one with most rejected messages. `quota` also if a server only delayed "
        "its answers to a publisher because of a quota, and rejected nothing",
        repeats="first",
    ),
    text_column(REFUSED_TEXT, "the text of the server or the library for `refused_reason`", repeats="first"),
    Column(
        STALLED,
        "s",
        "longest time within the window in which a publisher offered messages and the system accepted none of them, in "
        "steps of about 0.05 s. Only at rate `max`",
        repeats="highest",
    ),
    yes_no_column(
        PROGRESS,
        "no: at rate `max`, the system accepted nothing of a publisher for at least 1 s and a tenth of the "
        "window, or messages were never answered. Empty at other rates, and in a step with an event, a cohort or "
        "`connect_rate`",
    ),
    Column(
        PUBLISHERS_SLOW,
        PUBLISHERS,
        "publishers for which `rate_sent` is no although they kept their connection. Empty at rate `max`",
        repeats="highest",
        better="lower",
    ),
    Column(PUBLISHERS_LOST, PUBLISHERS, f"publishers {_DISCONNECTED}", repeats="highest", better="lower"),
    Column(SUBSCRIBERS_LOST, SUBSCRIBERS, f"subscribers {_DISCONNECTED}", repeats="highest", better="lower"),
    text_column(
        LOST_WHY,
        "why the first of the publishers lost its connection, as its library or the server states it",
        repeats="first",
    ),
    text_column(
        LOST_REASON,
        "the first reason for which messages of this publisher were rejected: one of those of `refused_reason`",
        repeats="first",
    ),
    text_column(SUBSCRIBERS_LOST_WHY, "the same of the subscribers", repeats="first"),
    Column(
        "publisher_cores", "cores", "CPU time of the busiest publisher / *T* (length of the window)", better="lower"
    ),
    text_column("stopped_early", "why a publisher stopped before the end of the window", repeats="noted"),
    Column("in_window", MESSAGES, _FATES),
    Column("late", MESSAGES, _FATES),
    Column("undrained", MESSAGES, _FATES),
    Column("lost", MESSAGES, _FATES, better="lower"),
    Column("unknown", MESSAGES, _FATES),
    *ADDED_UP,
    Column("subscriber_cpu_s", "s", "CPU time of all subscribers together", better="lower"),
    Column(
        "subscriber_rss_max_bytes",
        "bytes",
        "largest resident set size of one subscriber process",
        repeats="median",
        better="lower",
    ),
)

_OF_COHORT: Final = (
    text_column("cohort", "what some subscribers (the cohort) do in this step: `slow` or `reconnecting`"),
    Column("cohort_clients", SUBSCRIBERS, "number of slow or reconnecting subscribers (the cohort)"),
    Column(
        "cohort_rate",
        "1/s",
        "messages that each slow subscriber reads per second, or how often each reconnecting subscriber reconnects per "
        "second",
    ),
    Column("cohort_loss_pct", "%", _ITS_LOSS, digits="six"),
    Column("cohort_undrained_pct", "%", _ITS_LOSS),
    Column("cohort_unknown_pct", "%", _ITS_LOSS),
    Column("reconnects", "", "number of reconnects, sum over the reconnecting subscribers"),
    Column(
        "absent_s",
        "s",
        "time during which reconnecting subscribers were disconnected, sum over these subscribers. Empty if a "
        "subscriber was disconnected more than 1024 times, because its report lists no more",
    ),
    yes_no_column(
        "cohort_felt",
        "no: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the publisher "
        "nor other subscribers",
    ),
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

_OF_TOPICS: Final = (
    Column(TOPICS, "", "number of topics. Only if there are several", "Topics", repeats="common"),
    Column(
        COPIES_EXPECTED,
        MESSAGES,
        "copies of messages that all subscribers together should receive (*E*), slow and reconnecting ones included. "
        "Only if there are several topics",
    ),
    Column(HOT_LOSS, "%", _HOT_LOSS, digits="six", better="lower"),
    Column(OTHER_LOSS, "%", _HOT_LOSS, digits="six", better="lower"),
    Column(HOT_P99, MICROSECONDS, _HOT_P99, repeats="median", better="lower"),
    Column(OTHER_P99, MICROSECONDS, _HOT_P99, repeats="median", better="lower"),
)

_LAST: Final = (
    text_column(
        PAYLOAD,
        "what the messages contained after the header, and the sizes of the messages, see *Bytes*. Only if the content "
        "was not zeros of one size",
    ),
    text_column(
        PACING,
        "`bursty` if publishers sent all messages of a second at its start (`--pacing bursty`). Only if they did",
        "Pacing",
    ),
    text_column(GROUP, "the consumer group whose members share the messages, see *Groups*"),
    Column(
        "falling_behind", SUBSCRIBERS, "number of subscribers whose backlog grows, see *Lag*. Empty if no lag is known"
    ),
    Column(
        "backlog_growth_pct",
        "%",
        "mean growth of the backlog of all subscribers in % of the rate, see *Lag*. Empty if no lag is known",
    ),
    yes_no_column(
        PASSED,
        "whether the loss and the backlog at this rate are within the loss target, and no stop was found, see *When a "
        "rate passes*",
    ),
    Column("loss_target_pct", "%", "the loss target: the highest loss at which a rate still passes", repeats="common"),
    Column(
        SHORTFALL,
        "%",
        "share of the due messages that a search counts as lost or as backlog, see *Rates that are searched for*",
        axis="lost or backlog, % of the messages due",
        better="lower",
    ),
    text_column(BURSTS, "sizes of the bursts of lost messages that `shortfall_pct` counts, in seconds of traffic"),
    Column(
        START_LOST,
        "ms",
        "messages lost in the first 0.1 s of the step, as the time in ms in which the publishers send this number",
        better="lower",
    ),
    Column(
        LONE_LOSER,
        "",
        "id of the subscriber that lost at least ten messages, and at least four times the share that every other "
        "subscriber lost. Only if there is such a subscriber, and without a consumer group",
        repeats="common",
    ),
    Column(LONE_LOSS, "%", "loss of the subscriber in `lone_loser`", better="lower"),
    text_column(REST_BURSTS, "`bursts_s` of all subscribers except the one in `lone_loser`"),
    yes_no_column(
        STEADY,
        "whether about the same number of messages was received in each second of the window, see *Steady state*. "
        "Empty if data of fewer than 8 seconds is stored, or if the load changes or an event happens; but no if a "
        "second received nothing or much less than was due",
    ),
    Column(
        STOPPED,
        "s",
        "seconds of the window in which nothing arrived at the subscribers outside the cohort although messages were "
        "due, see *Stops*. Empty if the messages of each second are unknown, or in a window shorter than 2 s",
        repeats="highest",
        better="lower",
    ),
    text_column(
        UNSTEADY,
        "how the seconds of the window differ: `beginning 3 -0.2` (20 % less was received before second 3 than later), "
        "`change 12 0.1` (from second 12 on, 10 % more than before), `second 7 -0.5` (in second 7, 50 % less than in "
        "the median second), `short 7 -0.5` (in second 7, 50 % less than was due), `stop 3 4` (from second 3 on, "
        "nothing was received for about 4 s); for repeats `first 0 -0.2` (in the first repeat, 20 % less than in the "
        "other repeats)",
        repeats="noted",
    ),
    Column(
        "server_cpu_pct",
        "% of a core",
        "CPU time of a server in % of the length of the window (*T*); mean over the servers. Only if servers report "
        "CPU time, or if it is a single server that Hydra started on this machine; of servers that report it, empty "
        "after the event `restart_server`",
        better="lower",
    ),
    Column(
        "server_in_mb_s",
        MB_S,
        "payload that a server received from clients and other servers; mean over the servers. Only if servers report "
        "these bytes. A MB has 10⁶ bytes",
    ),
    Column(
        "server_out_mb_s",
        MB_S,
        "payload that a server sent to clients and other servers; mean over the servers. Only if servers report these "
        "bytes. A MB has 10⁶ bytes",
    ),
    Column(
        "server_messages_s",
        PER_SECOND,
        "messages that a server received from publishers; mean over the servers. Only if servers report this number",
    ),
    Column(
        HOST_CPU,
        "%",
        "CPU use of all cores of the busiest host in the window, including time that "
        "the hypervisor gave to other guests (steal)",
    ),
    Column(
        "host_cpu_busiest_core_pct",
        "%",
        "CPU use of the busiest core of any host in the window",
        repeats="median",
    ),
    Column(
        "host_steal_pct",
        "%",
        "part of the time of all cores in the window that the hypervisor gave to other guests (steal), on the host "
        "with the largest part",
    ),
    Column(
        "host_others_pct",
        "%",
        "part of the CPU of all cores in the step that processes outside the run used, on the host with the largest "
        "part. On a host whose processes Hydra cannot read, what clients and servers of the run did not use, without "
        "steal; empty if the CPU time of one of them is unknown",
    ),
    text_column(
        DISTURBED,
        "what disturbed the row, see [machine.md](machine.md#disturbed-rows): a JSON list with an object for each such "
        "host: `others_pct` (the part of the CPU that processes outside the run used, if above 5 %), `by` (their names "
        "and parts), `throttled` (how often the CPU was slowed down), `frequencies_mhz` (the frequency of the "
        "fastest core after and before it fell by more than 10 % under load), `swapped_bytes` (by how much the used "
        "swap space grew, from 1 MB on), `changed` (facts of the machine), `clock_jumps` (how often the host's clock "
        "jumped). Empty if nothing was found",
    ),
    Column(
        "host_memory_available_min_bytes",
        "bytes",
        "smallest available memory of any host in the window",
        repeats="median",
    ),
    Column(
        "network_share_pct",
        "%",
        "utilisation of the busiest network interface of any host in the window, in the busier direction of this "
        "interface, in % of the speed of its link. Empty if no link has a known speed",
    ),
    Column(
        "tcp_retransmitted_pct",
        "%",
        "retransmitted TCP segments in % of all segments sent in the window, tail loss probes excluded; on the host "
        "with clients or servers that has the largest share",
    ),
    Column(
        "host_drops",
        "packets",
        "incoming and outgoing packets that the network interfaces of all hosts dropped in the window",
    ),
    yes_no_column(
        GENERATOR_LIMITED,
        "yes: the clients, not the system, limited the row: the rate did not hold, and `verdict` names them and one of "
        "their threads ran, or waited for CPU, all the time, or a host used at least 92 % of its CPU and the clients "
        "there at least half. Without a server, a thread of the system's library counts as the system. no: "
        "`verdict` names something else. Empty if the evidence does not decide it",
    ),
    text_column(VERDICT, "what limited the row, see *Verdict*"),
    text_column(VERDICT_EVIDENCE, "the figures from which `verdict` follows", repeats="noted"),
    text_column(
        LOCAL_LIMIT,
        "what limited or delayed the row at the hosts of the run: `publisher`, `subscriber hosts` or `host CPU`, see "
        "*Trouble of this machine*. Empty if nothing there is known to have done so, or if a server did",
        repeats="first",
    ),
)


@cache
def latency_columns(prefix: str) -> tuple[Column, ...]:
    """The percentiles of latency; ``prefix`` is ``DUE`` or ``SENT``."""
    since = "from the due time" if prefix == DUE else "from the send"
    only = "" if prefix == DUE else ", only at rate `max`, at which messages have no due time: mostly a wait in queues"
    text = (
        f"latency {since} of a message{only}: percentiles of the merged histograms of "
        "all subscribers that are neither slow nor reconnecting (HDR histograms: 1 µs "
        "to 1 h, 3 significant digits). The subscribers' histograms are added; "
        "percentiles are never averaged"
    )
    return tuple(
        Column(
            f"{prefix}_{name}_us",
            MICROSECONDS,
            text,
            _title(name, percent),
            repeats="merged",
            axis=f"latency {since}, µs",
            better="lower" if prefix == DUE else "",
        )
        for name, percent in PERCENTILES.items()
    )


def published(system: SystemColumns) -> tuple[Column, ...]:
    """The published columns of a system's steps."""
    return tuple(system.batch if column is BATCH else column for column in PUBLISHED)


def step_columns(
    latencies: Iterable[str] = (DUE, SENT),
    cohort: bool = True,
    system: SystemColumns | None = None,
    *,
    connecting: bool = True,
) -> tuple[Column, ...]:
    """The columns of a step in their order, by default all that any step can have.

    Args:
        latencies: the starts from which the steps count latency.
        cohort: whether the steps have a cohort.
        system: the columns that the system adds; None: those that all systems share.
        connecting: whether the steps measure how subscribers connect.
    """
    system = system or SystemColumns()
    of_latency = [column for prefix in latencies for column in latency_columns(prefix)]
    first = (*published(system), *_ACCOUNT, *of_latency, *_CLOCKS, *_STEP, *system.reported, *_COUNTS, *_OF_TOPICS)
    of_connecting = OF_CONNECTING if connecting else ()
    return (*first, *(_OF_COHORT if cohort else ()), *of_connecting, *OF_COMING_BACK, *_LAST)
