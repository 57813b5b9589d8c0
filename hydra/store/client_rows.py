"""The rows of a step's clients in the database; those of subscribers are made from a table of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from hydra.measure.latency import mean_us
from hydra.measure.loss import step_subscribers
from hydra.measure.observation import Observation
from hydra.measure.rates import MEBIBYTE, SECOND_NS
from hydra.model import DRAIN_ENDS, LAG_BINS, PERCENTILES, ProcessUsage, PublisherReport
from hydra.model.batch_columns import BATCH_COLUMNS, BatchColumn
from hydra.wire.arrays import Flags, Floats, Ints, item_indices
from hydra.wire.buckets import percentiles_us
from hydra.wire.report_batch import NULL
from hydra.wire.subscriber_table import SubscriberTable

MOST_RANGES: Final = 32
"""The maximum number of stored ranges of a client; with all ranges of reports, a long lossy run would pass 100 MB."""
AT_ONCE: Final = 4096
"""The number of subscribers whose rows are made at once; more would need more Python objects at a time."""
STORED: Final[Mapping[str, BatchColumn]] = {
    column.sql: column for of in ("ledger", "client") for column in BATCH_COLUMNS if column.of == of and column.sql
}
"""The columns of the table of clients that hold a field of a report; fields of ledgers are added up."""
_json = msgspec.json.Encoder()


def compact(value: object) -> str | None:
    """Compact JSON; None (NULL) for an empty value."""
    return _json.encode(value).decode() if value else None


def subscriber_rows(reports: SubscriberTable, start_ns: int, reading_ns: int | None) -> Iterator[tuple[Any, ...]]:
    """The columns ``STORED`` and the three after them, for each subscriber with a report, in the order of ids.

    Args:
        reports: the subscribers' reports.
        start_ns: start of the step's window.
        reading_ns: the time of the command to read the stored messages; None: they read while messages were sent.
    """
    for part in reports.parts(AT_ONCE):
        cut = part.of_clients(((part.truncated > 0) | (part.range_counts > MOST_RANGES)).astype(np.int64)) > 0
        texts = _ranges(part), cut.astype(np.int64).tolist(), _more(part, start_ns, reading_ns)
        yield from zip(*_numbers(part, start_ns), *texts, strict=True)


def _numbers(r: SubscriberTable, start_ns: int) -> Iterator[list[Any]]:
    """The values of the columns ``STORED``, a list for each column."""
    for column in STORED.values():
        values = getattr(r, column.name)
        if column.of == "ledger":
            values = r.of_clients(values)
        if column.known:
            yield _known(values - start_ns if column.moment else values, getattr(r, column.known) > 0)
        else:
            yield values.tolist()


def _known(values: Ints, known: Flags) -> list[Any]:
    """The numbers as (nested) lists, with None for unknown numbers."""
    found: np.ndarray[Any, Any] = values
    if not known.all():
        found = values.astype(object)
        found[~known] = None
    numbers: list[Any] = found.tolist()
    return numbers


def _ranges(r: SubscriberTable) -> list[str | None]:
    """For each subscriber, JSON of the first missing ranges by publisher id; None if there are none."""
    found: list[str | None] = [None] * len(r)
    listed = np.minimum(r.range_counts, MOST_RANGES)
    texts = iter(_pairs(r.ranges.reshape(-1, 2)[item_indices(r.range_offsets[:-1], listed)], listed))
    publishers, ledgers, some = r.publisher.tolist(), r.ledger_offsets.tolist(), (listed > 0).tolist()
    for row in np.flatnonzero(r.of_clients(listed)).tolist():
        of_client = range(ledgers[row], ledgers[row + 1])
        found[row] = "{" + ",".join(f'"{publishers[k]}":[[{next(texts)}]]' for k in of_client if some[k]) + "}"
    return found


def _pairs(ranges: Ints, counts: Ints) -> list[str]:
    """Groups of ``counts`` ranges, each as JSON without outer brackets, ``1,3],[9,9``; empty groups are left out.

    One flat list with all ranges is encoded at once; a list for each range would take three times as long.
    """
    # The element after each range: null between two ranges of a group, true after the last range of a group.
    behind = np.full(len(ranges), None, object)
    behind[np.cumsum(counts)[counts > 0] - 1] = True
    flat: list[object] = [None] * (3 * len(ranges))
    flat[0::3], flat[1::3], flat[2::3] = ranges[:, 0].tolist(), ranges[:, 1].tolist(), behind.tolist()
    text = _json.encode(flat).decode()
    return text.removeprefix("[").removesuffix(",true]").replace(",null,", "],[").split(",true,")


def _more(r: SubscriberTable, start_ns: int, reading_ns: int | None) -> list[str | None]:
    """JSON of the facts that only few subscribers have, and of the figures that load tools print."""
    systems = dict(zip(np.flatnonzero(r.system_bytes).tolist(), r.systems(), strict=True))
    rebalance_ms = np.zeros(len(r))
    for row, system in systems.items():
        rebalance_ms[row] = system.get("rebalance_ms") or 0.0
    lags = r.lag_bins_us.reshape(-1, LAG_BINS)
    ledgers, absent = r.ledger_offsets.tolist(), r.absent_offsets.tolist()
    publishers, received = r.publisher.tolist(), r.received.tolist()
    intervals = r.absent.reshape(-1, 2).tolist()
    found: list[str | None] = []
    columns = r.reconnects.tolist(), r.drain.tolist(), r.felt.tolist()
    each = _of_subscribers(r, start_ns if reading_ns is None else reading_ns, rebalance_ms, reading_ns is not None)
    lagged = (lags != NULL).any(axis=1).tolist() if len(lags) else [False] * len(r)
    lag_bins_us = _known(lags, lags != NULL)
    for row, (reconnects, drain, felt, figures) in enumerate(zip(*columns, each, strict=True)):
        more: dict[str, object] = {}
        if absent[row] < absent[row + 1]:
            more["absent"] = intervals[absent[row] : absent[row + 1]]
        if reconnects:
            more["reconnects"] = reconnects
        if lagged[row]:
            more["lag_bins_us"] = lag_bins_us[row]
        system = systems.get(row, {})
        more |= system
        more["figures"] = figures | system.get("figures", {})
        if DRAIN_ENDS[drain] != "complete":
            more["drain"] = DRAIN_ENDS[drain]
        if not felt:
            more["felt"] = False
        if ledgers[row + 1] - ledgers[row] > 1:
            # The columns are sums over publishers, which is enough if there is one publisher.
            of_client = slice(ledgers[row], ledgers[row + 1])
            more["received"] = dict(zip(publishers[of_client], received[of_client], strict=True))
        found.append(compact(more))
    return found


def _of_subscribers(
    r: SubscriberTable, since_ns: int, rebalance_ms: Floats, stored: bool
) -> Iterator[dict[str, float]]:
    """The figures of :func:`hydra.store.client_rows.client_figures` for each subscriber.

    Args:
        r: the subscribers' reports.
        since_ns: when they began to read.
        rebalance_ms: how long each had no partition to read.
        stored: whether the time since ``since_ns`` includes ``rebalance_ms``.
    """
    messages = r.of_clients(r.received)
    read = r.of_clients(r.received + r.extra + r.duplicates)
    megabytes = np.where(read > 0, r.bytes / MEBIBYTE * messages / np.maximum(read, 1), 0.0)
    total_ms = np.maximum(r.last_ns - since_ns, 0) / 1e6
    fetch_ms = np.maximum(total_ms - rebalance_ms, 0.0) if stored else total_ms
    columns = {
        "messages": messages,
        "mb_consumed": megabytes,
        "mb_per_sec": _per_second(megabytes, total_ms),
        "records_per_sec": _per_second(messages, total_ms),
        "rebalance_ms": rebalance_ms,
        "fetch_ms": fetch_ms,
        "fetch_mb_per_sec": _per_second(megabytes, fetch_ms),
        "fetch_records_per_sec": _per_second(messages, fetch_ms),
    }
    return (dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True))


def _per_second(amounts: Ints | Floats, took_ms: Floats) -> Floats:
    """Amounts per second; 0 if the time is 0."""
    some = took_ms > 0
    found: Floats = np.where(some, amounts * 1000 / np.where(some, took_ms, 1.0), 0.0)
    return found


COLUMNS: Final = (
    *("epoch", "client", "role", "state", "agent", "cohort"),
    *STORED,
    *("missing_ranges", "truncated", "more"),
)
"""The columns of the table of clients."""

_MIDDLE: Final = {sql: column.percentile for sql, column in STORED.items() if column.percentile}
_COUNTED: Final = [sql for sql, column in STORED.items() if column.added]
_ACK_PERCENTILES: Final = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "p99_9_ms": "p999"}


def client_rows(epoch: int, o: Observation) -> Iterator[tuple[Any, ...]]:
    """A row for every client of the step, with the values of ``COLUMNS``."""
    start_ns = o.window_ns[0]
    for client in sorted(o.publishers):
        publisher = o.publisher_reports.get(client)
        head = (epoch, client, "publisher", "ok" if publisher else "silent", o.agents.get(client, ""), 0)
        yield head + (_publisher(publisher, start_ns) if publisher else _nothing())
    yield from _subscribers(epoch, o)


def _subscribers(epoch: int, o: Observation) -> Iterator[tuple[Any, ...]]:
    subscribers = step_subscribers(o.subscribers, o.subscriber_reports, o.cohort, o.dead, o.silent)
    bodies = subscriber_rows(subscribers.reports, o.window_ns[0], o.reading_ns)
    for first in range(0, len(subscribers.ids), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        flags = (
            each[part].tolist()
            for each in (subscribers.cohort, subscribers.dead, subscribers.silent, subscribers.reported)
        )
        for client, cohort, dead, silent, reported in zip(subscribers.ids[part].tolist(), *flags, strict=True):
            state = "dead" if dead else "ok" if reported and not silent else "silent"
            head = (epoch, client, "subscriber", state, o.agents.get(client, ""), int(cohort))
            yield head + (next(bodies) if reported else _nothing(o.last_words.get(client)))


def _nothing(last_word: int | None = None) -> tuple[Any, ...]:
    """The values for a client without a report; only ``truncated`` is never NULL."""
    return (*[None] * len(STORED), None, 0, compact({"last_word": last_word} if last_word else None))


def client_figures(rows: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """The figures that load tools print for a producer or a consumer, by client.

    Args:
        rows: the rows of a step, from ``RunStore.clients``.

    Returns for a publisher ``records`` (acknowledged), ``records_per_sec``, ``mb_per_sec``, and if servers
    acknowledge ``avg_latency_ms``, ``max_latency_ms``, ``p50_ms``, ``p95_ms``, ``p99_ms`` and ``p99_9_ms`` from the
    send to the acknowledgement. For a subscriber it returns ``messages``, ``mb_consumed``, ``mb_per_sec``,
    ``records_per_sec`` (from the begin to the last batch), ``rebalance_ms``, and ``fetch_ms``, ``fetch_mb_per_sec``,
    ``fetch_records_per_sec`` without the time of rebalances in a stored step. (In any other step a group is complete
    before the begin.) A MB has 2²⁰ bytes, as in what these tools print.
    """
    return {row["client"]: row["more"].get("figures", {}) for row in rows}


def _of_publisher(r: PublisherReport) -> dict[str, float]:
    seconds = (r.last_ns - r.first_ns) / SECOND_NS
    megabytes = r.bytes * r.acknowledged / r.sent / MEBIBYTE if r.sent else 0.0
    figures: dict[str, float] = {
        "records": r.acknowledged,
        "records_per_sec": r.acknowledged / seconds if seconds > 0 else 0.0,
        "mb_per_sec": megabytes / seconds if seconds > 0 else 0.0,
    }
    mean = mean_us(r.ack_latency)
    if mean is not None:
        percentiles = percentiles_us(r.ack_latency, map(PERCENTILES.__getitem__, _ACK_PERCENTILES.values()))
        figures["avg_latency_ms"] = mean / 1000
        figures["max_latency_ms"] = r.ack_latency.max_us / 1000
        figures |= {name: us / 1000 for name, us in zip(_ACK_PERCENTILES, percentiles, strict=True) if us is not None}
    return figures


def _publisher(r: PublisherReport, start_ns: int) -> tuple[Any, ...]:
    more = {k: v for k in ("blocked_ns", "stopped_early", "unacknowledged_joined") if (v := getattr(r, k))}
    more |= r.system or {}
    more["figures"] = _of_publisher(r) | more.get("figures", {})
    # Columns that only subscribers count are 0 for a publisher; other columns of subscribers are NULL.
    row = dict.fromkeys((*_COUNTED, "stale", "undrained"), 0) | {
        "messages": r.sent,
        "in_window": r.acknowledged,
        "missing": r.failed,
        "first_ns": r.first_ns - start_ns if r.first_ns else None,
        "last_ns": r.last_ns - start_ns if r.last_ns else None,
        "bytes": r.bytes,
        **dict(zip(_MIDDLE, percentiles_us(r.lag, _MIDDLE.values()), strict=True)),
        "max_us": r.lag.max_us,
        **{name: getattr(r.usage, name) for name in ProcessUsage.__slots__},
    }
    ranges = compact({"unacknowledged": r.unacknowledged[:MOST_RANGES]} if r.unacknowledged else None)
    return (*map(row.get, STORED), ranges, int(len(r.unacknowledged) > MOST_RANGES), compact(more))
