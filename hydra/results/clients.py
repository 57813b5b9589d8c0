"""One client's row of one step, compact: what only few clients have goes into one JSON column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hydra.measure.figures import Observation
from hydra.measure.latency import percentiles_us
from hydra.model import PublisherReport, SubscriberReport

COLUMNS: Final = (
    "epoch", "client", "role", "state", "agent", "cohort", "messages", "in_window", "missing", "duplicates",
    "reordered", "stale", "extra", "undrained", "batches", "first_batch", "first_ns", "last_ns", "bytes", "p50_us",
    "p99_us", "max_us", "cpu_user_s", "cpu_system_s", "max_rss_bytes", "missing_ranges", "truncated", "more",
)  # fmt: skip

_json = msgspec.json.Encoder()
_MIDDLE: Final = (50.0, 99.0)
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
        yield head + (_subscriber(report, start_ns) if report else _nothing(o.last_words.get(client)))


def _nothing(last_word: int | None = None) -> tuple[Any, ...]:
    """Of a client without a report; only ``truncated`` is never NULL."""
    return (None,) * 20 + (0, _text({"last_word": last_word} if last_word else None))


def _text(value: object) -> str | None:
    """Compact JSON, NULL for nothing."""
    return _json.encode(value).decode() if value else None


def _publisher(r: PublisherReport, start_ns: int) -> tuple[Any, ...]:
    p50, p99 = percentiles_us(r.lag, _MIDDLE)
    more = {k: v for k in ("blocked_ns", "stopped_early", "unacknowledged_joined") if (v := getattr(r, k))}
    more |= r.system or {}
    return (
        r.sent, r.acknowledged, r.failed, 0, 0, 0, 0, 0, None, None,
        r.first_ns - start_ns if r.first_ns else None, r.last_ns - start_ns if r.last_ns else None, r.bytes,
        p50, p99, r.lag.max_us,
        r.usage.cpu_user_s, r.usage.cpu_system_s, r.usage.max_rss_bytes,
        _text({"unacknowledged": r.unacknowledged[:_MOST_RANGES]} if r.unacknowledged else None),
        int(len(r.unacknowledged) > _MOST_RANGES), _text(more),
    )  # fmt: skip


def _subscriber(r: SubscriberReport, start_ns: int) -> tuple[Any, ...]:
    p50, p99 = percentiles_us(r.latency, _MIDDLE)
    ledgers = r.ledgers
    more: dict[str, object] = {k: v for k in ("absent", "reconnects", "lag_bins_us") if (v := getattr(r, k))}
    more |= r.system or {}
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
