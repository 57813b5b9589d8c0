"""Reports of many subscribers as a table of arrays, which the controller makes from relays' batches and checks. Pure.

A column is an array with the values of all subscribers; there is no Python object for a single subscriber.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from mmap import mmap
from typing import Any, Final

import msgspec
import numpy as np

from hydra.model import (
    LAG_BINS,
    LATENCY_HIGHEST_US,
    Histogram,
    HotTopicCounts,
    LedgerCounts,
    ProcessUsage,
    SubscriberReport,
)
from hydra.model.batch_columns import BATCH_COLUMNS
from hydra.model.reports import LARGEST
from hydra.wire.arrays import Bytes, Flags, Ints, indices_of_runs, offsets, sums
from hydra.wire.buckets import BUCKETS
from hydra.wire.compact_encoding import MAX_CHARACTERS
from hydra.wire.histogram import merge
from hydra.wire.report_batch import (
    COLUMNS,
    MAX_BATCH_BYTES,
    NULL,
    OF_TOPICS,
    check_lengths,
    check_system,
    encode,
    spans,
)

Arrays = Mapping[str, Any]
"""Arrays by the names of their columns."""

DTYPES: Final[Mapping[str, np.dtype[Any]]] = {"q": np.dtype("<i8"), "d": np.dtype("<f8"), "B": np.dtype("u1")}
"""Types of a column's items, by the kind in ``COLUMNS``."""

RAGGED: Final = {column.name: column for column in BATCH_COLUMNS if column.lengths}
"""Columns with a variable number of items for each client or ledger."""
SUMS: Final = tuple(column.name for column in BATCH_COLUMNS if column.of == "together")
"""Columns of all clients together."""
OF_LEDGERS: Final = tuple(c.name for c in BATCH_COLUMNS if c.of == "ledger" and not c.lengths)
"""Columns with one item for each ledger."""
OF_CLIENTS: Final = tuple(
    c.name for c in BATCH_COLUMNS if c.of == "client" and not c.lengths and c.name != "lag_bins_us"
)
"""Columns with one item for each client."""

_HISTOGRAMS: Final = ("latency", "cohort_latency", "hot_latency")
_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.int64)


def decode_columns(ids: Ints, columns: Sequence[tuple[str, int]], payload: bytes | mmap) -> Arrays:
    """The columns; the arrays are parts of the payload.

    Args:
        ids: the clients that the message names, at least one.
        columns: the names of its columns, each with the number of items.
        payload: the columns' items.

    Raises:
        ValueError: a correct relay sends no such batch.
    """
    if not len(ids) or bool((np.diff(ids) <= 0).any()):
        raise ValueError("ids do not rise")
    _require(ids, "ids", 0, 2**32 - 1)
    found = _split(columns, payload)
    if len(columns) < len(COLUMNS):
        found |= {name: np.zeros(0 if name in SUMS else len(ids), np.int64) for name in OF_TOPICS}
    check_lengths(len(ids), columns, lambda name: _total(found[name], name))
    _check_numbers(found)
    _check_ranges(found)
    _check_bits(found)
    for text in texts(found["system"], offsets(found["system_bytes"])):
        check_system(text)
    for name in _HISTOGRAMS:
        _check_histogram(name, found[f"{name}_bounds"], found[f"{name}_counts"])
    return found


def texts(joined: Bytes, at: Ints) -> Iterator[bytes]:
    """The parts of ``system`` that are not empty."""
    whole = joined.tobytes()
    return (whole[begin:end] for begin, end in pairwise(at.tolist()) if begin < end)


