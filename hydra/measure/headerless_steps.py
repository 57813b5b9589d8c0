"""Steps whose messages have no header, so only their number is known. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from hydra.measure.column_names import ACCOUNT, PAYLOAD
from hydra.measure.step_columns import ADDED_UP
from hydra.model import Figure, PublisherReport, Settings
from hydra.wire.arrays import total
from hydra.wire.subscriber_table import SubscriberTable

ONLY_BY_HEADER: Final = (
    *("client_loss_pct", "client_loss_low_pct", "client_loss_high_pct", "loss_at_stop_pct", "late_pct"),
    *("client_loss_ci_low_pct", "client_loss_ci_high_pct", "loss_evidence"),
    *("undrained_pct", "unknown_pct", "aggregate_pps", "in_window", "late", "undrained", "lost", "unknown"),
    *(column.name for column in ADDED_UP),
    *("passed", "verdict", "shortfall_pct", "bursts_s"),
)
"""Columns that need the identity of each message."""
_LATENCIES: Final = {"ack_p50_us": "p50_ms", "ack_p99_us": "p99_ms", "ack_p999_us": "p99_9_ms"}
_MOST: Final = "max_latency_ms"


def only_counts(
    columns: Mapping[str, Figure],
    settings: Settings,
    publishers: Collection[PublisherReport],
    subscribers: SubscriberTable,
    log_growth: int | None,
    *,
    shared: bool,
) -> dict[str, Figure]:
    """The columns of such a step: those that need a header are empty.

    ``columns`` are computed as for messages with a header, ``settings`` are the step's; the others are as for
    :func:`account`.
    """
    kept = {name: None if name in ONLY_BY_HEADER else value for name, value in columns.items()}
    # No subscriber is known to have lost messages.
    lossy, failed = kept.get("failed_lossy"), kept.get("failed_clients")
    if isinstance(lossy, int) and isinstance(failed, int):
        kept |= {"failed_lossy": 0, "failed_clients": failed - lossy}
    kept |= {PAYLOAD: payload(settings), ACCOUNT: account(publishers, subscribers, log_growth, shared=shared)}
    return kept | acknowledged_after(publishers)


def account(
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


def payload(settings: Settings) -> str:
    """A description of the contents of such messages."""
    if settings.payload == "lines":
        return f"lines of {settings.payload_file}, at random"
    return f"random letters, {settings.message_size} bytes"


def acknowledged_after(publishers: Collection[PublisherReport]) -> dict[str, Figure]:
    """The ack latencies (µs) in reports without histograms; of several publishers only the largest maximum."""
    figures = [(p.system or {}).get("figures", {}) for p in publishers]
    told = [each for each in figures if _MOST in each]
    if not told:
        return {}
    found: dict[str, Figure] = {"ack_max_us": round(1000 * max(t[_MOST] for t in told))}
    if len(publishers) == 1:
        found |= {column: 1000 * told[0][name] for column, name in _LATENCIES.items()}
    return found


def _span(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"
