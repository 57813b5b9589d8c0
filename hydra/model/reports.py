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
    """A subscriber's exact counts for one (publisher, epoch).

    Attributes:
        received: distinct expected sequences received, drain included.
        in_window: those of them received no later than the end of the step.
        missing: expected sequences that were never received.
        missing_ranges: the first missing ranges, at most ``MAX_MISSING_RANGES``.
        truncated: whether there were more ranges, or more sequences than ``received_bits`` can hold.
        duplicates: messages whose sequence had been received already.
        reordered: messages received after a later sequence.
        extra: distinct sequences received that were not expected (sent but never acknowledged).
        received_bits: all sequences that a member of a consumer group received (``hydra/wire/compact_encoding.py``); ""
            for other subscribers, and if ``truncated``.
    """

    publisher: Annotated[int, Reported(most=LARGEST_ID, sql="")]
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
    received_bits: str = ""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """getrusage over the step: CPU seconds during the step, and peak resident memory (bytes) of the process so far."""

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
    """A subscriber's messages of the tenth of topics with most traffic, over all publishers.

    Attributes:
        expected: acknowledged messages of those of these topics that it has.
        missing: those of them that were never received.
        latency: their histogram.
    """

    expected: int
    missing: int
    latency: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True)
class SubscriberReport:
    """What one subscriber received in one epoch.

    ``first_ns``/``last_ns`` are the arrival times of the first and last batch (ns, the step's clock), 0 if none;
    ``first_batch`` is the number of messages in the first one. ``stale`` counts messages of other epochs. ``undrained``
    is the known number of messages that wait after its read position. ``absent`` lists the intervals (ns) in which a
    reconnecting client received nothing, each until data flowed again. ``felt`` is false for a slow reader without
    loss. ``lag_bins_us`` is the mean age (µs) of the newest message of each batch, in each of ``LAG_BINS`` equal parts
    of the window; None if no batch was read in that part; empty at rate ``max``. ``system`` has values that only
    clients of this system report. ``hot`` is None if there is one topic only.
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
    absent: list[tuple[int, int]] = field(default_factory=list)
    reconnects: Annotated[int, Reported(sql="")] = 0
    felt: bool = True
    drain: DrainEnd = "complete"
    lag_bins_us: list[int | None] = field(default_factory=list)
    system: dict[str, Any] | None = None
    hot: HotTopicCounts | None = None


@dataclass(frozen=True, slots=True)
class PublisherReport:
    """What one publisher sent in one epoch; sequences run from 0 to ``sent`` − 1.

    Attributes:
        sent: messages that the library accepted.
        acknowledged: those of them that a server acknowledged; equal to ``sent`` if servers do not acknowledge.
        failed: messages for which the broker or the library reported an error.
        unacknowledged: ranges of sequences that failed or have no answer.
        first_ns, last_ns: time of the first send, and of the last acknowledgement, or of the last send if servers do
            not acknowledge; ns on the step's clock.
        lag: histogram of send time − due time (µs) of every message; empty at rate ``max``.
        blocked_ns: time spent waiting for a full queue.
        stopped_early: why it stopped before the end of the step, or "".
        unacknowledged_joined: whether there were more ranges than a report holds, so the last of
            ``unacknowledged`` includes acknowledged sequences; ``acknowledged`` is exact nevertheless.
        system: values that only clients of this system report.
        ack_latency: histogram of the time from a message's send to its acknowledgement (µs); empty if servers do not
            acknowledge.
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
