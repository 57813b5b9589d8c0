"""Rates of sending and receiving, and fairness between subscribers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from hydra.model import PublisherReport
from hydra.wire.arrays import Flags, Floats, Ints
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
    """(Tx − intervals) / (last − first) of every publisher; None without a report, or if one has no time.

    The rates of a number of messages at rate ``max``: n messages span n − 1 intervals. (A tool's own rate is n messages
    in its own time.)
    """
    if not reports or any(r.last_ns <= r.first_ns for r in reports):
        return None
    return [max(r.acknowledged - intervals, 0) * SECOND_NS / (r.last_ns - r.first_ns) for r in reports]


def tool_tx_rate_pps(report: PublisherReport, requested_pps: float, window_ns: tuple[int, int]) -> float:
    """The rate of a publisher that kept its requested rate in a time of its own, which excludes its program's start.

    n messages take n intervals, as in the window of a number of messages, which lasts n / rate. The time may also be
    that of n − 1 intervals: only those show a higher rate. A message without such a time counts in the window.
    """
    own_ns, n = report.last_ns - report.first_ns, report.acknowledged
    if own_ns <= 0:
        start_ns, stop_ns = window_ns
        return min(n * SECOND_NS / (stop_ns - start_ns), requested_pps)
    return max(min(n * SECOND_NS / own_ns, requested_pps), (n - 1) * SECOND_NS / own_ns)


def tool_rx_rates_pps(reports: SubscriberTable, publishers: Sequence[PublisherReport], requested_pps: float) -> Floats:
    """Of every tool the rate at which it read what publishers sent at a rate meanwhile; NaN if it has no time.

    A tool's own time excludes its start, but the messages that were sent meanwhile count: so the time is that from the
    first message sent to the last one read, and at least the time for which the messages were due.
    """
    received = reports.of_clients(reports.received)
    senders = [p for p in publishers if p.acknowledged]
    some = (received > 0) & (reports.last_ns > 0)
    first_ns = min((p.first_ns for p in senders), default=0)
    took_ns = np.maximum(reports.last_ns - first_ns, 1)
    rates: Floats = np.minimum(received * float(SECOND_NS) / took_ns, requested_pps * len(senders))
    return np.where(some & bool(senders), rates, np.nan)


def own_rx_rates_pps(reports: SubscriberTable, *, shared: bool) -> Floats | None:
    """Of every subscriber the rate from the first batch to the last; None if one received too little to have a rate.

    A subscriber without a message has the rate 0. If subscribers share the messages (``shared``), the time is that of
    all of them together, and the least number of messages is their sum.
    """
    received = reports.of_clients(reports.received)
    none = received == 0
    if shared and not none.all():
        return _shares_pps(reports, received, ~none)
    enough = reports.of_clients(reports.received + reports.missing) >= LEAST_MESSAGES
    spans_ns = reports.last_ns - reports.first_ns
    if not len(none) or not bool((none | (enough & (reports.batches >= 2) & (spans_ns > 0))).all()):
        return None
    counted = np.maximum(received - reports.first_batch, 0) * float(SECOND_NS)
    rates: Floats = np.where(none, 0.0, counted / np.maximum(spans_ns, 1))
    return rates


def _shares_pps(reports: SubscriberTable, received: Ints, some: Flags) -> Floats | None:
    """Of every subscriber its part of the rate from the first batch of all to the last of all; None: too few.

    Args:
        reports: those of subscribers that share the messages.
        received: how many each of them received.
        some: which of them received any.
    """
    first_ns, last_ns = int(reports.first_ns[some].min()), int(reports.last_ns[some].max())
    if int(received.sum()) < LEAST_MESSAGES or last_ns <= first_ns:
        return None
    # Only the very first batch arrived before the first reading of a clock.
    begins = some & (reports.first_ns == first_ns)
    counted = np.maximum(received - np.where(begins, reports.first_batch, 0), 0)
    rates: Floats = counted * float(SECOND_NS) / (last_ns - first_ns)
    return rates


def rx_span_rates_pps(reports: SubscriberTable) -> Floats:
    """(received − first batch) / (last − first batch time) of every subscriber; NaN if it has fewer than two batches.

    The first batch is left out because its messages arrived before the first reading of the clock.
    """
    has_rate = (reports.batches >= 2) & (reports.last_ns > reports.first_ns)
    counted = np.maximum(reports.of_clients(reports.received) - reports.first_batch, 0)
    rates: Floats = counted * float(SECOND_NS) / np.maximum(reports.last_ns - reports.first_ns, 1)
    return np.where(has_rate, rates, np.nan)


def known(rates_pps: Floats) -> Floats:
    """The rates that are known: all that are not NaN."""
    found: Floats = rates_pps[~np.isnan(rates_pps)]
    return found


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


def tool_rx_mb_s(reports: SubscriberTable, rates_pps: Floats) -> float | None:
    """Received megabytes/s of all tools together at these rates; None if a tool that has read messages has no rate."""
    some = reports.of_clients(reports.received) > 0
    if not some.any() or np.isnan(rates_pps[some]).any():
        return None
    return rx_mb_s(reports, np.where(some, rates_pps, 0.0), 1.0)


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
