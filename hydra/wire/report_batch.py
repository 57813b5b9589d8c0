"""Reports of many subscribers as columns of one message: how a relay encodes them. Pure.

``docs/control-protocol.md`` defines the columns. Every relay imports this module, so it does without numpy;
:mod:`hydra.wire.subscriber_table` decodes the columns.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec

from hydra.model import LAG_BINS, Histogram, LedgerCounts, SubscriberReport
from hydra.model.batch_columns import BATCH_COLUMNS, Items
from hydra.wire.buckets import percentiles_us

MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
"""Longest payload that a controller accepts, bytes."""
BATCH_BYTES: Final = 1024 * 1024
"""Sum of :func:`report_bytes` above which a relay begins another batch."""

INT: Final = "q"
FLOAT: Final = "d"
BYTE: Final = "B"
Kind = Literal["q", "d", "B"]
"""An item's type, as the module ``array`` names it: 64-bit integer, 64-bit floating point number, byte."""

_KINDS: Final[Mapping[Items, Kind]] = {"whole": INT, "fraction": FLOAT, "byte": BYTE}
COLUMNS: Final[tuple[tuple[str, Kind], ...]] = tuple((column.name, _KINDS[column.items]) for column in BATCH_COLUMNS)
"""All columns in their order, each with the type of its items."""
OF_TOPICS: Final = tuple(column.name for column in BATCH_COLUMNS if column.topics)
"""The last columns, which a batch has only if a report has ``hot``."""

NULL: Final = -(2**63)
"""In the column ``lag_bins_us``: a part of the window without a lag."""

_ALIGNMENT: Final = 8
_NO_LAG: Final = (NULL,) * LAG_BINS
_OF_CLIENT: Final = 8 * sum(column.width for column in BATCH_COLUMNS if column.of == "client" and not column.lengths)
"""Bytes of a client's numbers: counts, CPU, latencies, lags, lengths of its absences, of its ledgers, of ``system``."""
_OF_LEDGER: Final = 8 * sum(column.width for column in BATCH_COLUMNS if column.of == "ledger" and not column.lengths)
"""Bytes of a ledger's numbers: counts, and the lengths of its ranges and bits."""
_PERCENTILES: Final = {column.name: column.percentile for column in BATCH_COLUMNS if column.percentile}
_LATENCIES: Final = ("latency_count", "latency_min_us", *_PERCENTILES, "latency_max_us")
_json = msgspec.json.Encoder()

Columns = list[tuple[str, int]]
"""Names of columns, each with its number of items."""


def encode(reports: Sequence[tuple[int, SubscriberReport]], cohort: Container[int] = ()) -> tuple[Columns, bytes]:
    """The columns of these clients' reports, and the payload that holds them.

    Args:
        reports: each client with its report, in the order of their ids; at least one.
        cohort: the clients whose latencies are summed separately.
    """
    bodies = [report for _, report in reports]
    columns: Columns = []
    payload = bytearray()
    several = any(report.hot is not None for report in bodies)
    for (name, kind), values in zip(COLUMNS, _values(reports, bodies, cohort), strict=True):
        if name in OF_TOPICS and not several:
            break
        items = values if isinstance(values, bytes) else _little_endian(array(kind, values))
        columns.append((name, len(items) // (1 if kind == BYTE else 8)))
        payload += items
        payload += bytes(-len(payload) % _ALIGNMENT)
    return columns, bytes(payload)


def report_bytes(report: SubscriberReport) -> int:
    """Upper bound of a report's part of the payload in bytes, without the sums of the histograms."""
    return (
        _OF_CLIENT
        + 16 * len(report.absent)
        + sum(_OF_LEDGER + 16 * len(x.missing_ranges) + 3 * len(x.received_bits) // 4 for x in report.ledgers)
        + len(_system(report))
    )


def _values(
    reports: Sequence[tuple[int, SubscriberReport]], bodies: Sequence[SubscriberReport], cohort: Container[int]
) -> Iterable[Iterable[Any]]:
    """The items of each column, in the columns' order."""
    ledgers: list[LedgerCounts] = [ledger for r in bodies for ledger in r.ledgers]
    several: dict[str, list[Any]] = {
        "absent_counts": [r.absent for r in bodies],
        "ledger_counts": [r.ledgers for r in bodies],
        "range_counts": [ledger.missing_ranges for ledger in ledgers],
        "bits_bytes": [b64decode(ledger.received_bits) for ledger in ledgers],
        "system_bytes": [_system(r) for r in bodies],
    }
    computed: dict[str, Iterable[Any]] = {name: [len(each) for each in found] for name, found in several.items()}
    computed |= zip(_LATENCIES, zip(*[_summary(r.latency) for r in bodies], strict=True), strict=True)
    computed["lag_bins_us"] = _lags(bodies)
    for name, histograms in (
        ("latency", [report.latency for client, report in reports if client not in cohort]),
        ("cohort_latency", [report.latency for client, report in reports if client in cohort]),
        ("hot_latency", [report.hot.latency for client, report in reports if report.hot and client not in cohort]),
    ):
        computed[f"{name}_bounds"], computed[f"{name}_counts"] = _sum(histograms)
    for column in BATCH_COLUMNS:
        if column.name in computed:
            yield computed[column.name]
        elif column.topics:
            yield [attrgetter(column.noun)(r) if r.hot else 0 for r in bodies]
        elif not column.lengths:
            values = list(map(attrgetter(column.noun), ledgers if column.of == "ledger" else bodies))
            yield [column.choices.index(value) for value in values] if column.choices else values
        elif column.items == "byte":
            yield b"".join(several[column.lengths])
        else:
            yield chain.from_iterable(chain.from_iterable(several[column.lengths]))


def _summary(latency: Histogram) -> tuple[int, ...]:
    """One client's ``_LATENCIES``; zeros if it has none."""
    percentiles = [us for us in percentiles_us(latency, _PERCENTILES.values()) if us is not None]
    if not percentiles:
        return (0,) * len(_LATENCIES)
    return (sum(latency.counts[1::2]), latency.min_us, *percentiles, latency.max_us)


def _lags(bodies: Sequence[SubscriberReport]) -> list[int]:
    if not any(r.lag_bins_us for r in bodies):
        return []
    return [NULL if mean is None else mean for r in bodies for mean in r.lag_bins_us or _NO_LAG]


def _system(report: SubscriberReport) -> bytes:
    return b"" if report.system is None else _json.encode(report.system)


def _sum(histograms: Iterable[Histogram]) -> tuple[list[int], list[int]]:
    """The lowest and the highest value; and pairs of a rising index and its count.

    Both arrays are empty if nothing was counted.
    """
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
