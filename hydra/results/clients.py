"""One client's row of one step, compact: values that few clients have go into one JSON column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hydra.measure.figures import Observation
from hydra.measure.latency import mean_us, percentiles_us
from hydra.measure.rates import MEGABYTE, SECOND_NS
from hydra.model import PublisherReport, SubscriberReport

COLUMNS: Final = (
    "epoch", "client", "role", "state", "agent", "cohort", "messages", "in_window", "missing", "duplicates",
    "reordered", "stale", "extra", "undrained", "batches", "first_batch", "first_ns", "last_ns", "bytes", "p50_us",
    "p99_us", "max_us", "cpu_user_s", "cpu_system_s", "max_rss_bytes", "missing_ranges", "truncated", "more",
)  # fmt: skip

_json = msgspec.json.Encoder()
_MIDDLE: Final = (50.0, 99.0)
_TOLD: Final = {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0, "p99_9_ms": 99.9}
_MOST_RANGES: Final = 32
"""Ranges that are stored of a client: with all that a report may carry, a long lossy run would pass 100 MB."""


def client_rows(epoch: int, o: Observation) -> Iterator[tuple[Any, ...]]:
    """Rows in the order of ``COLUMNS``, one for every client that was asked."""
    start_ns = o.window_ns[0]
    for client in sorted(o.publishers):
        publisher = o.publisher_reports.get(client)
        head = (epoch, client, "publisher", "ok" if publisher else "silent", o.agents.get(client, ""), 0)
        yield head + (_publisher(publisher, start_ns) if publisher else _nothing())
    for client in sorted(o.subscribers):
        report = o.subscriber_reports.get(client)
        state = "dead" if client in o.dead else "silent" if client in o.silent or report is None else "ok"
        head = (epoch, client, "subscriber", state, o.agents.get(client, ""), int(client in o.cohort))
        yield head + (_subscriber(report, start_ns, o.reading_ns) if report else _nothing(o.last_words.get(client)))


def _nothing(last_word: int | None = None) -> tuple[Any, ...]:
    """Of a client without a report; only ``truncated`` is never NULL."""
    return (None,) * 20 + (0, _text({"last_word": last_word} if last_word else None))


def _text(value: object) -> str | None:
    """Compact JSON, NULL for nothing."""
    return _json.encode(value).decode() if value else None


def publisher_figures(rows: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """What load tools print of a producer, by publisher.

    Args:
        rows: of a step, from ``RunStore.clients``.

    Returns ``records`` (acknowledged), ``records_per_sec``, ``mb_per_sec``; and where servers acknowledge
    ``avg_latency_ms``, ``max_latency_ms``, ``p50_ms``, ``p95_ms``, ``p99_ms`` and ``p99_9_ms`` from the send to the
    acknowledgement. A megabyte has 2²⁰ bytes.
    """
    return _figures(rows, "publisher")


def subscriber_figures(rows: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """What load tools print of a consumer, by subscriber.

    Args:
        rows: of a step, from ``RunStore.clients``.

    Returns ``messages``, ``mb_consumed``, ``mb_per_sec``, ``records_per_sec`` (from the begin to the last batch),
    ``rebalance_ms``, and ``fetch_ms``, ``fetch_mb_per_sec``, ``fetch_records_per_sec`` without the time of rebalances
    in a stored step. (In any other a group is complete before the begin.)
    """
    return _figures(rows, "subscriber")


def _figures(rows: Iterable[Mapping[str, Any]], role: str) -> dict[int, dict[str, float]]:
    return {row["client"]: row["more"].get("figures", {}) for row in rows if row["role"] == role}


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
        percentiles = percentiles_us(r.ack_latency, _TOLD.values())
        figures["avg_latency_ms"] = mean / 1000
        figures["max_latency_ms"] = r.ack_latency.max_us / 1000
        figures |= {name: us / 1000 for name, us in zip(_TOLD, percentiles, strict=True) if us is not None}
    return figures


def _of_subscriber(r: SubscriberReport, start_ns: int, reading_ns: int | None) -> dict[str, float]:
    messages = sum(x.received for x in r.ledgers)
    read = sum(x.received + x.extra + x.duplicates for x in r.ledgers)
    megabytes = r.bytes / MEGABYTE * messages / read if read else 0.0
    total_ms = max(r.last_ns - (start_ns if reading_ns is None else reading_ns), 0) / 1e6
    rebalance_ms = float((r.system or {}).get("rebalance_ms") or 0.0)
    fetch_ms = max(total_ms - rebalance_ms, 0.0) if reading_ns is not None else total_ms
    return {
        "messages": messages,
        "mb_consumed": megabytes,
        "mb_per_sec": megabytes * 1000 / total_ms if total_ms else 0.0,
        "records_per_sec": messages * 1000 / total_ms if total_ms else 0.0,
        "rebalance_ms": rebalance_ms,
        "fetch_ms": fetch_ms,
        "fetch_mb_per_sec": megabytes * 1000 / fetch_ms if fetch_ms else 0.0,
        "fetch_records_per_sec": messages * 1000 / fetch_ms if fetch_ms else 0.0,
    }


def _publisher(r: PublisherReport, start_ns: int) -> tuple[Any, ...]:
    p50, p99 = percentiles_us(r.lag, _MIDDLE)
    more = {k: v for k in ("blocked_ns", "stopped_early", "unacknowledged_joined") if (v := getattr(r, k))}
    more |= r.system or {}
    more["figures"] = _of_publisher(r)
    return (
        r.sent, r.acknowledged, r.failed, 0, 0, 0, 0, 0, None, None,
        r.first_ns - start_ns if r.first_ns else None, r.last_ns - start_ns if r.last_ns else None, r.bytes,
        p50, p99, r.lag.max_us,
        r.usage.cpu_user_s, r.usage.cpu_system_s, r.usage.max_rss_bytes,
        _text({"unacknowledged": r.unacknowledged[:_MOST_RANGES]} if r.unacknowledged else None),
        int(len(r.unacknowledged) > _MOST_RANGES), _text(more),
    )  # fmt: skip


def _subscriber(r: SubscriberReport, start_ns: int, reading_ns: int | None) -> tuple[Any, ...]:
    p50, p99 = percentiles_us(r.latency, _MIDDLE)
    ledgers = r.ledgers
    more: dict[str, object] = {k: v for k in ("absent", "reconnects", "lag_bins_us") if (v := getattr(r, k))}
    more |= r.system or {}
    more["figures"] = _of_subscriber(r, start_ns, reading_ns)
    if r.drain != "complete":
        more["drain"] = r.drain
    if not r.felt:
        more["felt"] = False
    if len(ledgers) > 1:
        # The columns are sums over publishers; with one publisher that says it all.
        more["received"] = {x.publisher: x.received for x in ledgers}
    return (
        sum(x.received for x in ledgers), sum(x.in_window for x in ledgers), sum(x.missing for x in ledgers),
        sum(x.duplicates for x in ledgers), sum(x.reordered for x in ledgers), r.stale,
        sum(x.extra for x in ledgers), r.undrained, r.batches, r.first_batch,
        r.first_ns - start_ns if r.first_ns else None, r.last_ns - start_ns if r.last_ns else None, r.bytes,
        p50, p99, r.latency.max_us,
        r.usage.cpu_user_s, r.usage.cpu_system_s, r.usage.max_rss_bytes,
        _text({x.publisher: x.missing_ranges[:_MOST_RANGES] for x in ledgers if x.missing_ranges}),
        int(any(x.truncated or len(x.missing_ranges) > _MOST_RANGES for x in ledgers)), _text(more),
    )  # fmt: skip
