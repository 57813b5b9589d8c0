"""Reports of subscribers as columns of one message: a client encodes them, a relay joins those of its clients. Pure.

``docs/control-protocol.md`` defines the columns. Every relay imports this module, so it does without numpy;
:mod:`hydra.wire.subscriber_table` decodes the columns.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice, pairwise
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec

from hydra.model import LAG_BINS, LATENCY_HIGHEST_US, Histogram, LedgerCounts, SubscriberReport
from hydra.model.batch_columns import BATCH_COLUMNS, BatchColumn, Items
from hydra.wire.buckets import percentiles_us
from hydra.wire.compact_encoding import MAX_CHARACTERS
from hydra.wire.report_validation import check_histogram, check_ranges

MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
"""Longest payload that a relay or the controller accepts, bytes."""
BATCH_BYTES: Final = 1024 * 1024
"""Sum of the ``size`` of parts above which a relay begins another batch."""
MOST_COUNTED: Final = 2**47
"""Largest count of a bucket that a relay accepts: sums of 65,535 have 64 bits, and no batch has as many parts."""

INT: Final = "q"
FLOAT: Final = "d"
BYTE: Final = "B"
Kind = Literal["q", "d", "B"]
"""An item's type, as the module ``array`` names it: 64-bit integer, 64-bit floating point number, byte."""

_KINDS: Final[Mapping[Items, Kind]] = {"whole": INT, "fraction": FLOAT, "byte": BYTE}
_BYTES: Final[Mapping[Kind, int]] = {INT: 8, FLOAT: 8, BYTE: 1}
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
_PLACE: Final = {column.name: place for place, column in enumerate(BATCH_COLUMNS)}
_HISTOGRAMS: Final = ("latency", "cohort_latency", "hot_latency")
_PERCENTILES: Final = {column.name: column.percentile for column in BATCH_COLUMNS if column.percentile}
_LATENCIES: Final = ("latency_count", "latency_min_us", *_PERCENTILES, "latency_max_us")
_json = msgspec.json.Encoder()
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

_MOST_BITS: Final = 0x7FEF_FFFF_FFFF_FFFF
"""The bits of the largest finite fraction: those of all from 0 on are, as a whole number, 0 to this one."""
_BOUNDS: Final = tuple(
    (column.name, column.least, _MOST_BITS if column.items == "fraction" else column.most, column.added)
    for column in BATCH_COLUMNS
    if column.items != "byte" and column.of != "together" and column.name != "lag_bins_us"
)

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
        _append(columns, payload, (name, kind), items)
    return columns, bytes(payload)


def spans(columns: Sequence[tuple[str, int]], size: int) -> list[tuple[int, int]]:
    """The bytes where the items of each column begin and end in a payload of ``size`` bytes.

    Raises:
        ValueError: these are not the columns of a batch, or they need another payload.
    """
    if size > MAX_BATCH_BYTES:
        raise ValueError(f"a payload of {size} bytes, above the limit of {MAX_BATCH_BYTES}")
    known = COLUMNS if len(columns) == len(COLUMNS) else COLUMNS[: -len(OF_TOPICS)]
    if [name for name, _ in columns] != [name for name, _ in known]:
        raise ValueError("the columns are not those of a batch, in their order")
    found: list[tuple[int, int]] = []
    at = 0
    for (name, kind), (_, count) in zip(known, columns, strict=True):
        end = at + count * _BYTES[kind]
        if count < 0 or end > size:
            raise ValueError(f"the column {name} has {count} items, which the payload does not hold")
        found.append((at, end))
        at = end + -end % _ALIGNMENT
    if at != size:
        raise ValueError(f"a payload of {size} bytes for columns of {at}")
    return found


def check_lengths(clients: int, columns: Iterable[tuple[str, int]], total: Callable[[str], int]) -> None:
    """Rejects columns that have another number of items than they need.

    Args:
        clients: the number of clients.
        columns: the columns of a batch, each with its number of items.
        total: the sum of the numbers in a column of lengths; it rejects negative ones.

    Raises:
        ValueError: the text names the first column that is wrong.
    """
    totals = {"": clients}
    bounds = 0
    for column, (name, count) in zip(BATCH_COLUMNS, columns, strict=False):
        if column.of == "together":
            if name.endswith("_bounds"):
                bounds = count
            elif count % 2 or bounds != (2 if count else 0):
                raise ValueError(f"the column {name} has {count} items, its bounds {bounds}, which are no histogram")
            continue
        of = column.lengths or ("ledger_counts" if column.of == "ledger" else "")
        if of not in totals:
            totals[of] = total(of)
        items = column.width * totals[of]
        if count != items and (count or name != "lag_bins_us"):
            raise ValueError(f"the column {name} has {count} items, not {items}")


def check_system(text: bytes) -> None:
    """Rejects a client's ``system`` that is no JSON object, with a ValueError."""
    try:
        _object.decode(text)
    except (msgspec.MsgspecError, RecursionError) as e:
        raise ValueError(f"system: {e}") from None


