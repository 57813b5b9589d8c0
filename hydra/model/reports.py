"""What clients say of an epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

DrainEnd = Literal["complete", "marked", "quiet", "deadline"]
"""Why a subscriber stopped draining: it had all, nothing could follow (every publisher's end marker had come), nothing
came any more, or it had taken too long."""

LAG_BINS: Final = 20
"""Equal parts of the window in which a subscriber's lag is averaged."""

SequenceRange = tuple[int, int]
"""First and last sequence, both included."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """HDR counts, sparse: ``counts`` alternates bucket index and count; indexes rise.

    The index of a value is HdrHistogram's counts index for 1 µs to 1 h at 3 digits (formula in
    docs/control-protocol.md); that of a negative one, −v µs, is −1 − the index of v µs, so that it sorts below zero.
    """

    counts: list[int] = field(default_factory=list)
    min_us: int = 0
    max_us: int = 0


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """A subscriber's exact account of one (publisher, epoch).

    Attributes:
        received: distinct expected sequences received, drain included.
        in_window: of those, received no later than the end of the step.
        missing: expected sequences that never came.
        missing_ranges: the first of them, at most the number that the protocol page allows.
        truncated: whether there were more ranges than that, or more sequences than ``received_bits`` can hold.
        duplicates: messages whose sequence had been received already.
        reordered: messages that came after a later sequence.
        extra: distinct sequences received that were not expected (sent but never acknowledged).
        received_bits: of a member of a group, all sequences that it received (``hydra/wire/bits.py``); "" otherwise,
            and where it is ``truncated``.
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
    """getrusage over the step: CPU seconds spent in it, peak resident memory (bytes) of the process so far."""

    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AgentClock:
    """CLOCK_MONOTONIC of an agent's host against the controller's, as a step used it.

    Attributes:
        offset_ns: the host's − the controller's when the step was started.
        rate_ppb: how much faster than the controller's it was taken to run, in 1e-9.
        error_ns: how wrong the step's clock can have been on that host, at any moment of the window.
        rtt_min_ns: the shortest round trip of the exchanges that this is known from.
        same_host: whether it is the controller's own clock: nothing had to be measured then.
        jumps: how often in the step it was not where it had to be, and what was known of it had to be given up.
    """

    offset_ns: int
    rate_ppb: int
    error_ns: int
    rtt_min_ns: int
    same_host: bool
    jumps: int


@dataclass(frozen=True, slots=True)
class SubscriberReport:
    """What one subscriber got in one epoch.

    ``first_ns``/``last_ns`` are the arrival times of the first and last batch (ns, the step's clock), 0 if none;
    ``first_batch`` the number of messages in the first; ``stale`` counts messages of other epochs; ``undrained`` is
    what is known to be waiting behind the position that it has read; ``absent`` lists the intervals (ns) in which a
    reconnecting client got nothing, each until data flowed again; ``felt`` is false for a slow reader without loss.
    ``lag_bins_us`` is the mean age (µs) of the newest message of each batch, in each of ``LAG_BINS`` equal parts of the
    window; None where no batch was read in that part. Empty at rate ``max``. ``system`` holds what only clients of this
    system report.
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


@dataclass(frozen=True, slots=True)
class PublisherReport:
    """What one publisher sent in one epoch; sequences run from 0 to ``sent`` − 1.

    Attributes:
        sent: messages that the library accepted.
        acknowledged: of those, acknowledged by a server; equal to ``sent`` where nobody acknowledges.
        failed: messages for which the broker or the library reported an error.
        unacknowledged: ranges of sequences that are failed or without an answer.
        first_ns, last_ns: first send; last acknowledgement, or last send where nobody acknowledges; ns on the step's
            clock.
        lag: histogram of send time − due time (µs) of every message; empty at rate ``max``.
        blocked_ns: time spent waiting for a full queue.
        stopped_early: why it stopped before the end of the step, or "".
        unacknowledged_joined: whether there were more ranges than a report holds, so that the last of
            ``unacknowledged`` holds acknowledged sequences as well; ``acknowledged`` is exact all the same.
        system: what only clients of this system report.
        ack_latency: histogram of the time from a message's send to its acknowledgement (µs); empty where nobody
            acknowledges.
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
