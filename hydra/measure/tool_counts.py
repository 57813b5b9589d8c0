"""What is known of messages without a header: their number, their contents, and what tools report. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from hydra.model import PublisherReport, Settings
from hydra.wire.arrays import total
from hydra.wire.subscriber_table import SubscriberTable

_LATENCIES: Final = {"p50": "p50_ms", "p99": "p99_ms", "p999": "p99_9_ms"}
_MOST: Final = "max_latency_ms"


def counted_account(
    publishers: Collection[PublisherReport],
    subscribers: SubscriberTable,
    log_growth: int | None,
    *,
    shared: bool,
) -> str:
    """The account of such a step as a text: the numbers of messages acknowledged, in the log, and read.

    Args:
        publishers: the reports of the publishers.
        subscribers: the reports of the subscribers.
        log_growth: messages by which the servers' log grew; None: the servers keep no log.
        shared: whether the subscribers share the messages.
    """
    acknowledged = sum(p.acknowledged for p in publishers)
    read = subscribers.of_clients(subscribers.received + subscribers.extra)
    amounts = {"acknowledged": {acknowledged}}
    if log_growth is not None:
        amounts["in the log"] = {log_growth}
    if len(read):
        amounts["read"] = {total(read)} if shared else set(np.unique(read).tolist())
    if all(counts == {acknowledged} for counts in amounts.values()):
        return f"counted only: {acknowledged} each"
    return "counted only: " + ", ".join(f"{_span(counts)} {what}" for what, counts in amounts.items())


def counted_payload(settings: Settings) -> str:
    """A description of the contents of such messages."""
    if settings.payload == "lines":
        return f"lines of {settings.payload_file}, at random"
    return f"random letters, {settings.message_size} bytes"


def acknowledged_after(publishers: Collection[PublisherReport]) -> dict[str, float]:
    """The ack latencies (µs) in reports without histograms, by percentile; of several publishers only the maximum."""
    figures = [(p.system or {}).get("figures", {}) for p in publishers]
    known = [each for each in figures if _MOST in each]
    if not known:
        return {}
    found: dict[str, float] = {"max": round(1000 * max(t[_MOST] for t in known))}
    if len(publishers) == 1:
        found |= {percentile: 1000 * known[0][name] for percentile, name in _LATENCIES.items()}
    return found


def _span(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"