class BatchPart:
    """The batch of one process of clients, which a relay joins with others.

    Args:
        ids: the clients that the message names, rising; at least one.
        columns: the names of its columns, each with the number of items.
        payload: the columns' items.

    Raises:
        ValueError: the lengths of the columns do not fit together, or a number is impossible: the controller would
            refuse the joined batch, with the reports of all its clients.

    Attributes:
        size: upper bound of its bytes in a joined batch, without the sums of the histograms.
    """

    __slots__ = ("_payload", "_spans", "ids", "size")

    def __init__(self, ids: Sequence[int], columns: Sequence[tuple[str, int]], payload: bytes) -> None:
        self.ids = ids
        self._payload = payload
        # A relay keeps a part for each of its clients for a while, and an array is small.
        self._spans = array("I", chain.from_iterable(spans(columns, len(payload))))
        check_lengths(len(ids), columns, self._total)
        self._check_numbers()
        several = (self._span(column.name) for column in BATCH_COLUMNS if column.lengths)
        of_ledgers = _OF_LEDGER * self._total("ledger_counts")
        self.size = _OF_CLIENT * len(ids) + of_ledgers + sum(end - begin for begin, end in several)

    def histogram(self, name: str) -> Histogram:
        """The sum of the clients' histograms under this name; empty if the batch lacks the columns."""
        return Histogram(self._numbers(f"{name}_counts").tolist(), *self._numbers(f"{name}_bounds"))

    def rows(self, column: BatchColumn) -> list[bytes] | None:
        """The items of each client in a column; None if the batch lacks them."""
        begin, end = self._span(column.name)
        if begin == end and column.of == "client" and not column.lengths:
            return None
        if len(self.ids) == 1:
            return [self._payload[begin:end]]
        at: Sequence[int] = range(len(self.ids) + 1)
        if column.of == "ledger":
            at = list(accumulate(self._numbers("ledger_counts"), initial=0))
        if column.lengths:
            begins = list(accumulate(self._numbers(column.lengths), initial=0))
            at = [begins[index] for index in at]
        width = column.width * _BYTES[_KINDS[column.items]]
        return [self._payload[begin + width * first : begin + width * last] for first, last in pairwise(at)]

    def _span(self, name: str) -> tuple[int, int]:
        place = 2 * _PLACE[name]
        return (self._spans[place], self._spans[place + 1]) if place < len(self._spans) else (0, 0)

    def _numbers(self, name: str) -> array[int]:
        found = array(INT, self._payload[slice(*self._span(name))])
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def _check_numbers(self) -> None:
        """Rejects what ``hydra.wire.subscriber_table`` rejects, which needs numpy."""
        ledgers = max(self._numbers("ledger_counts"), default=0) or 1
        for name, least, largest, added in _BOUNDS:
            numbers = self._numbers(name)
            # The sums over a client's ledgers must fit as well.
            most = largest // ledgers if added else largest
            if numbers and not least <= min(numbers) <= max(numbers) <= most:
                raise ValueError(f"the column {name} has a number that is not {least} to {most}")
        if any(NULL < lag < 0 for lag in self._numbers("lag_bins_us")):
            raise ValueError("the column lag_bins_us has a number that is neither null nor 0 or above")
        absent = self._numbers("absent")
        if any(begin > end for begin, end in zip(absent[::2], absent[1::2], strict=True)):
            raise ValueError("absent has an interval that ends before it begins")
        ranges = self._numbers("ranges")
        pairs = zip(ranges[::2], ranges[1::2], strict=True)
        for count in self._numbers("range_counts"):
            check_ranges("ranges", list(islice(pairs, count)), count)
        self._check_bits()
        begin, _ = self._span("system")
        for length in self._numbers("system_bytes"):
            if length:
                check_system(self._payload[begin : begin + length])
                begin += length
        for name in _HISTOGRAMS:
            check_histogram(name, self.histogram(name), -LATENCY_HIGHEST_US, MOST_COUNTED)

    def _check_bits(self) -> None:
        at, end = self._span("bits")
        if at == end:
            return
        lengths = self._numbers("bits_bytes")
        for length, received, extra in zip(lengths, self._numbers("received"), self._numbers("extra"), strict=True):
            bits = self._payload[at : at + length]
            at += length
            if bits and (not bits[-1] or int.from_bytes(bits).bit_count() != received + extra):
                raise ValueError("bits end in zeros, or hold another number of sequences than was received")
        each = iter(lengths)
        for count in self._numbers("ledger_counts"):
            if sum(-(-length // 3) * 4 for length in islice(each, count)) > MAX_CHARACTERS:
                raise ValueError(f"bits of a client are longer than {MAX_CHARACTERS // 4 * 3} bytes")

    def _total(self, name: str) -> int:
        numbers = self._numbers(name)
        if min(numbers, default=0) < 0:
            raise ValueError(f"the column {name} has a number below 0")
        return sum(numbers)


def join(parts: Sequence[BatchPart]) -> tuple[list[int], Columns, bytes]:
    """The clients, the columns and the payload of one batch: those that :func:`encode` makes of all their reports.

    Args:
        parts: at least one; no client is in several.
    """
    order = sorted((client, at, row) for at, part in enumerate(parts) for row, client in enumerate(part.ids))
    sums: dict[str, list[int]] = {}
    for name in _HISTOGRAMS:
        sums[f"{name}_bounds"], sums[f"{name}_counts"] = _sum(part.histogram(name) for part in parts)
    columns: Columns = []
    payload = bytearray()
    for column, (name, kind) in zip(BATCH_COLUMNS, COLUMNS, strict=True):
        if column.of == "together":
            _append(columns, payload, (name, kind), _little_endian(array(kind, sums[name])))
            continue
        found = [part.rows(column) for part in parts]
        lacks = not any(found)
        if column.topics and lacks:
            break
        # Without topics all counts are 0, without a lag all parts of the window are null.
        missing = _little_endian(array(kind, () if lacks else [NULL] * LAG_BINS if name == "lag_bins_us" else [0]))
        items = (missing if (rows := found[at]) is None else rows[row] for _, at, row in order)
        _append(columns, payload, (name, kind), b"".join(items))
    return [client for client, _, _ in order], columns, bytes(payload)


def _append(columns: Columns, payload: bytearray, column: tuple[str, Kind], items: bytes) -> None:
    name, kind = column
    columns.append((name, len(items) // _BYTES[kind]))
    payload += items
    payload += bytes(-len(payload) % _ALIGNMENT)


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
