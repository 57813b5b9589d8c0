"""One client's row of one step, compact: values that few clients have go into one JSON column.

Subscribers' rows come from :mod:`hydra.store.subscriber_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hydra.measure.latency import mean_us
from hydra.measure.observation import Observation
from hydra.measure.rates import MEGABYTE, SECOND_NS
from hydra.measure.step_subscribers import asked_of
from hydra.model import PERCENTILES, ProcessUsage, PublisherReport
from hydra.store.subscriber_rows import AT_ONCE, MOST_RANGES, STORED, compact, subscriber_rows
from hydra.wire.buckets import percentiles_us

COLUMNS: Final = (
    *("epoch", "client", "role", "state", "agent", "cohort"),
    *STORED,
    *("missing_ranges", "truncated", "more"),
)
"""Those of the table."""

_MIDDLE: Final = {sql: column.percentile for sql, column in STORED.items() if column.percentile}
_COUNTED: Final = [sql for sql, column in STORED.items() if column.added]
_TOLD: Final = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "p99_9_ms": "p999"}


def client_rows(epoch: int, o: Observation) -> Iterator[tuple[Any, ...]]:
    """Rows in the order of ``COLUMNS``, one for every client that was asked."""
    start_ns = o.window_ns[0]
    for client in sorted(o.publishers):
        publisher = o.publisher_reports.get(client)
        head = (epoch, client, "publisher", "ok" if publisher else "silent", o.agents.get(client, ""), 0)
        yield head + (_publisher(publisher, start_ns) if publisher else _nothing())
    yield from _subscribers(epoch, o)


def _subscribers(epoch: int, o: Observation) -> Iterator[tuple[Any, ...]]:
    asked = asked_of(o.subscribers, o.subscriber_reports, o.cohort, o.dead, o.silent)
    bodies = subscriber_rows(asked.reports, o.window_ns[0], o.reading_ns)
    for first in range(0, len(asked.ids), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        flags = (each[part].tolist() for each in (asked.cohort, asked.dead, asked.silent, asked.reported))
        for client, cohort, dead, silent, reported in zip(asked.ids[part].tolist(), *flags, strict=True):
            state = "dead" if dead else "ok" if reported and not silent else "silent"
            head = (epoch, client, "subscriber", state, o.agents.get(client, ""), int(cohort))
            yield head + (next(bodies) if reported else _nothing(o.last_words.get(client)))


def _nothing(last_word: int | None = None) -> tuple[Any, ...]:
    """Of a client without a report; only ``truncated`` is never NULL."""
    return (*[None] * len(STORED), None, 0, compact({"last_word": last_word} if last_word else None))


def client_figures(rows: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """What load tools print of a producer or a consumer, by client.

    Args:
        rows: of a step, from ``RunStore.clients``.

    Returns of a publisher ``records`` (acknowledged), ``records_per_sec``, ``mb_per_sec``; and where servers
    acknowledge ``avg_latency_ms``, ``max_latency_ms``, ``p50_ms``, ``p95_ms``, ``p99_ms`` and ``p99_9_ms`` from the
    send to the acknowledgement. Of a subscriber ``messages``, ``mb_consumed``, ``mb_per_sec``, ``records_per_sec``
    (from the begin to the last batch), ``rebalance_ms``, and ``fetch_ms``, ``fetch_mb_per_sec``,
    ``fetch_records_per_sec`` without the time of rebalances in a stored step. (In any other a group is complete before
    the begin.) A megabyte has 2²⁰ bytes.
    """
    return {row["client"]: row["more"].get("figures", {}) for row in rows}


def _of_publisher(r: PublisherReport) -> dict[str, float]:
    seconds = (r.last_ns - r.first_ns) / SECOND_NS
    megabytes = r.bytes * r.acknowledged / r.sent / MEGABYTE if r.sent else 0.0
    figures: dict[str, float] = {
        "records": r.acknowledged,
        "records_per_sec": r.acknowledged / seconds if seconds > 0 else 0.0,
        "mb_per_sec": megabytes / seconds if seconds > 0 else 0.0,
    }
    mean = mean_us(r.ack_latency)
    if mean is not None:
        percentiles = percentiles_us(r.ack_latency, map(PERCENTILES.__getitem__, _TOLD.values()))
        figures["avg_latency_ms"] = mean / 1000
        figures["max_latency_ms"] = r.ack_latency.max_us / 1000
        figures |= {name: us / 1000 for name, us in zip(_TOLD, percentiles, strict=True) if us is not None}
    return figures


def _publisher(r: PublisherReport, start_ns: int) -> tuple[Any, ...]:
    more = {k: v for k in ("blocked_ns", "stopped_early", "unacknowledged_joined") if (v := getattr(r, k))}
    more |= r.system or {}
    more["figures"] = _of_publisher(r) | more.get("figures", {})
    # What only a subscriber counts is 0 here; what it alone can have, it alone has.
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