def _split(columns: Sequence[tuple[str, int]], payload: bytes | mmap) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (name, kind), (begin, end) in zip(COLUMNS, spans(columns, len(payload)), strict=False):
        dtype = DTYPES[kind]
        found[name] = np.frombuffer(payload, dtype, (end - begin) // dtype.itemsize, begin)
        if any(payload[end : end + -end % 8]):
            raise ValueError(f"behind the column {name} is something else than zeros")
    return found


def _total(lengths: Ints, name: str) -> int:
    """The sum of a column of lengths, after a check that they can be such."""
    _require(lengths, name, 0, MAX_BATCH_BYTES)
    return int(lengths.sum())


def _require(values: Ints, name: str, least: int = 0, most: int = LARGEST) -> None:
    if len(values) and not least <= int(values.min()) <= int(values.max()) <= most:
        raise ValueError(f"the column {name} has a number that is not {least} to {most}")


def _check_numbers(found: Arrays) -> None:
    """Rejects impossible numbers."""
    counts = found["ledger_counts"]
    shares = np.repeat(LARGEST // np.maximum(counts, 1), counts)
    for column in BATCH_COLUMNS:
        values, name = found[column.name], column.name
        if column.items == "fraction" and not (bool(np.isfinite(values).all()) and bool((values >= 0).all())):
            raise ValueError(f"the column {name} has a number that is not 0 or above")
        if column.items == "whole" and column.of != "together" and name != "lag_bins_us":
            _require(values, name, column.least, column.most)
        if column.added and bool((values > shares).any()):
            raise ValueError(f"the column {name} has a number whose sum over a client's ledgers may not fit")
    lags = found["lag_bins_us"]
    if bool((lags[lags != NULL] < 0).any()):
        raise ValueError("the column lag_bins_us has a number that is neither null nor 0 or above")
    if bool((found["absent"][0::2] > found["absent"][1::2]).any()):
        raise ValueError("absent has an interval that ends before it begins")


def _check_ranges(found: Arrays) -> None:
    low, high = found["ranges"][0::2], found["ranges"][1::2]
    rises = low[1:] > high[:-1]
    begins = offsets(found["range_counts"])[1:-1]
    rises[begins[(begins > 0) & (begins < len(low))] - 1] = True
    if bool((low > high).any()) or not bool(rises.all()):
        raise ValueError("the ranges of a ledger do not rise")


def _check_bits(found: Arrays) -> None:
    """Checks the bitmaps of members of a consumer group against their counts."""
    bits, length = found["bits"], found["bits_bytes"]
    if not len(bits):
        return
    has_bits = length > 0
    if bool((bits[offsets(length)[1:][has_bits] - 1] == 0).any()):
        raise ValueError("bits end in zeros")
    ones = sums(_ONES[bits], length)[has_bits]
    if not np.array_equal(ones, (found["received"] + found["extra"])[has_bits]):
        raise ValueError("bits hold another number of sequences than was received")
    if int(sums(-(-length // 3) * 4, found["ledger_counts"]).max()) > MAX_CHARACTERS:
        raise ValueError(f"bits of a client are longer than {MAX_CHARACTERS // 4 * 3} bytes")


def _check_histogram(name: str, bounds: Ints, counts: Ints) -> None:
    indexes = counts[0::2]
    _require(bounds, f"{name}_bounds", -LATENCY_HIGHEST_US)
    _require(indexes, f"{name}_counts", -BUCKETS, BUCKETS - 1)
    _require(counts[1::2], f"{name}_counts", 1)
    if bool((np.diff(indexes) <= 0).any()):
        raise ValueError(f"{name} has indexes that do not rise")


_GROUP: Final = 100
"""Clients in a batch that :func:`table_of` makes: the reports of this many fit into one."""
_PARTS: Final = {"usage.": ProcessUsage, "hot.": HotTopicCounts}
"""The parts of a report that are not ledgers, by the beginning of the names of their attributes."""
_NUMBERS: Final = {
    of: [c for c in BATCH_COLUMNS if c.of == of and c.noun and not c.lengths] for of in ("client", "ledger")
}


class SubscriberTable:
    """The reports of subscribers for one epoch; row i belongs to the client ``ids[i]``.

    The attributes are ``ids`` and the columns of a batch (``BATCH_COLUMNS``); they are read-only. If a client has
    several items, they stand in one array, client after client: ``absent`` (pairs; ``absent_counts`` for each client),
    the ledgers (``publisher`` … ``truncated``; ``ledger_counts`` for each client), for each ledger ``ranges`` (pairs;
    ``range_counts``) and ``bits`` (``bits_bytes``), and ``system`` (JSON; ``system_bytes`` for each client).
    ``lag_bins_us`` has 20 numbers for each client, or none at all.

    The histograms are sums over the batches from which the table was made; they do not change when rows are taken.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Arrays) -> None:
        self._columns = columns

    def __getattr__(self, name: str) -> Ints:
        columns = {} if name.startswith("_") else self._columns
        if name not in columns:
            raise AttributeError(f"a table of subscribers has no column {name}")
        found: Ints = columns[name]
        return found

    def changed(self, **columns: Any) -> SubscriberTable:
        """The table with other arrays in these columns."""
        unknown = columns.keys() - self._columns.keys()
        if unknown:
            raise AttributeError(f"a table of subscribers has no column {min(unknown)}")
        return SubscriberTable({**self._columns, **columns})

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SubscriberTable):
            return NotImplemented
        return all(np.array_equal(each, getattr(other, name)) for name, each in self._columns.items())

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    @property
    def latency(self) -> Histogram:
        """The summed latency of the clients outside the cohort."""
        return _histogram(self.latency_bounds, self.latency_counts)

    @property
    def cohort_latency(self) -> Histogram:
        """The summed latency of the clients in the cohort."""
        return _histogram(self.cohort_latency_bounds, self.cohort_latency_counts)

    @property
    def hot_latency(self) -> Histogram:
        """The summed latency of the hot topics of the clients outside the cohort."""
        return _histogram(self.hot_latency_bounds, self.hot_latency_counts)

    @property
    def ledger_offsets(self) -> Ints:
        """The index where each client's ledgers begin, and the end of the last: one number more than clients."""
        return offsets(self.ledger_counts)

    @property
    def range_offsets(self) -> Ints:
        """The index where each ledger's ranges begin, and the end of the last, counted in ranges."""
        return offsets(self.range_counts)

    @property
    def bits_offsets(self) -> Ints:
        """The index where each ledger's bits begin, and the end of the last."""
        return offsets(self.bits_bytes)

    @property
    def absent_offsets(self) -> Ints:
        """The index where each client's absent intervals begin, and the end of the last, counted in intervals."""
        return offsets(self.absent_counts)

    @property
    def system_offsets(self) -> Ints:
        """The index where each client's text of ``system`` begins, and the end of the last."""
        return offsets(self.system_bytes)

    def of_clients(self, of_ledgers: Ints) -> Ints:
        """The sum of a ledger column for each client, over the ledgers of the client."""
        if len(of_ledgers) == len(self.ids) == int(np.count_nonzero(self.ledger_counts == 1)):
            return of_ledgers
        return sums(of_ledgers, self.ledger_counts)

    def take(self, rows: Ints | Flags) -> SubscriberTable:
        """The table of these rows, given by index or by a mask; the histograms stay those of all rows."""
        at: Ints = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        if len(at) == len(self.ids) and bool((at == np.arange(len(at))).all()):
            return self
        ledgers = indices_of_runs(self.ledger_offsets, at)
        of = {"client": at, "ledger": ledgers}
        found: dict[str, Any] = {
            name: getattr(self, name)
            .reshape(-1, c.width)[indices_of_runs(offsets(getattr(self, c.lengths)), of[c.of])]
            .ravel()
            for name, c in RAGGED.items()
        }
        lags = self.lag_bins_us
        found["lag_bins_us"] = lags.reshape(-1, LAG_BINS)[at].ravel() if len(lags) else lags
        found |= {name: getattr(self, name)[ledgers] for name in OF_LEDGERS}
        found |= {name: getattr(self, name)[at] for name in ("ids", *OF_CLIENTS)}
        return self.changed(**found)

    def parts(self, most: int) -> Iterator[SubscriberTable]:
        """Consecutive tables of ``most`` rows (the last may have fewer); their arrays are parts of this table's."""
        ledgers = self.ledger_offsets
        begins = {name: column.width * offsets(getattr(self, column.lengths)) for name, column in RAGGED.items()}
        for first in range(0, len(self), most):
            rows = [first, min(first + most, len(self))]
            of: dict[str, Any] = {"client": rows, "ledger": ledgers[rows]}
            slices: dict[str, Any] = {
                **dict.fromkeys(("ids", *OF_CLIENTS), rows),
                **dict.fromkeys(OF_LEDGERS, ledgers[rows]),
                "lag_bins_us": [LAG_BINS * row for row in rows],
                **{name: begins[name][of[column.of]] for name, column in RAGGED.items()},
            }
            yield self.changed(**{name: getattr(self, name)[slice(*at)] for name, at in slices.items()})

    def systems(self) -> Iterator[dict[str, Any]]:
        """The ``system`` objects of the clients that have one, in the order of the rows."""
        return map(msgspec.json.decode, texts(self._columns["system"], self.system_offsets))

    def ledgers(self, row: int) -> list[LedgerCounts]:
        """One client's ledgers, one for each of its publishers."""
        first, end = self.ledger_offsets[row : row + 2].tolist()
        ranges, bits = self.range_offsets, self.bits_offsets
        return [
            LedgerCounts(
                missing_ranges=[(a, b) for a, b in self.ranges.reshape(-1, 2)[ranges[k] : ranges[k + 1]].tolist()],
                received_bits=b64encode(self.bits[bits[k] : bits[k + 1]].tobytes()).decode(),
                **self._numbers("ledger", k),
            )
            for k in range(first, end)
        ]

    def report(self, client: int) -> SubscriberReport:
        """The report of one client, with empty histograms: a table has only sums of histograms.

        Raises:
            KeyError: the client has no row.
        """
        row = int(np.searchsorted(self.ids, client))
        if row == len(self.ids) or self.ids[row] != client:
            raise KeyError(client)
        lags = self.lag_bins_us[LAG_BINS * row : LAG_BINS * (row + 1)].tolist()
        absent = self.absent_offsets[row : row + 2]
        system = self.system[slice(*self.system_offsets[row : row + 2])].tobytes()
        numbers = self._numbers("client", row)
        usage, hot = (
            part(**{noun.removeprefix(within): numbers.pop(noun) for noun in list(numbers) if noun.startswith(within)})
            for within, part in _PARTS.items()
        )
        return SubscriberReport(
            ledgers=self.ledgers(row),
            latency=Histogram(),
            usage=usage,
            absent=[(a, b) for a, b in self.absent.reshape(-1, 2)[slice(*absent)].tolist()],
            lag_bins_us=[] if all(x == NULL for x in lags) else [None if x == NULL else x for x in lags],
            system=msgspec.json.decode(system) if system else None,
            hot=hot if self.hot_expected.any() else None,
            **numbers,
        )

    def _numbers(self, of: str, at: int) -> dict[str, Any]:
        """The numbers of one client or ledger, by the names of their attributes."""
        found = ((column, self._columns[column.name][at].item()) for column in _NUMBERS[of])
        return {column.noun: column.choices[x] if column.choices else x for column, x in found}


def decode(ids: Iterable[int], columns: Sequence[tuple[str, int]], payload: bytes | mmap) -> SubscriberTable:
    """The table of one batch; its arrays are parts of the payload.

    Args:
        ids: the clients that the message names, at least one.
        columns: the names of its columns, each with the number of items.
        payload: the columns' items.

    Raises:
        ValueError: a correct relay sends no such batch.
    """
    clients = np.fromiter(ids, np.int64)
    return SubscriberTable({"ids": clients, **decode_columns(clients, columns, payload)})


def table_of(reports: Mapping[int, SubscriberReport], cohort: Container[int] = frozenset()) -> SubscriberTable:
    """The table of these clients' reports, the same as from relays' batches; errors as in :func:`decode`."""
    ids = sorted(reports)
    groups = [ids[first : first + _GROUP] for first in range(0, len(ids), _GROUP)]
    return concatenate(decode(group, *encode([(c, reports[c]) for c in group], cohort)) for group in groups)


def concatenate(tables: Iterable[SubscriberTable]) -> SubscriberTable:
    """One table of all rows, in the order of their ids.

    Raises:
        ValueError: a client is in several of the tables.
    """
    parts = sorted((t for t in tables if len(t)), key=lambda t: int(t.ids[0]))
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    lags = any(len(t.lag_bins_us) for t in parts)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(t, name) for t in parts]) for name in ("ids", *OF_CLIENTS, *OF_LEDGERS, *RAGGED)
    }
    columns["lag_bins_us"] = np.concatenate(
        [t.lag_bins_us if len(t.lag_bins_us) or not lags else np.full(LAG_BINS * len(t), NULL, np.int64) for t in parts]
    )
    for name in _HISTOGRAMS:
        together = merge(getattr(t, name) for t in parts)
        columns[f"{name}_counts"] = np.array(together.counts, np.int64)
        columns[f"{name}_bounds"] = np.array([together.min_us, together.max_us] if together.counts else [], np.int64)
    table = SubscriberTable(columns)
    steps = np.diff(table.ids)
    if not bool((steps > 0).all()):
        table = table.take(np.argsort(table.ids, kind="stable"))
        if not bool((np.diff(table.ids) > 0).all()):
            raise ValueError("a client is in several tables")
    return table


def _histogram(bounds: Ints, counts: Ints) -> Histogram:
    return Histogram(counts.tolist(), *bounds.tolist()) if len(counts) else Histogram()


EMPTY: Final = SubscriberTable({name: np.zeros(0, DTYPES[kind]) for name, kind in (("ids", "q"), *COLUMNS)})
"""A table without clients."""
