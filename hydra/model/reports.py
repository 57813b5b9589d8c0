"""Reports of clients about an epoch, and the time series of a step.

A field of a subscriber's report is declared here, once: the columns of a batch (:mod:`hydra.model.batch_columns`),
their checks, the sums, the tables and the page of the protocol follow from its annotation and its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, get_args

DrainEnd = Literal["complete", "marked", "quiet", "deadline"]
"""Why a subscriber stopped draining: it had received everything, had every publisher's end marker (so that nothing
could follow), received nothing for a while, or reached the time limit."""
DRAIN_ENDS: Final[tuple[DrainEnd, ...]] = get_args(DrainEnd)

LAG_BINS: Final = 20
"""Equal parts of the window in which a subscriber's lag is averaged."""

SequenceRange = tuple[int, int]
"""First and last sequence, both included."""
Interval = Annotated[tuple[int, int], "[ns, ns]"]
"""Begin and end on the step's clock; a text in an annotation is the name of the type on the page of the protocol."""

PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
"""The percent of each percentile that Hydra stores or shows, by the percentile's name."""
LARGEST: Final = 2**63 - 1
LARGEST_ID: Final = 2**32 - 1
MAX_MISSING_RANGES: Final = 256
"""The maximum number of missing ranges in one ledger; a flag marks that there were more."""
MAX_ABSENT: Final = 1024
"""The maximum number of absent intervals in one report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What the type of a number in a subscriber's report does not state: how it is checked, stored and shown.

    Attributes:
        most: the largest number.
        sql: its name in the table of clients; None: that of the field; "": the table does not have it.
        moment: whether it is a time on the step's clock, 0 if there is none.
        shown: the definition of its sum over all subscribers, in rows of that name; "": rows do not have it.
    """

    most: int = LARGEST
    sql: str | None = None
    moment: bool = False
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Histogram:
    """HDR counts, sparse: ``counts`` alternates bucket index and count; indexes rise.

    The index of a value is HdrHistogram's counts index for 1 µs to 1 h at 3 digits (formula in
    docs/control-protocol.md); the index of a negative value, −v µs, is −1 − the index of v µs, so it sorts below
    zero.
    """

    counts: list[int] = field(default_factory=list)
    min_us: int = 0
    max_us: int = 0


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """A subscriber's exact counts of the messages from one publisher in one epoch.

    Expected are the sequences 0 … sent − 1 of ``finish`` without ``unacknowledged``, and, if the subscriber has some of
    the topics, without those of other topics. A message of a topic that it does not have adds 1 to ``extra``, and
    counts nowhere else. Missing sequences are one range if no sequence of its topics is between them; the range then
    spans sequences of other topics. ``tests/golden/ledger`` has examples.

    Attributes:
        received: distinct expected sequences received, drain included.
        in_window: of those, in batches read no later than the end of the window.
        missing: expected sequences that were not received; 0 in a consumer group.
        missing_ranges: the first 256 of them.
        truncated: whether there were more ranges than are listed; in a consumer group, whether ``received_bits`` did
            not fit and is empty.
        duplicates: messages whose sequence had been received before.
        reordered: first arrivals of a sequence after a later one. With ``keys``: messages, duplicates included, that
            arrived after a message of their publisher, topic and key with a later sequence.
        extra: distinct sequences received that were not expected.
        received_bits: in a consumer group: a bitmap of the sequences received, expected or not (``received`` +
            ``extra`` ones). Bit i of it, beginning with the least significant bit of the first byte, is the sequence i;
            zero bytes at the end are cut. Empty otherwise.
    """

    publisher: Annotated[int, Reported(most=LARGEST_ID, sql=""), "id"]
    received: Annotated[int, Reported(sql="messages")]
    in_window: int
    missing: int
    missing_ranges: list[SequenceRange] = field(default_factory=list)
    truncated: bool = False
    duplicates: Annotated[
        int, Reported(shown="messages received with a sequence number that the subscriber had received before")
    ] = 0
    reordered: Annotated[
        int,
        Reported(
            shown="messages received after a message with a later sequence number, with `keys` of the same topic and "
            "key"
        ),
    ] = 0
    extra: Annotated[
        int,
        Reported(
            shown="messages received that were not expected: they were sent but never acknowledged, or have a topic "
            "that the subscriber does not have"
        ),
    ] = 0
    received_bits: Annotated[str, "bytes"] = ""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """CPU time and memory of a process, by getrusage; clients of one process report equal shares of the CPU time.

    Attributes:
        cpu_user_s, cpu_system_s: since ``start`` (``configure`` if there was none).
        max_rss_bytes: peak until now.
    """

    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AgentClock:
    """CLOCK_MONOTONIC of an agent's host relative to the controller's, as a step used it.

    Attributes:
        offset_ns: the host's − the controller's clock at the start of the step.
        rate_ppb: the assumed difference of its speed from the controller's clock, in 1e-9.
        error_ns: the largest possible error of the step's clock on that host during the window.
        rtt_min_ns: the shortest round trip of the exchanges that were used.
        same_host: whether it is the controller's own clock, which needs no measurement.
        jumps: how often the clock jumped during the step, so earlier exchanges were discarded.
    """

    offset_ns: int
    rate_ppb: int
    error_ns: int
    rtt_min_ns: int
    same_host: bool
    jumps: int


