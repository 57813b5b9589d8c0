"""Reports to build steps from, in the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hydra.model import Histogram, LedgerCounts, ProcessUsage, PublisherReport, SubscriberReport

SECOND = 1_000_000_000
START = 1_000 * SECOND
STOP = START + 10 * SECOND


def published(sent: int = 1000, acknowledged: int | None = None, seconds: float = 10.0, **more: Any) -> PublisherReport:
    """The report of a publisher that sent this many and began at the start of the window; ``more``: other fields."""
    lag, last_ns = Histogram([5, sent], 5, 5) if sent else Histogram(), START + int(seconds * SECOND)
    known = sent if acknowledged is None else acknowledged
    return replace(PublisherReport(sent, known, 0, START, last_ns, sent * 24, lag, ProcessUsage(0.0, 0.0, 1)), **more)


def received(
    got: int = 1000,
    late: int = 0,
    lost: int = 0,
    seconds: float = 9.0,
    latency_us: int = 50,
    extra: int = 0,
    **more: Any,
) -> SubscriberReport:
    """The report of a subscriber that got this many of one publisher; ``more``: other fields."""
    ledger, last_ns = LedgerCounts(0, got, got - late, lost, extra=extra), START + int(seconds * SECOND)
    latency = Histogram([latency_us, got], latency_us, latency_us) if got else Histogram()
    return replace(SubscriberReport([ledger], 10, 100, START, last_ns, got * 24, 1, latency, ProcessUsage()), **more)
