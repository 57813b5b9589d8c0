"""The lines in which Kafka's own performance tools tell their figures, made of the figures of any client.

Scripts read these lines by regular expressions, so every digit is where the tools put it. Pure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Final

from hydra.model import Figure, number

CONSUMER_HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
"""What ConsumerPerformance writes above its line."""


def producer_line(figures: Mapping[str, Figure]) -> str:
    """The last line of ProducerPerformance.

    Args:
        figures: a publisher's by name (``PUBLISHER_FIGURES``). What is not known is NaN or 0, as the tool has it when
            no record was acknowledged.
    """
    return (
        f"{_whole(figures, 'records')} records sent, {_part(figures, 'records_per_sec'):.6f} records/sec "
        f"({_part(figures, 'mb_per_sec'):.2f} MB/sec), "
        f"{_text(_part(figures, 'avg_latency_ms', math.nan))} ms avg latency, "
        f"{_part(figures, 'max_latency_ms'):.2f} ms max latency, {_whole(figures, 'p50_ms')} ms 50th, "
        f"{_whole(figures, 'p95_ms')} ms 95th, {_whole(figures, 'p99_ms')} ms 99th, "
        f"{_whole(figures, 'p99_9_ms')} ms 99.9th."
    )


def consumer_line(figures: Mapping[str, Figure], start_ns: int) -> str:
    """The line of ConsumerPerformance.

    Args:
        figures: a subscriber's by name (``SUBSCRIBER_FIGURES``).
        start_ns: when it began, ns since 1970; the times are those of this machine's zone.
    """
    rebalance_ms, fetch_ms = _whole(figures, "rebalance_ms"), _whole(figures, "fetch_ms")
    end_ns = start_ns + (rebalance_ms + fetch_ms) * 1_000_000
    return (
        f"{_time(start_ns)}, {_time(end_ns)}, {_part(figures, 'mb_consumed'):.4f}, {_part(figures, 'mb_per_sec'):.4f}, "
        f"{_whole(figures, 'messages')}, {_part(figures, 'records_per_sec'):.4f}, {rebalance_ms}, {fetch_ms}, "
        f"{_part(figures, 'fetch_mb_per_sec'):.4f}, {_part(figures, 'fetch_records_per_sec'):.4f}"
    )


def _part(figures: Mapping[str, Figure], name: str, unknown: float = 0.0) -> float:
    known = number(figures.get(name))
    return unknown if known is None else known


def _whole(figures: Mapping[str, Figure], name: str) -> int:
    return round(_part(figures, name))


def _text(value: float) -> str:
    """With two digits; Java writes NaN in capitals."""
    return "NaN" if math.isnan(value) else f"{value:.2f}"


def _time(ns: int) -> str:
    seconds, rest_ns = divmod(ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}:{rest_ns // 1_000_000:03d}"
