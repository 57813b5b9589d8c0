"""Reports of many subscribers as one message's columns: how a relay writes them. Pure.

``docs/control-protocol.md`` says what the columns hold. Every relay imports this module, so it does without numpy;
:mod:`hydra.wire.subscriber_table` reads what is written here.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Container, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Literal

import msgspec

from hydra.model import LAG_BINS, DrainEnd, Histogram, LedgerCounts, SubscriberReport
from hydra.wire.buckets import percentiles_us

MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
"""Longest payload that a controller takes."""
BATCH_BYTES: Final = 1024 * 1024
"""Length of :func:`report_bytes` together from which on a relay begins another batch."""

INT: Final = "q"
FLOAT: Final = "d"
BYTE: Final = "B"
Kind = Literal["q", "d", "B"]
"""An item's type, as the module ``array`` names it: 64 bits, a number with a fraction of 64 bits, a byte."""

COLUMNS: Final[tuple[tuple[str, Kind], ...]] = (
    ("batches", INT),
    ("first_batch", INT),
    ("first_ns", INT),
    ("last_ns", INT),
    ("bytes", INT),
    ("stale", INT),
    ("undrained", INT),
    ("reconnects", INT),
    ("felt", INT),
    ("drain", INT),
    ("max_rss_bytes", INT),
    ("cpu_user_s", FLOAT),
    ("cpu_system_s", FLOAT),
    ("latency_count", INT),
    ("latency_min_us", INT),
    ("latency_p50_us", INT),
    ("latency_p99_us", INT),
    ("latency_max_us", INT),
    ("lag_bins_us", INT),
    ("absent_counts", INT),
    ("absent", INT),
    ("ledger_counts", INT),
    ("publisher", INT),
    ("received", INT),
    ("in_window", INT),
    ("missing", INT),
    ("duplicates", INT),
    ("reordered", INT),
    ("extra", INT),
    ("truncated", INT),
    ("range_counts", INT),
    ("ranges", INT),
    ("bits_bytes", INT),
    ("bits", BYTE),
    ("system_bytes", INT),
    ("system", BYTE),
    ("latency_bounds", INT),
    ("latency_counts", INT),
    ("cohort_latency_bounds", INT),
    ("cohort_latency_counts", INT),
)
"""All columns in their order, each with the type of its items."""

DRAIN_ENDS: Final[tuple[DrainEnd, ...]] = ("complete", "marked", "quiet", "deadline")
"""What the numbers in the column ``drain`` mean."""
NULL: Final = -(2**63)
"""A part of the window without a lag, in the column ``lag_bins_us``."""

_ALIGNMENT: Final = 8
_NO_LAG: Final = (NULL,) * LAG_BINS
_OF_CLIENT: Final = 8 * (11 + 2 + 5 + LAG_BINS + 1 + 1 + 1)
"""Bytes of a client's numbers: counts, CPU, latencies, lags, and how many of its absences, ledgers and ``system``."""
_OF_LEDGER: Final = 8 * (8 + 1 + 1)
"""Bytes of a ledger's numbers: counts, and how many of its ranges and bits."""
_json = msgspec.json.Encoder()

Columns = list[tuple[str, int]]
"""Names with the number of items."""


def encode(reports: Sequence[tuple[int, SubscriberReport]], cohort: Container[int] = ()) -> tuple[Columns, bytes]:
    """The columns of these clients' reports, and the payload that holds them.

    Args:
        reports: each client with its report, in the order of their ids.
        cohort: the clients whose latencies are summed apart.
    """
    bodies = [report for _, report in reports]
    columns: Columns = []
    payload = bytearray()
    for (name, kind), values in zip(COLUMNS, _values(reports, bodies, cohort), strict=True):
        items = values if isinstance(values, bytes) else _little_endian(array(kind, values))
        columns.append((name, len(items) // (1 if kind == BYTE else 8)))
        payload += items
        payload += bytes(-len(payload) % _ALIGNMENT)
    return columns, bytes(payload)


def report_bytes(report: SubscriberReport) -> int:
    """How much of a payload a report takes at most, but for the sums of the histograms."""
    return (
        _OF_CLIENT
        + 16 * len(report.absent)
        + sum(_OF_LEDGER + 16 * len(x.missing_ranges) + 3 * len(x.received_bits) // 4 for x in report.ledgers)
        + len(_system(report))
    )


def _values(
    reports: Sequence[tuple[int, SubscriberReport]], bodies: Sequence[SubscriberReport], cohort: Container[int]
) -> Iterable[Iterable[Any]]:
    """What goes into each column, in their order."""
    for name in ("batches", "first_batch", "first_ns", "last_ns", "bytes", "stale", "undrained", "reconnects", "felt"):
        yield [getattr(r, name) for r in bodies]
    yield [DRAIN_ENDS.index(r.drain) for r in bodies]
    for name in ("max_rss_bytes", "cpu_user_s", "cpu_system_s"):
        yield [getattr(r.usage, name) for r in bodies]
    yield from zip(*[_summary(r.latency) for r in bodies], strict=True) if bodies else [()] * 5
    yield _lags(bodies)
    yield [len(r.absent) for r in bodies]
    yield chain.from_iterable(chain.from_iterable(r.absent for r in bodies))
    yield [len(r.ledgers) for r in bodies]
    ledgers: list[LedgerCounts] = [ledger for r in bodies for ledger in r.ledgers]
    for name in ("publisher", "received", "in_window", "missing", "duplicates", "reordered", "extra", "truncated"):
        yield [getattr(ledger, name) for ledger in ledgers]
    yield [len(ledger.missing_ranges) for ledger in ledgers]
    yield chain.from_iterable(chain.from_iterable(ledger.missing_ranges for ledger in ledgers))
    for texts in ([b64decode(ledger.received_bits) for ledger in ledgers], [_system(r) for r in bodies]):
        yield [len(text) for text in texts]
        yield b"".join(texts)
    yield from _sum(report.latency for client, report in reports if client not in cohort)
    yield from _sum(report.latency for client, report in reports if client in cohort)


def _summary(latency: Histogram) -> tuple[int, ...]:
    """The count, the minimum, two percentiles and the maximum of one client's latencies; zeros where it has none."""
    p50_us, p99_us = percentiles_us(latency, (50, 99))
    if p50_us is None or p99_us is None:
        return (0, 0, 0, 0, 0)
    return (sum(latency.counts[1::2]), latency.min_us, p50_us, p99_us, latency.max_us)


def _lags(bodies: Sequence[SubscriberReport]) -> list[int]:
    if not any(r.lag_bins_us for r in bodies):
        return []
    return [NULL if mean is None else mean for r in bodies for mean in r.lag_bins_us or _NO_LAG]


def _system(report: SubscriberReport) -> bytes:
    return b"" if report.system is None else _json.encode(report.system)


def _sum(histograms: Iterable[Histogram]) -> tuple[list[int], list[int]]:
    """The lowest and the highest value, and the counts with their indexes, which rise; both empty without a count."""
    counts: dict[int, int] = {}
    low_us: list[int] = []
    high_us: list[int] = []
    for h in histograms:
        if h.counts:
            low_us.append(h.min_us)
            high_us.append(h.max_us)
            for index, count in zip(h.counts[0::2], h.counts[1::2], strict=True):
                counts[index] = counts.get(index, 0) + count
    if not counts:
        return [], []
    return [min(low_us), max(high_us)], [number for index in sorted(counts) for number in (index, counts[index])]


def _little_endian(items: array[Any]) -> bytes:
    if sys.byteorder == "big":
        items.byteswap()
    return items.tobytes()
