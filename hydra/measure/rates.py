"""Rates of sending and receiving, and fairness between subscribers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from hydra.model import PublisherReport
from hydra.wire.arrays import Floats, Ints
from hydra.wire.buckets import rank_of
from hydra.wire.subscriber_table import SubscriberTable

SECOND_NS = 1_000_000_000
LEAST_MESSAGES = 100
"""The least number of messages with a rate at ``max``; the time of fewer messages depends on a single delay."""
MEGABYTE = 1_000_000
MEBIBYTE = 1 << 20
"""Bytes of a MiB, which some load tools and the published tables call MB."""


def tx_rate_pps(reports: Iterable[PublisherReport], window_ns: tuple[int, int]) -> float | None:
    """The published "Avrg Tx Rate": the mean over publishers of Tx / time; None without a report.

    The time is the window, or the time to the last acknowledgement if that is longer, since messages that a server
    acknowledges after the window were not sent in it.
    """
    rates = [r.acknowledged * SECOND_NS / _sending_ns(r, window_ns) for r in reports]
    return fmean(rates) if rates else None


def _sending_ns(report: PublisherReport, window_ns: tuple[int, int]) -> int:
    start_ns, stop_ns = window_ns
    return max(stop_ns, report.last_ns if report.ack_latency.counts else 0) - start_ns


def tx_span_rate_pps(reports: Iterable[PublisherReport]) -> float | None:
    """The mean over publishers of (Tx − 1) / (last − first); None if no publisher sent two messages."""
    rates = [
        (r.acknowledged - 1) * SECOND_NS / (r.last_ns - r.first_ns)
        for r in reports
        if r.acknowledged >= 2 and r.last_ns > r.first_ns
    ]
    return fmean(rates) if rates else None


def own_tx_rates_pps(reports: Sequence[PublisherReport], intervals: int = 1) -> list[float] | None:
    """(Tx − intervals) / (last − first) of every publisher; None without a report, or if one sent too little.

    The rates of a number of messages at rate ``max``: n messages span n − 1 intervals. (A tool's own rate is n messages
    in its own time.)
    """
    if not reports or any(r.acknowledged < 2 or r.last_ns <= r.first_ns for r in reports):
        return None
    return [(r.acknowledged - intervals) * SECOND_NS / (r.last_ns - r.first_ns) for r in reports]


def own_rx_rates_pps(reports: SubscriberTable) -> Floats | None:
    """Of every subscriber the rate from the first batch to the last; None if one received too little to have a rate.

    A subscriber without a message has the rate 0.
    """
    received = reports.of_clients(reports.received)
    none = received == 0
    enough = reports.of_clients(reports.received + reports.missing) >= LEAST_MESSAGES
    spans_ns = reports.last_ns - reports.first_ns
    if not len(none) or not bool((none | (enough & (reports.batches >= 2) & (spans_ns > 0))).all()):
        return None
    counted = np.maximum(received - reports.first_batch, 0) * float(SECOND_NS)
    rates: Floats = np.where(none, 0.0, counted / np.maximum(spans_ns, 1))
    return rates


def rx_span_rates_pps(reports: SubscriberTable) -> Floats:
    """(received − first batch) / (last − first batch time) of every subscriber with at least two batches.

    The first batch is left out because its messages arrived before the first reading of the clock.
    """
    has_rate = (reports.batches >= 2) & (reports.last_ns > reports.first_ns)
    counted = np.maximum(reports.of_clients(reports.received) - reports.first_batch, 0)
    rates: Floats = (counted * float(SECOND_NS))[has_rate] / (reports.last_ns - reports.first_ns)[has_rate]
    return rates


def tx_mb_s(reports: Iterable[PublisherReport], window_ns: tuple[int, int]) -> float | None:
    """Acknowledged megabytes/s of all publishers, over the times of :func:`tx_rate_pps`; None without a report."""
    own = list(reports)
    return tx_mb_s_at(own, [r.acknowledged * SECOND_NS / _sending_ns(r, window_ns) for r in own])


def tx_mb_s_at(reports: Sequence[PublisherReport], rates_pps: Sequence[float]) -> float | None:
    """Megabytes/s of all publishers together at these rates; None without a report."""
    each = [r.bytes / max(r.sent, 1) * rate / MEGABYTE for r, rate in zip(reports, rates_pps, strict=True)]
    return sum(each) if each else None


def rx_mb_s(reports: SubscriberTable, messages: Ints | Floats, seconds: float) -> float | None:
    """Received megabytes/s of all subscribers together; None if none has a report.

    Args:
        reports: the reports of the subscribers.
        messages: how many messages of each subscriber count.
        seconds: the time in which they were received.
    """
    if not len(messages):
        return None
    # The reported bytes include duplicates and unexpected messages.
    read = reports.of_clients(reports.received + reports.extra + reports.duplicates)
    return float((reports.bytes * (messages / np.maximum(read, 1))).sum()) / seconds / MEGABYTE


def jain(values: Ints) -> float | None:
    """Jain's index (Σx)² / (n · Σx²): 1 if all values are equal, 1/n if all but one are 0; None if all are 0.

    Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
    """
    shares = values.astype(np.float64)
    squares = float((shares * shares).sum())
    return min(float(shares.sum()) ** 2 / (len(values) * squares), 1.0) if squares else None


def nearest_rank(values: Ints, percent: float) -> int:
    """The value of the percentile's rank (:func:`hydra.wire.buckets.rank_of`).

    Raises:
        ValueError: there are no values.
    """
    if not len(values):
        raise ValueError("a percentile needs at least one value")
    index = rank_of(percent, len(values)) - 1
    return int(np.partition(values, index)[index])
