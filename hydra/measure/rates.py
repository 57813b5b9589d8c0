"""Rates and fairness. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean

import numpy as np

from hydra.model import PublisherReport
from hydra.wire.arrays import Flags, Floats, Ints
from hydra.wire.table import SubscriberTable

SECOND_NS = 1_000_000_000
MEGABYTE = 1 << 20
"""In bytes, as the published figures count them."""


def tx_rate_pps(reports: Iterable[PublisherReport]) -> float | None:
    """Avrg Tx Rate: the mean over publishers of (Tx − 1) / (last − first); None if no publisher sent two messages."""
    rates = [
        (r.acknowledged - 1) * SECOND_NS / (r.last_ns - r.first_ns)
        for r in reports
        if r.acknowledged >= 2 and r.last_ns > r.first_ns
    ]
    return fmean(rates) if rates else None


def rx_rates_pps(reports: SubscriberTable) -> Floats:
    """(received − first batch) / (last − first batch time) of every subscriber with at least two batches.

    The first batch is left out because it was filling before the first reading of the clock.
    """
    return _rx_rates_pps(reports)[_has_rate(reports)]


def _has_rate(reports: SubscriberTable) -> Flags:
    return (reports.batches >= 2) & (reports.last_ns > reports.first_ns)


def _rx_rates_pps(reports: SubscriberTable) -> Floats:
    """Of every subscriber; without a meaning where :func:`_has_rate` says so."""
    counted = np.maximum(reports.of_clients(reports.received) - reports.first_batch, 0)
    rate: Floats = counted * float(SECOND_NS) / np.maximum(reports.last_ns - reports.first_ns, 1)
    return rate


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


def rx_mb_s(reports: SubscriberTable) -> float | None:
    """Received megabytes/s of all subscribers together; of those and over the times of :func:`rx_rates_pps`."""
    # All that was read counts into its bytes, what came twice and what was not expected as well.
    read = reports.of_clients(reports.received + reports.extra + reports.duplicates)
    counting = _has_rate(reports) & (read > 0)
    if not bool(counting.any()):
        return None
    return float((_rx_rates_pps(reports)[counting] * reports.bytes[counting] / read[counting] / MEGABYTE).sum())


def jain(values: Ints) -> float | None:
    """Jain's index (Σx)² / (n · Σx²): 1 when all are equal, 1/n when one has everything; None when none has any.

    Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
    """
    shares = values.astype(np.float64)
    squares = float((shares * shares).sum())
    return min(float(shares.sum()) ** 2 / (len(values) * squares), 1.0) if squares else None


def nearest_rank(values: Ints, percent: float) -> int:
    """The smallest value that at least ``percent`` of all are not above (nearest-rank percentile).

    Raises:
        ValueError: there are no values.
    """
    if not len(values):
        raise ValueError("a percentile needs at least one value")
    rank = max(math.ceil(percent / 100 * len(values)), 1) - 1
    return int(np.partition(values, rank)[rank])