@dataclass(frozen=True, slots=True)
class HotTopicCounts:
    """Messages of the hot topics, 0 … ⌈topics / 10⌉ − 1, which have most traffic, over all publishers.

    Attributes:
        expected: those of them that the subscriber expects.
        missing: those of them that were never received.
        latency: their histogram.
    """

    expected: int
    missing: int
    latency: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True)
class SubscriberReport:
    """What one subscriber received in one epoch.

    Attributes:
        ledgers: one for each publisher that ``finish`` names, in that order.
        batches: drained batches that contained at least one message of the epoch.
        first_batch: messages of the epoch in the first of them.
        first_ns, last_ns: arrival of the first and last of them, step's clock; 0 if none, or if ``start`` never
            arrived.
        bytes: of the epoch's messages, duplicates included.
        stale: messages of another epoch, or of a publisher that was not announced; probes are never stale.
        latency: arrival − the header's time, µs, of every message of the epoch that arrived after ``start``, duplicates
            and late ones included; it may be below 0.
        usage: of its process.
        undrained: messages known to wait at the report; 0 if this cannot be known.
        absent: from a reconnection's close to the first message after it, ns on the step's clock; at most 1024: with
            more, the last one reaches to the end of the last.
        reconnects: number of reconnections.
        felt: false: it had a ``receive_rate`` and lost nothing, so its slowness had no effect.
        drain: why the drain ended.
        lag_bins_us: the age of the newest message of each batch (arrival − the header's time, µs; below 0 counts as 0,
            above 1 h as 1 h), averaged in 20 equal parts of the window that ``start`` named and rounded down; null for
            a part in which no batch was read. 20 entries, or none at rate ``max``.
        system: what only subscribers of this system report.
        hot: null if there is one topic.
    """

    ledgers: list[LedgerCounts]
    batches: int
    first_batch: int
    first_ns: Annotated[int, Reported(moment=True)]
    last_ns: Annotated[int, Reported(moment=True)]
    bytes: int
    stale: Annotated[int, Reported(shown="messages received that were sent in another step")]
    latency: Histogram
    usage: ProcessUsage
    undrained: int = 0
    absent: list[Interval] = field(default_factory=list)
    reconnects: Annotated[int, Reported(sql="")] = 0
    felt: bool = True
    drain: DrainEnd = "complete"
    lag_bins_us: list[int | None] = field(default_factory=list)
    system: dict[str, Any] | None = None
    hot: HotTopicCounts | None = None


@dataclass(frozen=True, slots=True)
class PublisherReport:
    """What one publisher sent in one epoch.

    Attributes:
        sent: messages the library accepted: sequences 0 … sent − 1.
        acknowledged: of those, acknowledged by the system, exactly; ``sent`` if the system acknowledges nothing.
        failed: messages for which the library or the system reported an error.
        first_ns: first send, step's clock; 0 if nothing was sent.
        last_ns: last acknowledgement, or last send if the system acknowledges nothing.
        bytes: the sizes of the messages 0 … sent − 1, headers included.
        lag: send time − due time of every message that the library accepted, µs; messages of one chunk have the same
            send time. Empty at rate ``max``.
        usage: of its process.
        unacknowledged: failed or without an answer, at most 4096; a publisher with more joins all from the 4096th on
            into one.
        blocked_ns: time spent offering messages to a full queue.
        stopped_early: why the publisher stopped before the end of the window, as in its ``error``, which ends the
            window for all clients; or ``""``.
        unacknowledged_joined: whether ranges were joined in ``unacknowledged``: its last range then contains
            acknowledged sequences, too.
        system: what only publishers of this system report.
        ack_latency: from a message's send to its acknowledgement, µs; empty if the system acknowledges nothing.
    """

    sent: int
    acknowledged: int
    failed: int
    first_ns: int
    last_ns: int
    bytes: int
    lag: Histogram
    usage: ProcessUsage
    unacknowledged: list[SequenceRange] = field(default_factory=list)
    blocked_ns: int = 0
    stopped_early: str = ""
    unacknowledged_joined: bool = False
    system: dict[str, Any] | None = None
    ack_latency: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True)
class TimeSeriesFacts:
    """Facts about the time series of a step.

    ``start_ns`` is the begin of the window on the step's clock. ``copies`` is the number of copies of each due message
    that subscribers outside the cohort should receive, ``cohort_copies`` that of subscribers inside it. ``complete`` is
    whether the time series adds up to the clients' final reports; None before that, or if the step never ended.
    """

    start_ns: int
    duration_s: float
    interval_s: int
    copies: float
    cohort_copies: float = 0.0
    complete: bool | None = None


@dataclass(frozen=True, slots=True)
class TimeSeriesInterval:
    """Counts of one interval of a step, a second or longer, which begins ``begin_s`` after the start.

    ``due`` and ``sent`` are counts of all publishers; ``received`` and ``latency`` are those of all subscribers outside
    the cohort, by the time of arrival. ``lost`` is the number of lost copies that were due in the interval; None:
    unknown.
    """

    begin_s: int
    due: int
    sent: int = 0
    received: int = 0
    cohort_received: int = 0
    lost: int | None = None
    latency: Histogram = field(default_factory=Histogram)
    cohort_latency: Histogram = field(default_factory=Histogram)
