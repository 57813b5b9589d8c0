"""Rates and fairness. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from hydra.model import PublisherReport, SubscriberReport

SECOND_NS = 1_000_000_000
MEGABYTE = 1 << 20
"""In bytes, as the published figures count them."""


def received(report: SubscriberReport) -> int:
    """Distinct expected messages that a subscriber got, drain included."""
    return sum(ledger.received for ledger in report.ledgers)


def received_in_window(report: SubscriberReport) -> int:
    """Of those, what came no later than the end of the step."""
    return sum(ledger.in_window for ledger in report.ledgers)


def tx_rate_pps(reports: Iterable[PublisherReport]) -> float | None:
    """Avrg Tx Rate: the mean over publishers of (Tx − 1) / (last − first); None if no publisher sent two messages."""
    rates = [
        (r.acknowledged - 1) * SECOND_NS / (r.last_ns - r.first_ns)
        for r in reports
        if r.acknowledged >= 2 and r.last_ns > r.first_ns
    ]
    return fmean(rates) if rates else None


def rx_rates_pps(reports: Iterable[SubscriberReport]) -> list[float]:
    """(received − first batch) / (last − first batch time) of every subscriber with at least two batches.

    The first batch is left out because it was filling before the first reading of the clock.
    """
    return [
        max(received(r) - r.first_batch, 0) * SECOND_NS / (r.last_ns - r.first_ns)
        for r in reports
        if r.batches >= 2 and r.last_ns > r.first_ns
    ]


def tx_mb_s(reports: Iterable[PublisherReport]) -> float | None:
    """Acknowledged megabytes/s of all publishers together, from the first send to the last acknowledgement of each.

    None if no publisher sent two messages.
    """
    rates = [
        r.bytes / r.sent * (r.acknowledged - 1) * SECOND_NS / (r.last_ns - r.first_ns) / MEGABYTE
        for r in reports
        if r.acknowledged >= 2 and r.last_ns > r.first_ns
    ]
    return sum(rates) if rates else None


def rx_mb_s(reports: Iterable[SubscriberReport]) -> float | None:
    """Received megabytes/s of all subscribers together; of those and over the times of :func:`rx_rates_pps`."""
    rates: list[float] = []
    for report in reports:
        # All that was read counts into its bytes, what came twice and what was not expected as well.
        read = sum(ledger.received + ledger.extra + ledger.duplicates for ledger in report.ledgers)
        rates += [rate * report.bytes / read / MEGABYTE for rate in rx_rates_pps([report]) if read]
    return sum(rates) if rates else None


def jain(values: Sequence[float]) -> float | None:
    """Jain's index (Σx)² / (n · Σx²): 1 when all are equal, 1/n when one has everything; None when none has any.

    Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
    """
    squares = sum(v * v for v in values)
    return float(sum(values)) ** 2 / (len(values) * squares) if squares else None


def nearest_rank(values: Sequence[int], percent: float) -> int:
    """The smallest value that at least ``percent`` of all are not above (nearest-rank percentile).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("a percentile needs at least one value")
    return sorted(values)[max(math.ceil(percent / 100 * len(values)), 1) - 1]
