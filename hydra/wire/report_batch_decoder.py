"""The columns of a relay's batch as arrays, where they are what a correct relay sends. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from mmap import mmap
from typing import Any, Final

import msgspec
import numpy as np

from hydra.model import BATCH_COLUMNS, LAG_BINS, LATENCY_HIGHEST_US
from hydra.model.reports import LARGEST
from hydra.wire.arrays import Bytes, Ints, offsets, sums
from hydra.wire.bits import MAX_CHARACTERS
from hydra.wire.buckets import BUCKETS
from hydra.wire.report_batch import COLUMNS, MAX_BATCH_BYTES, NULL

Arrays = Mapping[str, Any]
"""By the names of the columns."""

DTYPES: Final[Mapping[str, np.dtype[Any]]] = {"q": np.dtype("<i8"), "d": np.dtype("<f8"), "B": np.dtype("u1")}
"""Of a column's items, by the kind that ``COLUMNS`` says."""

RAGGED: Final = {column.name: column for column in BATCH_COLUMNS if column.lengths}
"""Columns with several items of each client or ledger."""
SUMS: Final = tuple(column.name for column in BATCH_COLUMNS if column.of == "together")
"""Columns of all clients together."""
OF_LEDGERS: Final = tuple(c.name for c in BATCH_COLUMNS if c.of == "ledger" and not c.lengths)
"""Columns with an item of each ledger."""
OF_CLIENTS: Final = tuple(
    c.name for c in BATCH_COLUMNS if c.of == "client" and not c.lengths and c.name != "lag_bins_us"
)
"""Columns with an item of each client."""

_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.int64)
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read(ids: Ints, columns: Sequence[tuple[str, int]], payload: bytes | mmap) -> Arrays:
    """The columns, as parts of the payload.

    Args:
        ids: the clients that the message names, at least one.
        columns: the names of its columns, each with the number of items.
        payload: the columns' items.

    Raises:
        ValueError: it is not what a correct relay sends.
    """
    if not len(ids) or bool((np.diff(ids) <= 0).any()):
        raise ValueError("ids do not rise")
    _require(ids, "ids", 0, 2**32 - 1)
    if len(payload) > MAX_BATCH_BYTES:
        raise ValueError(f"a payload of {len(payload)} bytes, above the limit of {MAX_BATCH_BYTES}")
    found = _split(columns, payload)
    _check_lengths(len(ids), found)
    _check_numbers(found)
    _check_ranges(found)
    _check_bits(found)
    for text in texts(found["system"], offsets(found["system_bytes"])):
        _check_system(text)
    for name in ("latency", "cohort_latency"):
        _check_histogram(name, found[f"{name}_bounds"], found[f"{name}_counts"])
    return found


def texts(joined: Bytes, at: Ints) -> Iterator[bytes]:
    """The parts of ``system`` that are not empty."""
    whole = joined.tobytes()
    return (whole[begin:end] for begin, end in pairwise(at.tolist()) if begin < end)


def _split(columns: Sequence[tuple[str, int]], payload: bytes | mmap) -> dict[str, Any]:
    if [name for name, _ in columns] != [name for name, _ in COLUMNS]:
        raise ValueError("the columns are not those of a batch, in their order")
    found: dict[str, Any] = {}
    at = 0
    for (name, kind), (_, count) in zip(COLUMNS, columns, strict=True):
        dtype = DTYPES[kind]
        end = at + count * dtype.itemsize
        if count < 0 or end > len(payload):
            raise ValueError(f"the column {name} has {count} items, which the payload does not hold")
        found[name] = np.frombuffer(payload, dtype, count, at)
        at = end + -end % 8
        if any(payload[end:at]):
            raise ValueError(f"behind the column {name} is something else than zeros")
    if at != len(payload):
        raise ValueError(f"a payload of {len(payload)} bytes for columns of {at}")
    return found


def _check_lengths(clients: int, found: Arrays) -> None:
    for name in OF_CLIENTS:
        _require_length(name, found, clients)
    for name in ("absent_counts", "ledger_counts", "system_bytes"):
        _require_counts(name, found)
    for name in OF_LEDGERS:
        _require_length(name, found, int(found["ledger_counts"].sum()))
    for name in ("range_counts", "bits_bytes"):
        _require_counts(name, found)
    for name, column in RAGGED.items():
        _require_length(name, found, column.width * int(found[column.lengths].sum()))
    if len(found["lag_bins_us"]) not in (0, LAG_BINS * clients):
        raise ValueError(f"the column lag_bins_us has {len(found['lag_bins_us'])} items for {clients} clients")


def _require_length(name: str, found: Arrays, length: int) -> None:
    if len(found[name]) != length:
        raise ValueError(f"the column {name} has {len(found[name])} items, not {length}")


def _require_counts(name: str, found: Arrays) -> None:
    """Refuses what cannot be counts of items, before they are added up."""
    _require(found[name], name, 0, MAX_BATCH_BYTES)


def _require(values: Ints, name: str, least: int = 0, most: int = LARGEST) -> None:
    if len(values) and not least <= int(values.min()) <= int(values.max()) <= most:
        raise ValueError(f"the column {name} has a number that is not {least} to {most}")


def _check_numbers(found: Arrays) -> None:
    """Refuses numbers that cannot be, as ``hydra/wire/report_validation.py`` does in a single report."""
    ledgers = max(int(found["ledger_counts"].max()), 1)
    for column in BATCH_COLUMNS:
        values, name = found[column.name], column.name
        if column.items == "Floats" and not (bool(np.isfinite(values).all()) and bool((values >= 0).all())):
            raise ValueError(f"the column {name} has a number that is not 0 or above")
        if column.items == "Ints" and column.of != "together" and name != "lag_bins_us":
            # The sums over a client's ledgers have to fit as well.
            _require(values, name, column.least, column.highest // ledgers if column.added else column.highest)
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
    """What members of a group received has to agree with their counts."""
    bits, length = found["bits"], found["bits_bytes"]
    if not len(bits):
        return
    told = length > 0
    if bool((bits[offsets(length)[1:][told] - 1] == 0).any()):
        raise ValueError("bits end in zeros")
    ones = sums(_ONES[bits], length)[told]
    if not np.array_equal(ones, (found["received"] + found["extra"])[told]):
        raise ValueError("bits hold another number of sequences than was received")
    if int(sums(-(-length // 3) * 4, found["ledger_counts"]).max()) > MAX_CHARACTERS:
        raise ValueError(f"bits of a client are longer than {MAX_CHARACTERS // 4 * 3} bytes")


def _check_system(text: bytes) -> None:
    try:
        _object.decode(text)
    except (msgspec.MsgspecError, RecursionError) as e:
        raise ValueError(f"system: {e}") from None


def _check_histogram(name: str, bounds: Ints, counts: Ints) -> None:
    if len(counts) % 2 or len(bounds) != (2 if len(counts) else 0):
        raise ValueError(f"{name} is no histogram")
    indexes = counts[0::2]
    _require(bounds, f"{name}_bounds", -LATENCY_HIGHEST_US)
    _require(indexes, f"{name}_counts", -BUCKETS, BUCKETS - 1)
    _require(counts[1::2], f"{name}_counts", 1)
    if bool((np.diff(indexes) <= 0).any()):
        raise ValueError(f"{name} has indexes that do not rise")
