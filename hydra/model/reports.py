"""Reports of clients about an epoch: of one client, of many as columns, and the time series of a step.

A field of a subscriber's report is declared here, in its report and among the columns: all code that transfers,
checks, adds up or stores it uses :class:`SubscriberColumns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from hydra.model.base import LATENCY_HIGHEST_US

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

    publisher: int
    received: int
    in_window: int
    missing: int
    missing_ranges: list[SequenceRange] = field(default_factory=list)
    truncated: bool = False
    duplicates: int = 0
    reordered: int = 0
    extra: int = 0
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
    first_ns: int
    last_ns: int
    bytes: int
    stale: int
    latency: Histogram
    usage: ProcessUsage
    undrained: int = 0
    absent: list[tuple[int, int]] = field(default_factory=list)
    reconnects: int = 0
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


# --- columns -------------------------------------------------------------------------------------------------------

Ints = TypeVar("Ints")
Floats = TypeVar("Floats")
Bytes = TypeVar("Bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchColumn:
    """The definition of a column: its content and its source.

    Attributes:
        name: name of the column.
        items: ``Ints``, ``Floats`` (64 bits each) or ``Bytes``.
        of: what its items belong to: each client, each ledger, or all clients together.
        noun: the attribute of the report or the ledger that it holds; "": its values are computed.
        lengths: if a client or a ledger has several items: the column with their number.
        width: the count of numbers in one item.
        least, most: bounds of its numbers.
        added: whether the sum over the ledgers of a client must be at most ``most``, too.
        choices: the values for which the numbers 0, 1, ... stand.
        percentile: the percentile of the client's latencies that it holds.
        sql: its name in the table of clients; "": the table does not have it, or not in this form.
        known: the column that is above 0 if there is a value to store; "": there always is one.
        moment: whether it is a time on the step's clock.
        topics: whether only batches of steps with several topics have it.
    """

    name: str
    items: str
    of: Literal["client", "ledger", "together"]
    noun: str = ""
    lengths: str = ""
    width: int = 1
    least: int = 0
    most: int = LARGEST
    added: bool = False
    choices: tuple[object, ...] = ()
    percentile: float | None = None
    sql: str = ""
    known: str = ""
    moment: bool = False
    topics: bool = False

    @property
    def highest(self) -> int:
        """The upper bound of its numbers."""
        return len(self.choices) - 1 if self.choices else self.most


def _column(of: str, noun: str = "", **rest: Any) -> dict[str, Any]:
    return {"of": of, "noun": noun, **rest}


def _counted(noun: str, sql: str = "") -> dict[str, Any]:
    """A count of messages in a ledger; ``sql`` is its name in the database if that differs."""
    return _column("ledger", noun, added=True, sql=sql or noun)


def _own(noun: str, **rest: Any) -> dict[str, Any]:
    """A number of a report that is stored under its own name."""
    return _column("client", noun, **({"sql": noun.rpartition(".")[2]} | rest))


def _latency(**rest: Any) -> dict[str, Any]:
    return _column("client", least=-LATENCY_HIGHEST_US, **rest)


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class SubscriberColumns(Generic[Ints, Floats, Bytes]):
    """The reports of many subscribers; each column has the items of one client, or ledger, after another.

    The columns have the order of a ``batch`` in ``docs/control-protocol.md``, which defines them; ``ids`` are the ids
    of the clients.
    """

    ids: Ints
    batches: Ints = field(metadata=_own("batches"))
    first_batch: Ints = field(metadata=_own("first_batch"))
    first_ns: Ints = field(metadata=_own("first_ns", known="first_ns", moment=True))
    last_ns: Ints = field(metadata=_own("last_ns", known="last_ns", moment=True))
    bytes: Ints = field(metadata=_own("bytes"))
    stale: Ints = field(metadata=_own("stale"))
    undrained: Ints = field(metadata=_own("undrained"))
    reconnects: Ints = field(metadata=_own("reconnects", sql=""))
    felt: Ints = field(metadata=_own("felt", sql="", choices=(False, True)))
    drain: Ints = field(metadata=_own("drain", sql="", choices=DRAIN_ENDS))
    max_rss_bytes: Ints = field(metadata=_own("usage.max_rss_bytes"))
    cpu_user_s: Floats = field(metadata=_own("usage.cpu_user_s"))
    cpu_system_s: Floats = field(metadata=_own("usage.cpu_system_s"))
    latency_count: Ints = field(metadata=_column("client"))
    latency_min_us: Ints = field(metadata=_latency())
    latency_p50_us: Ints = field(metadata=_latency(percentile=PERCENTILES["p50"], sql="p50_us", known="latency_count"))
    latency_p99_us: Ints = field(metadata=_latency(percentile=PERCENTILES["p99"], sql="p99_us", known="latency_count"))
    latency_max_us: Ints = field(metadata=_latency(sql="max_us"))
    lag_bins_us: Ints = field(metadata=_column("client", width=LAG_BINS))
    absent_counts: Ints = field(metadata=_column("client", most=MAX_ABSENT))
    absent: Ints = field(metadata=_column("client", "absent", lengths="absent_counts", width=2))
    ledger_counts: Ints = field(metadata=_column("client"))
    publisher: Ints = field(metadata=_column("ledger", "publisher", most=LARGEST_ID))
    received: Ints = field(metadata=_counted("received", "messages"))
    in_window: Ints = field(metadata=_counted("in_window"))
    missing: Ints = field(metadata=_counted("missing"))
    duplicates: Ints = field(metadata=_counted("duplicates"))
    reordered: Ints = field(metadata=_counted("reordered"))
    extra: Ints = field(metadata=_counted("extra"))
    truncated: Ints = field(metadata=_column("ledger", "truncated", choices=(False, True)))
    range_counts: Ints = field(metadata=_column("ledger", most=MAX_MISSING_RANGES))
    ranges: Ints = field(metadata=_column("ledger", "missing_ranges", lengths="range_counts", width=2))
    bits_bytes: Ints = field(metadata=_column("ledger"))
    bits: Bytes = field(metadata=_column("ledger", "received_bits", lengths="bits_bytes"))
    system_bytes: Ints = field(metadata=_column("client"))
    system: Bytes = field(metadata=_column("client", "system", lengths="system_bytes"))
    latency_bounds: Ints = field(metadata=_column("together"))
    latency_counts: Ints = field(metadata=_column("together"))
    cohort_latency_bounds: Ints = field(metadata=_column("together"))
    cohort_latency_counts: Ints = field(metadata=_column("together"))
    hot_expected: Ints = field(metadata=_column("client", topics=True))
    hot_missing: Ints = field(metadata=_column("client", topics=True))
    hot_latency_bounds: Ints = field(metadata=_column("together", topics=True))
    hot_latency_counts: Ints = field(metadata=_column("together", topics=True))


BATCH_COLUMNS: Final = tuple(
    BatchColumn(name=f.name, items=str(f.type), **f.metadata) for f in fields(SubscriberColumns) if f.metadata
)
"""All columns except ``ids``, in order."""


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
