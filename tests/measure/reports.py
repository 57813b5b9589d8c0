"""Reports to build steps from, in the tests of this room."""

from __future__ import annotations

from hydra.model import (
    DrainEnd,
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    SubscriberReport,
)

SECOND = 1_000_000_000
START = 1_000 * SECOND
STOP = START + 10 * SECOND


def published(
    sent: int = 1000,
    acknowledged: int | None = None,
    unacknowledged: list[SequenceRange] | None = None,
    seconds: float = 10.0,
    blocked_ns: int = 0,
    stopped_early: str = "",
    cpu_s: float = 0.0,
    joined: bool = False,
) -> PublisherReport:
    return PublisherReport(
        sent=sent,
        acknowledged=sent if acknowledged is None else acknowledged,
        failed=0,
        first_ns=START,
        last_ns=START + int(seconds * SECOND),
        bytes=sent * 24,
        lag=Histogram([5, sent], 5, 5) if sent else Histogram(),
        usage=ProcessUsage(cpu_s, 0.0, 1),
        unacknowledged=unacknowledged or [],
        blocked_ns=blocked_ns,
        stopped_early=stopped_early,
        unacknowledged_joined=joined,
    )


def received(
    got: int = 1000,
    late: int = 0,
    lost: int = 0,
    batches: int = 10,
    first_batch: int = 100,
    seconds: float = 9.0,
    latency_us: int = 50,
    felt: bool = True,
    absent: list[tuple[int, int]] | None = None,
    lag_bins_us: list[int | None] | None = None,
    undrained: int = 0,
    drain: DrainEnd = "complete",
    extra: int = 0,
) -> SubscriberReport:
    return SubscriberReport(
        ledgers=[LedgerCounts(publisher=0, received=got, in_window=got - late, missing=lost, extra=extra)],
        batches=batches,
        first_batch=first_batch,
        first_ns=START,
        last_ns=START + int(seconds * SECOND),
        bytes=got * 24,
        stale=1,
        latency=Histogram([latency_us, got], latency_us, latency_us) if got else Histogram(),
        usage=ProcessUsage(),
        absent=absent or [],
        felt=felt,
        undrained=undrained,
        drain=drain,
        lag_bins_us=lag_bins_us or [],
    )
